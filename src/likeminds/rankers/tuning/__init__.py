"""Parameters chosen by cross-validation inside each person."""
