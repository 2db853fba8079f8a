"""Reading clinical text: language, words, sections, views."""
