"""Choice-model results: simulated likelihood, part-worths, willingness to pay, shares."""
