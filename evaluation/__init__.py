"""Measurements on anybody's gold: metrics, conditions, reports."""
