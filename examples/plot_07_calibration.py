"""
Calibration of predicted probabilities
======================================

``probability_preferred`` returns the probability that a user prefers one item to another. It
integrates over the uncertainty of the user's weights. Without this, probabilities would be
overconfident.
"""

import matplotlib.pyplot as plt
import numpy as np

import likeminds

households = likeminds.load_electricity()
train, test = likeminds.split_within_users(households, test_size=0.3, random_state=0)
ranker = likeminds.HierarchicalRanker().fit(train)

# %%
# For each held-out choice, draw one of the rejected contracts. Compare the predicted probability
# that the household prefers the first of the two with its choice.

rng = np.random.default_rng(0)
said, happened = [], []
for person in test.user_ids:
    mine = test.of_user(person)
    for group in np.unique(mine.choice_set_codes):
        shown = mine.choice_set_codes == group
        chosen = mine.X[shown & mine.labels][0]
        other = rng.choice(mine.X[shown & ~mine.labels])
        first = rng.random() < 0.5
        pair = (chosen, other) if first else (other, chosen)
        said.append(ranker.probability_preferred(*(one[None, :] for one in pair), [person])[0])
        happened.append(first)

# %%
# On the diagonal, predicted probabilities equal observed shares.

edges = np.linspace(0, 1, 9)
place = np.clip(np.digitize(said, edges) - 1, 0, 7)
kept = [n for n in range(8) if (place == n).sum() >= 10]
mean = np.array([np.mean(np.array(said)[place == n]) for n in kept])
rate = np.array([np.mean(np.array(happened)[place == n]) for n in kept])
count = np.array([(place == n).sum() for n in kept])
off = np.average(np.abs(mean - rate), weights=count)
figure, axes = plt.subplots(figsize=(5.6, 5.2), layout="constrained")
axes.plot([0, 1], [0, 1], color="0.6", linewidth=1)
axes.errorbar(mean, rate, 1.96 * np.sqrt(rate * (1 - rate) / count), fmt="o", color="#0072B2")
axes.set(xlabel="predicted probability", ylabel="observed share (bars: 95 % intervals)")
axes.set_title(f"Predicted and observed differ by {100 * off:.1f} points on average", loc="left")
plt.show()
