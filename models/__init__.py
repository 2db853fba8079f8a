"""The embedder and the language model, chosen by settings."""
