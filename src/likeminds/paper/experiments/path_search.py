"""A search for the paper's penalties along log paths, extended where an edge wins."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from likeminds.data.annotations import Annotations
from likeminds.losses.statistics import Statistics
from likeminds.rankers.three_level_search import ThreeLevelRankerCV

PENALTIES = ("alpha_consensus", "alpha_group", "alpha_personal")
# The ratio of neighbours beyond an edge, how many are added at a time, and how often.
_RATIO = 10**0.5
_N_BEYOND, MOST_EXTENSIONS = 2, 6

Path = Mapping[str, Sequence[Any]]


class PathCV(ThreeLevelRankerCV):
    """Cross-validation of the three levels: a coarse grid, a fine path, then beyond edges.

    The fine path has the numbers of groups and the ridge that won on the grid. If a penalty
    wins at an edge, the path is extended until no value beyond the edge wins; ``extended_`` are
    these penalties.
    """

    def __init__(
        self,
        param_grid: Path,
        fine_path: Sequence[float] = (),
        *,
        n_folds: int = 3,
        loss: str = "auc",
        standardize: bool = True,
        random_state: int = 0,
    ) -> None:
        super().__init__(
            param_grid,
            n_folds=n_folds,
            loss=loss,
            standardize=standardize,
            random_state=random_state,
        )
        self.fine_path = fine_path

    def _search(
        self,
        held_out: Sequence[Annotations],
        statistics: list[Statistics],
        training: Callable[[int], Annotations],
        rows: Callable[[], Annotations],
    ) -> None:
        def follow(grid: Path) -> bool:
            """Search another grid on the same folds, and adopt its winner if it is better."""
            search = ThreeLevelRankerCV(grid, **self._shared())
            search._search(held_out, statistics, training, rows)
            seen.extend(search.cv_results_["params"])
            if not search.best_score_ > self.best_score_:
                return False
            self.best_params_, self.best_score_ = search.best_params_, search.best_score_
            best = search.best_estimator_
            assert best is not None
            self._share_input(best)
            self._adopt(best)
            return True

        super()._search(held_out, statistics, training, rows)
        seen = list(self.cv_results_["params"])
        if self.fine_path:
            follow(_around(self.best_params_, self.fine_path))
        extended = set()
        for _ in range(MOST_EXTENSIONS):
            beyond = beyond_edges(seen, self.best_params_)
            if not beyond:
                break
            extended |= set(beyond)
            follow(fixed_grid(self.best_params_) | beyond)
        self.extended_ = sorted(extended)
        # All candidates of the paths, for `at_edge`.
        self.cv_results_ = {"params": seen}

    def _shared(self) -> dict[str, Any]:
        names = ("n_folds", "loss", "standardize", "random_state")
        return {name: getattr(self, name) for name in names}


def at_edge(candidates: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any]) -> list[str]:
    """Return the parameters at the least or largest of several values; one group is not an edge."""
    found = []
    for name, value in chosen.items():
        values = {each[name] for each in candidates if name in each}
        numbers = isinstance(value, (int, float)) and len(values) > 1
        least = [] if name == "n_groups" else [min(values)] if numbers else []
        if numbers and value in [*least, max(values)]:
            found.append(name)
    return found


def fixed_grid(chosen: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the grid with one candidate."""
    return {name: [value] for name, value in chosen.items()}


def _around(chosen: Mapping[str, Any], fine_path: Sequence[float]) -> Path:
    """Return the fine path of lambda3, with values of lambda2 around the chosen one."""
    group = chosen["alpha_group"]
    return {
        "alpha_consensus": [chosen["alpha_consensus"]],
        "alpha_group": [group / _RATIO, group, group * _RATIO],
        "alpha_personal": list(fine_path),
        "n_groups": [chosen["n_groups"]],
    }


def beyond_edges(
    candidates: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any]
) -> dict[str, list[float]]:
    """Return, for penalties at an edge, the chosen value and some beyond it."""
    steps = _RATIO ** np.arange(_N_BEYOND + 1)
    found = {}
    for name in set(at_edge(candidates, chosen)) & set(PENALTIES):
        is_least = chosen[name] == min(each[name] for each in candidates)
        found[name] = (chosen[name] * steps ** (-1 if is_least else 1)).tolist()
    return found
