"""Our schools and the statements that bridge them, beside Polis's own groups and consensus."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, roc_auc_score

from benchmarks.shared_crowds import SharedCrowd
from likeminds import Annotations, HierarchicalRanker, find_schools
from likeminds._util.array_types import Float, Index

# How many statements each side may call bridging: this share of them.
_BRIDGING = 0.1
_RESAMPLED = 1000


def agreement_of_groups(crowd: SharedCrowd) -> dict[str, Any]:
    """Return how well our schools, found from all votes, agree with Polis's groups."""
    ranker = HierarchicalRanker().fit(crowd.said)
    theirs = _their_groups(crowd, crowd.said)
    grouped = theirs >= 0
    n_groups = len(np.unique(theirs[grouped]))
    found = {}
    for name, asked in (("auto", "auto"), ("as many", n_groups)):
        schools = find_schools(ranker, crowd.said, n_schools=asked)
        found[name] = {
            "schools": max(len(schools), 1),
            "rand": float(adjusted_rand_score(theirs[grouped], schools.labels[grouped])),
        }
    found_groups = {"people": int(grouped.sum()), "groups": n_groups, "ours": found}
    if n_groups == 2 and schools.coordinates.shape[1]:
        place = schools.coordinates[grouped, 0]
        auc = float(roc_auc_score(theirs[grouped] == theirs.max(), place))
        found_groups["along"] = max(auc, 1.0 - auc)
    return found_groups


def bridging(crowd: SharedCrowd, seed: int) -> dict[str, Any]:
    """Return the held-out agreement with the statements that each side calls bridging.

    In the group that agrees least, by our schools and by Polis's groups.
    """
    train, test = crowd.within(seed)
    schools = find_schools(HierarchicalRanker().fit(train), train)
    soft, theirs = schools.soft_labels, _their_groups(crowd, train)
    # Authors agree with their own statements: who else saw them can be held against both lists.
    seen = np.bincount(train.item_codes, minlength=train.n_items) > 1
    n = max(3, round(_BRIDGING * seen.sum()))
    others = np.isin(soft.items, train.item_ids[seen])
    ours = soft.items[np.argsort(np.where(others, -soft.at_least, np.inf), kind="stable")[:n]]
    consensus = group_informed_consensus(crowd, train, theirs)
    polis = train.item_ids[np.argsort(np.where(seen, -consensus, np.inf), kind="stable")[:n]]
    votes = _HeldOut.of(test, train.user_ids, (ours, polis))
    rng = np.random.default_rng(seed)
    return {
        "statements": n,
        "both": len(set(ours.tolist()) & set(polis.tolist())),
        "in our schools": votes.least(np.maximum(schools.labels, 0), rng),
        "in Polis's groups": votes.least(theirs, rng),
    }


def group_informed_consensus(crowd: SharedCrowd, train: Annotations, groups: Index) -> Float:
    """Return Polis's measure: the product over groups of the smoothed chance of agreeing.

    In each group (agreeing + 1) / (votes + 2), where passes are votes.
    """
    n_groups, n_items = groups.max() + 1, train.n_items
    of_row = groups[train.user_codes]
    agreed = _counts(of_row, train.item_codes, (n_groups, n_items), train.labels)
    seen = _counts(of_row, train.item_codes, (n_groups, n_items))
    for person, item in () if crowd.passes is None else crowd.passes.tolist():
        who = np.searchsorted(train.user_ids, person)
        what = np.searchsorted(train.item_ids, item)
        known = who < train.n_users and what < n_items
        if known and train.user_ids[who] == person and train.item_ids[what] == item:
            seen[groups[who], what] += groups[who] >= 0
    return np.asarray(((agreed + 1.0) / (seen + 2.0)).prod(axis=0))


def _counts(
    group: Index, item: Index, shape: tuple[int, int], weight: Float | None = None
) -> Float:
    inside = group >= 0
    place = group[inside] * shape[1] + item[inside]
    weights = None if weight is None else weight[inside].astype(np.float64)
    return np.bincount(place, weights, shape[0] * shape[1]).astype(np.float64).reshape(shape)


def _their_groups(crowd: SharedCrowd, said: Annotations) -> Index:
    group = crowd.polis_group[said.user_ids.astype(np.intp)]
    return np.where(np.isnan(group), -1, group).astype(np.intp)


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """Votes held out on the statements of two sides: (n_sides, n_users) agreeing, and all."""

    agreed: Float
    number: Float

    @classmethod
    def of(cls, test: Annotations, users: np.ndarray, chosen: tuple[np.ndarray, ...]) -> "_HeldOut":
        person = np.searchsorted(users, test.users)
        rows = [np.isin(test.items, items) for items in chosen]
        counts = [
            [np.bincount(person[mine], weight[mine], len(users)) for mine in rows]
            for weight in (test.labels.astype(np.float64), np.ones(len(test)))
        ]
        return cls(*(np.array(part) for part in counts))

    def least(self, groups: Index, rng: np.random.Generator) -> dict[str, Any]:
        """Return both sides' agreement in the group that agrees least, and their difference.

        The interval of the difference is that of resampled people.
        """
        everybody = np.ones((1, len(groups)))
        ours, polis = self._least(groups, everybody)[:, 0].tolist()
        drawn = rng.multinomial(len(groups), np.full(len(groups), 1 / len(groups)), _RESAMPLED)
        apart = np.diff(self._least(groups, drawn.astype(np.float64))[::-1], axis=0)[0]
        low, high = np.nanquantile(apart, [0.025, 0.975]).tolist()
        return {"ours": ours, "polis": polis, "low": low, "high": high}

    def _least(self, groups: Index, weights: Float) -> Float:
        """Return (n_sides, n_weights): the least share of agreement over groups."""
        shares = []
        for group in np.unique(groups[groups >= 0]):
            mine = weights * (groups == group)
            number = self.number @ mine.T
            shares.append(self.agreed @ mine.T / np.where(number > 0, number, np.nan))
        return np.nanmin(np.stack(shares), axis=0)
