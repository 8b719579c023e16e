"""Extensions of the prior: covariates of users, and weights of known sign."""
