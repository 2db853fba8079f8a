"""The verbs of the command line: each parses, calls the library and renders; no clinical logic."""
