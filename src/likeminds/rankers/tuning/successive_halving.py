"""The race of candidates over the folds: those that fall behind are dropped early."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from likeminds._util.array_types import Float, Index
from likeminds._util.console import report_progress
from likeminds._util.per_user_arrays import nan_mean
from likeminds.rankers.candidates.folds import Candidate, Fold

# The share of candidates that stays after each of the first folds, and the least number.
_KEEP, _KEEP_AT_LEAST = 1 / 4, 5


def race(
    candidates: list[Candidate],
    folds: Sequence[Fold],
    paths: Callable[[list[Candidate], Index], list[list[int]]],
    *,
    halving: bool,
    n_jobs: int | None,
    verbose: bool = False,
) -> Float:
    """Return the AUC by candidate, fold and person; NaN where a candidate was dropped."""
    scores = np.full((len(candidates), len(folds), len(folds[0].split.user_ids)), np.nan)
    alive = np.arange(len(candidates))
    # One fold, one more, then all the others: the field is thinned in between.
    everywhere = list(range(len(folds)))
    stages = [[0], [1], everywhere[2:]] if halving else [everywhere]
    total, left = 0, len(alive)
    for stage in stages:
        total, left = total + left * len(stage), min(left, _n_kept(left))
    done = 0
    with report_progress(verbose, "fits of the search", total) as tell:
        for stage in stages:
            todo = [(k, path) for k in stage for path in paths(candidates, alive)]
            found = Parallel(n_jobs=n_jobs, return_as="generator")(
                delayed(folds[k].follow)([candidates[c] for c in path]) for k, path in todo
            )
            for (k, path), values in zip(todo, found, strict=True):
                scores[path, k] = values
                done += len(path)
                tell(done, f"fold {k + 1}")
            means = mean_over_users(scores[alive])[0]
            if stage is not stages[-1]:
                best = np.argsort(-means, kind="stable")[: _n_kept(len(alive))]
                alive = np.sort(alive[best])
    return scores


def _n_kept(n_candidates: int) -> int:
    return max(_KEEP_AT_LEAST, round(_KEEP * n_candidates))


def choose(scores: Float, simplicity: Sequence[tuple[float, ...]] | None) -> int:
    """Return the best candidate that saw all folds; or the simplest within a standard error.

    Parameters
    ----------
    scores : array of shape (n_candidates, n_folds, n_users)
        What `race` returned.
    simplicity : sequence of tuples, optional
        What orders candidates from simple to complex.
    """
    n_folds = folds_seen(scores)
    means, errors = mean_over_users(scores)
    if not np.isfinite(means).any():
        raise ValueError(
            "No fold has labels of both classes on both sides: with one class there is no "
            "pair to rank. Ask for fewer with n_folds=, or gather more labels per person."
        )
    finalists = np.flatnonzero(n_folds == n_folds.max())
    best = finalists[np.nanargmax(means[finalists])]
    if simplicity is None:
        return int(best)
    close = finalists[means[finalists] >= means[best] - errors[best]]
    return int(min(close, key=lambda c: simplicity[c]))


def as_results(candidates: list[Candidate], scores: Float) -> dict[str, Any]:
    """Return what there is to know about the candidates, as scikit-learn's searches do."""
    n_folds = folds_seen(scores)
    means, errors = mean_over_users(scores)
    order = np.lexsort([-means, -n_folds])
    return {
        "params": candidates,
        "mean_test_score": means,
        "standard_error": errors,
        "n_folds": n_folds,
        "rank_test_score": np.argsort(order) + 1,
        **{f"split{k}_test_score": nan_mean(scores[:, k]) for k in range(scores.shape[1])},
    }


def folds_seen(scores: Float) -> Index:
    """Return how many folds each candidate saw."""
    return np.asarray(np.isfinite(scores).any(axis=2).sum(axis=1))


def mean_over_users(scores: Float) -> tuple[Float, Float]:
    """Average over folds, then over people: mean and standard error by candidate."""
    each = nan_mean(scores.transpose(0, 2, 1))
    count = np.isfinite(each).sum(axis=1)
    mean = nan_mean(each)
    squares = nan_mean((each - mean[:, None]) ** 2)
    return mean, np.sqrt(squares / np.maximum(count - 1, 1))
