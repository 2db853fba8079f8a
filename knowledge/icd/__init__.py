"""ICD-10 code systems and the coding cascade."""
