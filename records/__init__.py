"""What comes in: outpatient records, their readers, de-identification and demo data."""
