"""
Grades from 1 to 5: the same grade is not the same opinion
==========================================================

Some people never give a 5, others nothing else. Cutting grades at one number for all makes the
strict into people who like nothing. Learned as grades, everybody has a scale of their own, and
the ranker predicts the grade that somebody would give.
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
# Once as grades, once cut at 3 for everybody: judged by the share of a person's pairs of unequal
# grades that are put in the right order.


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
# Mean grades that were predicted for labels held out, by person, beside those given: the strict
# are predicted to be strict.

predicted = ranker.predict_grades(test).expected
given, foretold = (
    np.array([np.mean(values[test.user_codes == code]) for code in range(80)])
    for values in (test.grades, predicted)
)
figure, axes = plt.subplots(figsize=(6.6, 5.2), layout="constrained")
axes.plot([1, 5], [1, 5], color="0.6", linewidth=1)
points = axes.scatter(given, foretold, c=strictness, cmap="viridis")
figure.colorbar(points, label="strictness that was simulated")
axes.set(xlabel="mean grade given, held out", ylabel="mean grade predicted", aspect="equal")
axes.set_title(
    f"The strict are predicted to be strict (r = {np.corrcoef(given, foretold)[0, 1]:.2f})",
    loc="left",
)
plt.show()
