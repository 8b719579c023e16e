"""Searches for penalties along log paths, extended if the best value is at an edge."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from likeminds.losses.statistics import Statistics
from likeminds.rankers.candidates import Candidate, Split
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.search import RankerCV
from likeminds.rankers.three_level_search import ThreeLevelRankerCV

# The ratio of neighbours beyond an edge, how many are added at a time, and how often.
_RATIO = 10**0.5
_N_BEYOND, _MOST_EXTENSIONS = 2, 6
# Numbers of groups or clusters, whose least value is not an edge.
_COUNTS = ("n_groups", "n_clusters")
# The limit of this penalty depends on another one.
_NOT_EXTENDED = ("group_shrinkage",)

Path = Mapping[str, Sequence[Any]]


class ExtendedCV(RankerCV):
    """Cross-validation of any ranker, with its grid extended if the best value is at an edge.

    Values beyond an edge are tried until none of them is the best; ``extended_`` are their
    parameters.
    """

    extends_counts = True  # numbers of groups or clusters, too

    def _choose(
        self, candidates: list[Candidate], splits: Sequence[Split], statistics: Statistics
    ) -> None:
        super()._choose(candidates, splits, statistics)
        seen = list(candidates)
        finer = self._finer(self.best_params_)
        if finer:
            seen += self._follow(self._candidates(statistics, finer), splits, statistics)
        most = min(statistics.n_users, statistics.n_features) - 1 if self.extends_counts else 0
        extended: set[str] = set()
        for _ in range(_MOST_EXTENSIONS):
            best = self.best_params_
            beyond = [fixed_grid(each) for each in beyond_edges(seen, best, most)]
            if not beyond:
                break
            further = self._follow(self._candidates(statistics, beyond), splits, statistics)
            extended |= {name for each in further for name in each if each[name] != best[name]}
            seen += further
        self.extended_ = sorted(extended)
        # All candidates, for `at_edge`.
        self.cv_results_ = {"params": seen}
        self.best_index_ = seen.index(self.best_params_)

    def _finer(self, chosen: Candidate) -> Path:  # noqa: ARG002
        """Return the grid that follows the first one."""
        return {}

    def _follow(
        self, further: list[Candidate], splits: Sequence[Split], statistics: Statistics
    ) -> list[Candidate]:
        """Try further candidates on the same folds, and choose the best if it beats all others."""
        before = self.best_params_, self.best_score_
        super()._choose(further, splits, statistics)
        if not self.best_score_ > before[1]:
            self.best_params_, self.best_score_ = before
        return further


@dataclass(eq=False, repr=False)
class PathCV(ExtendedCV, ThreeLevelRankerCV):
    """Cross-validation of the three levels: a coarse grid, a fine path, then beyond edges.

    The fine path has the numbers of groups and the ridge that won on the grid.
    """

    ranker: Ranker = field(init=False)
    fine_path: Sequence[float] = ()

    def _finer(self, chosen: Candidate) -> Path:
        """Return the fine path of lambda3, with values of lambda2 around the chosen one."""
        if not self.fine_path:
            return {}
        group = chosen["alpha_group"]
        return fixed_grid(chosen) | {
            "alpha_group": [group / _RATIO, group, group * _RATIO],
            "alpha_personal": list(self.fine_path),
        }


def at_edge(candidates: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any]) -> list[str]:
    """Return the parameters at the least or largest of several values; one group is not an edge."""
    found = []
    for name, value in chosen.items():
        values = {each[name] for each in candidates if name in each}
        numbers = isinstance(value, (int, float)) and len(values) > 1
        least = [] if name in _COUNTS else [min(values)] if numbers else []
        if numbers and value in [*least, max(values)]:
            found.append(name)
    return found


def fixed_grid(chosen: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the grid with one candidate."""
    return {name: [value] for name, value in chosen.items()}


def beyond_edges(
    candidates: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any], most: int = 0
) -> list[Candidate]:
    """Return candidates with values beyond the edges that the chosen one is at.

    Penalties that are equal in all candidates change together. Numbers of groups are doubled, up
    to ``most``.
    """
    together: dict[tuple[Any, ...], list[str]] = {}
    for name in at_edge(candidates, chosen):
        if name not in _NOT_EXTENDED:
            together.setdefault(tuple(each.get(name) for each in candidates), []).append(name)
    paths = []
    for tried, names in together.items():
        value = chosen[names[0]]
        if names[0] in _COUNTS:
            values = [value] + [2 * value] * (2 * value <= most)
        else:
            sign = -1 if value == min(each for each in tried if each is not None) else 1
            values = (value * _RATIO ** (sign * np.arange(_N_BEYOND + 1))).tolist()
        paths.append([dict.fromkeys(names, one) for one in values])
    found = [dict(ChainMap(*steps, dict(chosen))) for steps in product(*paths)]
    return [each for each in found if each != chosen]
