"""The multi-view case index."""
