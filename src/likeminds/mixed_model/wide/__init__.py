"""Wide features: the prior is learned in the space of rows, never features x features."""
