# %% [markdown]
# # A choice experiment: part-worths, willingness to pay, shares
#
# 361 households chose one of four contracts of electricity, twelve times each (Huber and Train,
# 2001). It is the data on which mixed logits are taught. This notebook goes from the labels to
# the numbers of a paper.

# %%
import likeminds

households = likeminds.load_electricity()
households

# %% [markdown]
# Rows that were shown together are a *group*, of which one is chosen; that makes it a mixed logit
# by itself. `covariance="full"` lets all part-worths be correlated.

# %%
ranker = likeminds.HierarchicalRanker(covariance="full").fit(households)
ranker.loss_, ranker.covariance_

# %% [markdown]
# ## The table

# %%
table = ranker.summary(draws=60)
table.to_pandas()

# %% [markdown]
# Nobody likes a rate by time of day, but on the length of the contract households are split: its
# mean is small beside its deviation. The log-likelihood is simulated, and says how exactly.

# %%
ranker.log_likelihood(draws=100)

# %% [markdown]
# ## What is it worth?
#
# Minus the ratio of two weights. Its interval is Fieller's, which knows that both are estimated.

# %%
ranker.wtp("price", draws=60).to_pandas()

# %% [markdown]
# ## A market
#
# Who would choose which of these? And who leaves if the first becomes dearer?

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
# ## Beyond the mean household
#
# Everybody has weights of their own. How well do they predict choices that were held out?

# %%
train, test = likeminds.split_within_users(households, test_size=0.25, random_state=0)
personal = likeminds.HierarchicalRanker().fit(train)
found = likeminds.score_choices(test, personal.decision_function(test))
same = likeminds.score_choices(test, test.X @ personal.consensus_)
print("accuracy with their own weights:", f"{found.accuracy.mean:.3f}")
print("accuracy with the consensus:    ", f"{same.accuracy.mean:.3f}")
