"""A learned prior for many people: time over one BLAS pass, growth, and what sampling costs."""

from unittest.mock import patch

import numpy as np

from benchmarks.results import Result, at_most
from likeminds import Annotations, HierarchicalRanker, make_schools, split_within_users
from likeminds._util.map_reduce import in_threads
from likeminds.losses.rows import Rows
from likeminds.mixed_model import fit_prior
from likeminds.paper.experiments.timing import seconds

N_LABELS, N_ITEMS = 50, 10_000
# Features, people, and the tolerance: tiny sizes, and those that count.
_TINY, _LARGE = (16, 800, 1e-2), (64, 100_000, 1e-5)


def run(quick: bool) -> Result:
    """Fit a crowd and a tenth of it, and a fifth from a sample and from all users."""
    n_features, n_users, tol = _TINY if quick else _LARGE
    with patch.object(fit_prior, "_FEWEST", 10 if quick else fit_prior._FEWEST):
        tenth, whole = _crowd(n_users // 10, n_features), _crowd(n_users, n_features)
        times = {
            crowd.n_users: (seconds(lambda crowd=crowd: _pass(crowd)), *_fit(crowd, tol))
            for crowd in (tenth, whole)
        }
        del tenth
        lost, saved, fifth = _against_all_users(_crowd(n_users // 5, n_features), tol)
    floor, taken, ranker = times[n_users]
    growth = taken / times[n_users // 10][1]
    told = ranker.sampling_
    return Result(
        title=f"HierarchicalRanker for {n_users:,}",
        compares=f"{n_users:,} people x {N_LABELS} labels x {n_features} features, items without "
        "effects of their own: one fit, compared with one pass over all rows that multiplies "
        "them with a matrix of features x features, in all threads. A fifth of the people, with "
        "the prior learned from a sample and from all users: held-out AUC (30 % of labels).",
        tables=[
            {
                "columns": ["people", "one pass, seconds", "fit, seconds", "fit / pass"],
                "rows": [[many, a, b, b / a] for many, (a, b, _) in times.items()],
            },
            {
                "columns": ["what", "value"],
                "rows": [
                    ["groups found", ranker.n_groups_],
                    ["people who learned", told.n_learned],
                    ["people who corrected", told.n_asked],
                    ["corrected steps", told.n_steps],
                    ["expected excess, nats per label", told.excess],
                    ["a fifth: people who learned", fifth.n_learned],
                    ["a fifth: time from all users / from a sample", saved],
                    ["a fifth: AUC from all users and from a sample, apart", abs(lost)],
                ],
            },
        ],
        goals=[
            at_most("fit, seconds (two idle cores)", 60, taken, judge=not quick),
            at_most("people x10: time", 8, growth, judge=not quick),
            at_most("AUC lost to a fit to all users", 0.0005, abs(lost), judge=not quick),
            at_most("peak memory, GiB", 4.0, None, judge=not quick),
        ],
        notes=["Peak memory is that of the whole process, making the data included."],
        series={"seconds": taken, "n_users": n_users, "over_floor": taken / floor},
    )


def run_million(quick: bool) -> Result:
    """Fit a million people: asked for by name, as it takes long."""
    n_features, n_users, tol = _TINY if quick else (64, 1_000_000, 1e-5)
    with patch.object(fit_prior, "_FEWEST", 10 if quick else fit_prior._FEWEST):
        crowd = _crowd(n_users, n_features)
        floor = seconds(lambda: _pass(crowd))
        taken, ranker = _fit(crowd, tol, covariance_rank=8)
    return Result(
        title=f"HierarchicalRanker for {n_users:,}",
        compares=f"{n_users:,} people x {N_LABELS} labels x {n_features} features, items without "
        "effects of their own, covariance_rank=8: one fit, compared with one pass over all rows.",
        tables=[
            {
                "columns": ["one pass, seconds", "fit, seconds", "fit / pass", "corrected by"],
                "rows": [[floor, taken, taken / floor, ranker.sampling_.n_asked]],
            }
        ],
        goals=[
            at_most("fit, seconds (two idle cores)", 600, taken, judge=not quick),
            at_most("peak memory, GiB", 8.0, None, judge=not quick),
        ],
        notes=["Peak memory is that of the whole process, making the data included."],
        series={"seconds": taken, "n_users": n_users, "over_floor": taken / floor},
    )


def _crowd(n_users: int, n_features: int) -> Annotations:
    return make_schools(n_users, N_LABELS, N_ITEMS, n_features, random_state=0).annotations


def _fit(crowd: Annotations, tol: float, **parameters: int) -> tuple[float, HierarchicalRanker]:
    ranker = HierarchicalRanker(item_effects=False, tol=tol, **parameters)
    return seconds(lambda: ranker.fit(crowd)), ranker


def _pass(crowd: Annotations) -> None:
    """Multiply all users' rows with one matrix, block by block: what no fit can do without."""
    rows = Rows.of_annotations(crowd)
    origin, matrix = np.zeros(crowd.n_features), np.eye(crowd.n_features)
    for _ in in_threads(lambda chosen: rows.block(chosen, origin).rows @ matrix, rows.plan()):
        pass


def _against_all_users(
    crowd: Annotations, tol: float
) -> tuple[float, float, fit_prior.SubsampleRecord]:
    """Return the held-out AUC lost by sampling, how many times faster it is, and what it was."""
    train, test = split_within_users(crowd, test_size=0.3, random_state=0)
    taken, ranker = _fit(train, tol)
    with patch.object(fit_prior, "_FEWEST", crowd.n_users):
        slower, whole = _fit(train, tol)
    assert ranker.sampling_ is not None
    assert whole.sampling_ is None
    return whole.score(test) - ranker.score(test), slower / taken, ranker.sampling_
