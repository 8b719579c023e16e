"""Newcomers: how many are taken in a second, by both rankers, on one thread of BLAS."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.results import Result, at_least, at_most
from likeminds import (
    HierarchicalRanker,
    ThreeLevelRanker,
    load_electricity,
    make_schools,
    mean_auc,
)
from likeminds.data.annotations import Annotations
from likeminds.paper.experiments.timing import in_turns

N_FEATURES, N_LABELS = 20, 10


def run(quick: bool) -> Result:
    """Time a batch of newcomers, and hold their accuracy against a refit's."""
    n_new = 50 if quick else 10_000
    crowd = make_schools(50 if quick else 500, 40, 2000, N_FEATURES, 3, random_state=0).annotations
    rows, labels, users = _labels(n_new)
    fitted = [ThreeLevelRanker().fit(crowd), HierarchicalRanker().fit(crowd)]
    works = {
        type(ranker).__name__: partial(ranker.newcomer, rows, labels, users=users)
        for ranker in fitted
    }
    times = in_turns(works, 1 if quick else 7)
    rates = {name: n_new / taken for name, taken in times.items()}
    accuracy = _accuracy(quick)
    lead = max(0.0, *(100.0 * (row[-1] - row[-2]) for row in accuracy))
    return Result(
        title="New users without a refit",
        compares=f"{n_new:,} people with {N_LABELS} labels of {N_FEATURES} features each, in one "
        "call: weights and their uncertainty. Then the mean AUC of a fifth of the people as "
        "new users with a few labels, compared with a refit.",
        tables=[
            {
                "columns": ["ranker", "newcomers per second"],
                "rows": [[name, rates[name]] for name in rates],
            },
            {
                "columns": ["data", "ranker", "labels each", "AUC of newcomers", "of a refit"],
                "rows": accuracy,
            },
        ],
        goals=[
            *(
                at_least(f"newcomers per second, {name}", 10_000, rates[name], judge=not quick)
                for name in rates
            ),
            at_most("points of AUC by which a refit leads", 1.0, lead, judge=not quick),
        ],
        notes=["With several cores, blocks of people are computed in parallel."],
        series={"rates": rates},
    )


def _labels(n_new: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n_new * N_LABELS, N_FEATURES))
    return rows, rng.random(len(rows)) < 0.5, np.repeat(np.arange(n_new), N_LABELS)


def _accuracy(quick: bool) -> list[list[Any]]:
    crowds = {"schools": make_schools(200, 50, 600, 20, 3, random_state=0).annotations}
    if quick:
        crowds["schools"] = crowds["schools"].of_users(range(20))
    else:
        crowds["electricity"] = load_electricity()
    found = []
    for name, crowd in crowds.items():
        for ranker in (ThreeLevelRanker(), HierarchicalRanker()):
            for n_labels in (5,) if quick else (5, 10, 20):
                there, few, rest = _divided(crowd, n_labels)
                new = ranker.fit(there).newcomer(few)
                scores = new.decision_function(rest.X, rest.users)
                folded = mean_auc(rest.labels, scores, rest.users)
                refit = ranker.fit(there.concat(few)).score(rest)
                found.append([name, type(ranker).__name__, n_labels, folded, refit])
    return found


def _divided(crowd: Annotations, n_labels: int) -> tuple[Annotations, Annotations, Annotations]:
    """Return the labels of four people in five, a few of the others', and their rest."""
    rng = np.random.default_rng(0)
    users = rng.permutation(crowd.user_ids)
    n_new = len(users) // 5
    new = crowd.of_users(users[:n_new])
    shuffled = new[rng.permutation(len(new))]
    order, offsets = shuffled.user_index()
    first = np.concatenate([order[begin : begin + n_labels] for begin in offsets[:-1]])
    rest = np.setdiff1d(np.arange(len(new)), first)
    return crowd.of_users(users[n_new:]), shuffled[first], shuffled[rest]
