"""A score taken apart: by level and by feature, with its uncertainty."""

import numpy as np

from likeminds._support.arrays import Float
from likeminds.schools.found import Facts
from likeminds.schools.levels import Levels
from likeminds.schools.naming import POPULARITY


def score_parts(
    levels: Levels, person: int, row: Float, centre: Float, error: float | None = None
) -> Facts:
    """Say why an item has its score for a person, compared with the average item.

    The score is a sum over levels and features: what all agree on, what the person's group adds,
    what is the person's own, each being weights times how the item differs from the average; and
    what all see in the item beyond its features, where the ranker has learned that.

    Parameters
    ----------
    levels : Levels
        Of the person, among others.
    person : int
        The person's row in the levels.
    row : array of shape (n_features,)
        The item, with the columns that were learned about it (`Items.with_learned`).
    centre : array of shape (n_features,)
        The average item.
    error : float, optional
        The standard error of the score.

    Returns
    -------
    dict
        ``score`` (above the average item's) is the sum of ``levels``: consensus, group, personal
        and item; ``features`` has the same by feature, those that move the score most first;
        ``error`` and ``interval`` (of 90 %) are None where the ranker does not know them.

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, load_electricity
    >>> offers = load_electricity()
    >>> levels = Levels.of_ranker(HierarchicalRanker(n_groups=1).fit(offers))
    >>> facts = score_parts(levels, 0, offers.X[0], offers.X.mean(axis=0))
    >>> bool(np.isclose(facts["score"], sum(facts["levels"].values())))
    True
    >>> sorted(facts["features"][0])
    ['average', 'consensus', 'feature', 'group', 'personal', 'total', 'value']
    """
    apart = np.asarray(row, dtype=np.float64) - centre
    parts = np.stack(
        [levels.consensus * apart, levels.group[person] * apart, levels.personal[person] * apart]
    )
    names = levels.feature_names
    own = np.array([name == POPULARITY for name in names], dtype=np.bool_)
    item = float(parts[:, own].sum())
    total = parts.sum(axis=0)
    score = float(total.sum())
    summed = dict(
        zip(("consensus", "group", "personal"), parts[:, ~own].sum(axis=1).tolist(), strict=True)
    )
    moving = [j for j in np.argsort(-np.abs(total), kind="stable").tolist() if not own[j]]
    return {
        "score": score,
        "error": error,
        "interval": None if error is None else [score - 1.645 * error, score + 1.645 * error],
        "levels": summed | {"item": item},
        "features": [
            {
                "feature": names[j],
                "value": float(row[j]),
                "average": float(centre[j]),
                "consensus": float(parts[0, j]),
                "group": float(parts[1, j]),
                "personal": float(parts[2, j]),
                "total": float(total[j]),
            }
            for j in moving
        ],
    }
