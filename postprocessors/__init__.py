"""Node postprocessors over retrieved evidence."""
