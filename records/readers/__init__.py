"""Streaming readers, one module a format."""
