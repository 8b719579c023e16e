"""
Grades of strict and lenient users
==================================

Some users never give a 5, others give little else. One threshold for all users turns strict users
into users who like nothing. A model of grades learns the thresholds of each user and predicts
grades.
"""

import matplotlib.pyplot as plt
import numpy as np

import likeminds

rng = np.random.default_rng(0)
simulated = likeminds.make_schools(80, 40, 200, 8, n_schools=2, random_state=5)
said = simulated.annotations
taste = np.sum(said.X * simulated.coef[said.user_codes], axis=1)
strictness = rng.normal(0, 1.0, 80)
grades = 1 + np.sum(
    (taste - strictness[said.user_codes] + rng.logistic(0, 0.5, len(taste)))[:, None]
    > [-2.0, -0.7, 0.7, 2.0],
    axis=1,
)
graded = likeminds.Annotations(said.users, said.items, grades, said.features, features_per="item")
train, test = likeminds.split_within_users(graded, test_size=0.3, random_state=0)
graded

# %%
# Fit the grades, and fit yes (above 3) or no. The score is the concordance: the share of a user's
# pairs of unequal grades that are ranked in the right order.


def cut(rows):
    """Return the annotations with grades above 3 as yes."""
    return likeminds.Annotations(
        rows.users, rows.items, rows.grades > 3, rows.features, features_per="item"
    )


ranker = likeminds.HierarchicalRanker().fit(train)
as_grades = ranker.score(test)
from_cut = likeminds.HierarchicalRanker().fit(cut(train)).decision_function(test)
as_yes_or_no = likeminds.metrics.mean_concordance(test.grades, from_cut, test.users)
print(f"in the right order: {as_grades:.1%} from grades, {as_yes_or_no:.1%} from grades above 3")

# %%
# Mean predicted and mean given grades of held-out labels, by user:

predicted = ranker.predict_grades(test).expected
given, foretold = (
    np.array([np.mean(values[test.user_codes == code]) for code in range(80)])
    for values in (test.grades, predicted)
)
figure, axes = plt.subplots(figsize=(6.6, 5.2), layout="constrained")
axes.plot([1, 5], [1, 5], color="0.6", linewidth=1)
points = axes.scatter(given, foretold, c=strictness, cmap="viridis")
figure.colorbar(points, label="simulated strictness")
axes.set(xlabel="mean grade given, held out", ylabel="mean grade predicted", aspect="equal")
axes.set_title(
    f"Predicted grades of strict users are low (r = {np.corrcoef(given, foretold)[0, 1]:.2f})",
    loc="left",
)
plt.show()
