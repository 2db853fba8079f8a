"""What is built and kept."""
