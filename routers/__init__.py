"""Understanding the question and choosing who answers."""
