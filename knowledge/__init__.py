"""What is known before any patient: codes, labels, priors, weights, learned scorers, calibration."""
