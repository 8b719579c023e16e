"""A figure that the paper does not have: when groups and personal columns are found again."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from likeminds._util.array_types import Float, Index
from likeminds.comparing.runs import fit_to_the_end
from likeminds.datasets import Simulation, make_simulation
from likeminds.paper.experiments.rankers import LEARNED, OURS, learned_prior, paper_grid
from likeminds.paper.experiments.report_page import ReportPicture
from likeminds.paper.experiments.result_store import Job, ResultStore
from likeminds.paper.experiments.scale import ExperimentScale
from likeminds.plots.figures import as_png, draw_line, name_axes, new_figure, put_legend_below
from likeminds.rankers.baselines import OnePerUser
from likeminds.rankers.three_level import ThreeLevelRanker
from likeminds.rankers.tuning.search import RankerCV
from likeminds.rankers.tuning.three_level_cv import ThreeLevelRankerCV

ALONE = "One model per person"
RANKERS = (OURS, LEARNED, ALONE)
# As rare as in the paper, but never fewer than the folds of the search want.
_POSITIVE, _LEAST_POSITIVE = 0.02, 4
_STARTS = 20


def recover(scale: ExperimentScale, store: ResultStore, seed: int) -> dict[str, Any]:
    """Return adjusted Rand indices by ranker and labels per person, means over draws."""
    keys = [
        (ranker, n_labels, draw)
        for ranker in RANKERS
        for n_labels in scale.recovery_labels
        for draw in range(scale.recovery_repeats)
    ]
    jobs = [
        Job(
            f"recovery-{n_labels}-{draw}",
            score_recovery,
            {
                "ranker": ranker,
                "n_users": scale.simulation.n_users,
                "n_labels": n_labels,
                "n_features": scale.simulation.n_features,
                "n_folds": scale.n_folds,
                "seed": seed + draw,
            },
        )
        for ranker, n_labels, draw in keys
    ]
    results = list(zip(keys, store.all(jobs), strict=True))
    facts: dict[str, Any] = {}
    for ranker in RANKERS:
        labels = [n for n in scale.recovery_labels if any(k[:2] == (ranker, n) for k, _ in results)]
        of = {n: [r for k, r in results if k[:2] == (ranker, n)] for n in labels}
        facts[ranker] = {"labels": labels} | {
            kind: [float(np.mean([r[kind] for r in of[n]])) for n in labels]
            for kind in ("groups", "personal", "cosine")
        }
    return facts


def score_recovery(
    *, ranker: str, n_users: int, n_labels: int, n_features: int, n_folds: int, seed: int
) -> dict[str, float]:
    """Fit one ranker to one draw, and compare what it says with the truth (a `Job`)."""
    n_positive = max(_LEAST_POSITIVE, round(_POSITIVE * n_labels))
    drawn = make_simulation(n_users, n_labels, n_features, n_positive, random_state=seed)
    fitted = _rankers(drawn, n_folds)[ranker]
    fit_to_the_end(fitted, drawn.annotations)
    n_schools = len(np.unique(drawn.school))
    own = np.linalg.norm(fitted.personal_, axis=1)
    return {
        "groups": float(adjusted_rand_score(drawn.school, schools(fitted.coef_, n_schools))),
        "personal": float(
            adjusted_rand_score(
                np.abs(drawn.personal).sum(axis=1) > 0,
                own > 0 if ranker == OURS else apart(fitted.coef_, n_schools),
            )
        ),
        "cosine": float(np.mean(np.sum(directions(fitted.coef_) * directions(drawn.coef), axis=1))),
    }


def schools(coef: Float, n_schools: int) -> Index:
    """Return the school of each person, by k-means on the directions of their weights."""
    deviation = _deviation(coef)
    found: Index = KMeans(n_schools, n_init=_STARTS, random_state=0).fit_predict(deviation)
    return found


def apart(coef: Float, n_schools: int) -> Index:
    """Divide people in two by how far they are from the leading directions of all."""
    deviation = _deviation(coef)
    _, _, leading = np.linalg.svd(deviation, full_matrices=False)
    leading = leading[: min(n_schools, len(leading))]
    rest = np.linalg.norm(deviation - deviation @ leading.T @ leading, axis=1, keepdims=True)
    found: Index = KMeans(2, n_init=_STARTS, random_state=0).fit_predict(rest)
    return found


def directions(coef: Float) -> Float:
    """Return everybody's weights with unit length: a ranking does not change with the length."""
    lengths = np.linalg.norm(coef, axis=1, keepdims=True)
    return np.asarray(coef / np.where(lengths > 0, lengths, 1.0))


def _deviation(coef: Float) -> Float:
    unit = directions(coef)
    return np.asarray(unit - unit.mean(axis=0))


def _rankers(drawn: Simulation, n_folds: int) -> dict[str, Any]:
    learned = learned_prior(len(drawn.annotations))
    if not n_folds:
        return {OURS: ThreeLevelRanker(), LEARNED: learned, ALONE: OnePerUser()}
    grid = paper_grid(drawn.annotations)
    return {
        OURS: ThreeLevelRankerCV(grid, n_folds=n_folds),
        LEARNED: learned,
        ALONE: RankerCV(OnePerUser(), n_folds=n_folds),
    }


def picture(facts: Mapping[str, Any], labels: Sequence[int]) -> ReportPicture:
    """Draw recovery by labels per person."""
    figure = new_figure(10, 4.2, shown=False)
    left, right = figure.subplots(1, 2, sharey=True)
    for place, name in enumerate(RANKERS):
        shown = facts[name]
        draw_line(left, place, shown["labels"], shown["groups"], name)
        draw_line(right, place, shown["labels"], shown["personal"], name)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xticks(labels, [f"{n:,}" for n in labels])
        axes.minorticks_off()
        axes.set_ylim(-0.1, 1.05)
        axes.axhline(0, color="0.6", linewidth=0.8)
    y = "adjusted Rand index (1 found, 0 chance)"
    name_axes(left, title="a) Which school people belong to", x="labels per person", y=y)
    name_axes(right, title="b) Who has a personal part", x="labels per person", y="")
    put_legend_below(figure, left)
    return ReportPicture(
        "recovery",
        as_png(figure),
        "How well the groups and the people with a personal part are found again, by labels per "
        "person.",
    )
