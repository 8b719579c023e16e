# %% [markdown]
# # A choice experiment: part-worths, willingness to pay, shares
#
# 361 households chose one of four electricity contracts, up to twelve times each (Huber and Train,
# 2001). Textbooks use these data for mixed logits. This notebook estimates part-worths, willingness
# to pay and market shares.

# %%
import likeminds

households = likeminds.load_electricity()
households

# %% [markdown]
# Rows that were shown together are a choice set, of which one is chosen. For such labels,
# `HierarchicalRanker` is a mixed logit. `covariance="full"` lets all part-worths be correlated.

# %%
ranker = likeminds.HierarchicalRanker(covariance="full").fit(households)
ranker.loss_, ranker.covariance_

# %% [markdown]
# ## Part-worths

# %%
table = ranker.summary(draws=60)
table.to_pandas()

# %% [markdown]
# Nearly all households avoid rates by time of day. They disagree about the contract length, whose
# mean is small compared with its standard deviation. The log-likelihood is simulated and has a
# Monte Carlo error.

# %%
ranker.log_likelihood(draws=100)

# %% [markdown]
# ## Willingness to pay
#
# The willingness to pay is minus the ratio of two weights. Fieller's interval accounts for the
# errors of both.

# %%
ranker.wtp("price", draws=60).to_pandas()

# %% [markdown]
# ## Market shares
#
# Shares of three contracts, and elasticities with respect to their prices:

# %%
market = {
    "cheap, five years": [7.0, 5, 0, 1, 0, 0],
    "local, one year": [9.0, 1, 1, 0, 0, 0],
    "by time of day": [0.0, 0, 0, 1, 1, 0],
}
ranker.shares(market).to_pandas()

# %%
ranker.elasticities(market, "price").to_pandas()

# %% [markdown]
# ## Predictions for each household
#
# Each household has its own weights. Held-out choices measure how well they predict:

# %%
train, test = likeminds.split_within_users(households, test_size=0.25, random_state=0)
personal = likeminds.HierarchicalRanker().fit(train)
found = likeminds.score_choices(test, personal.decision_function(test))
same = likeminds.score_choices(test, test.X @ personal.consensus_)
print("accuracy with their own weights:", f"{found.accuracy.mean:.3f}")
print("accuracy with the consensus:    ", f"{same.accuracy.mean:.3f}")
