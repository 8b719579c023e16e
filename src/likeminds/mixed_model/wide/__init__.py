"""Learning the prior from wide features: in the space of rows, never features x features."""
