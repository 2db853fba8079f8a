"""One LlamaIndex retriever per index."""
