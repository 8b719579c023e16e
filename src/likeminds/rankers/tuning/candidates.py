"""Candidates for the penalties: the default grid, and the order to try them in."""

from itertools import groupby
from typing import Any

import numpy as np

from likeminds._support.arrays import Index

Candidate = dict[str, Any]

# The default grid: penalties as multiples of what ThreeLevelRanker takes by default.
_ALPHA_CONSENSUS = (1e-4, 1e-2)
_ALPHA_GROUP_TIMES = (0.1, 0.3, 1.0, 3.0, 10.0)
_SHRINKAGE_SHARE = (0.0, 0.03, 0.1, 0.3)
_N_GROUPS = (1, 2, 4)
# Without groups, the last of these is the consensus and nothing else.
_ALPHA_ALONE_TIMES = (0.1, 0.3, 1.0, 3.0, 10.0, 1000.0)


def snake(ordered: list[Candidate]) -> list[Candidate]:
    """Turn every other run of falling penalties round, so that neighbours are near."""
    path: list[Candidate] = []
    for number, (_, run) in enumerate(groupby(ordered, key=lambda c: simplicity(c)[:-1])):
        path.extend(run if number % 2 == 0 else reversed(list(run)))
    return path


def simplicity(candidate: Candidate) -> tuple[float, ...]:
    """Order candidates from simple to complex: few groups and large penalties first."""
    alpha = candidate.get("alpha_group", 1.0)
    return (
        candidate.get("n_groups") or 0,
        -candidate.get("alpha_consensus", 0.0),
        -candidate.get("alpha_personal", 0.0),
        -candidate.get("group_shrinkage", 0.0) / (alpha or 1.0),
        -alpha,
    )


def paths(candidates: list[Candidate], alive: Index) -> list[list[int]]:
    """Divide those alive by their number of groups: a path for each, whoever follows it."""
    by_groups: dict[Any, list[int]] = {}
    for c in alive.tolist():
        by_groups.setdefault(candidates[c].get("n_groups"), []).append(c)
    return list(by_groups.values())


def plain(candidate: Candidate) -> Candidate:
    """Return the candidate with Python's own numbers."""
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in candidate.items()
    }


def default_grid(alpha_group: float) -> list[Candidate]:
    """Return candidates from "everybody alone" to "consensus only", around a penalty."""
    with_groups = [
        {
            "alpha_consensus": alpha,
            "alpha_group": times * alpha_group,
            "group_shrinkage": share * times * alpha_group,
            "n_groups": n_groups,
        }
        for alpha in _ALPHA_CONSENSUS
        for times in _ALPHA_GROUP_TIMES
        for share in _SHRINKAGE_SHARE
        for n_groups in _N_GROUPS
    ]
    without = [
        {
            "alpha_consensus": alpha,
            "alpha_group": times * alpha_group,
            "group_shrinkage": 0.0,
            "n_groups": 0,
        }
        for alpha in _ALPHA_CONSENSUS
        for times in _ALPHA_ALONE_TIMES
    ]
    return without + with_groups
