"""The choice modeller's numbers: simulated likelihood, part-worths, willingness to pay, shares."""
