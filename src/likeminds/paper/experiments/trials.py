"""Repeated splits of one data set: tuned in every repeat, or once for all."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from likeminds._util.array_types import Float
from likeminds.comparing.comparison import Comparison, compare
from likeminds.data.annotations import Annotations
from likeminds.features.reduction import Reduce
from likeminds.metrics.paired import PairedDifference, over_repeats
from likeminds.paper.experiments.rankers import LEARNED, compared_rankers, learned_prior
from likeminds.paper.experiments.result_store import ResultStore
from likeminds.paper.experiments.scale import ExperimentScale, Tuned
from likeminds.paper.experiments.trial_rankers import ComparedRanker, as_compared

# The paper holds out 15 %.
TEST_SIZE = 0.15


@dataclass(frozen=True, eq=False)
class Trials:
    """Mean AUC of every ranker in every repeat.

    Attributes
    ----------
    by_repeat : mapping from name to array
        One value for each repeat that the ranker took part in.
    parameters : mapping from name to str
        Those chosen in the first repeat, as JSON.
    seconds : mapping from name to float
        Median time of a fit, search included where there was one.
    """

    by_repeat: Mapping[str, Float]
    parameters: Mapping[str, str]
    seconds: Mapping[str, float]

    @cached_property
    def means(self) -> dict[str, float]:
        """Means over repeats."""
        return {name: float(values.mean()) for name, values in self.by_repeat.items()}

    def deviation(self, name: str) -> float:
        """Return the standard deviation over repeats, NaN of one."""
        values = self.by_repeat[name]
        return float(values.std(ddof=1)) if len(values) > 1 else float("nan")

    def difference(self, name: str, against: str) -> PairedDifference:
        """Judge one ranker against another over the repeats that both took part in."""
        first, second = self.by_repeat[name], self.by_repeat[against]
        shared = min(len(first), len(second))
        return over_repeats(first[:shared] - second[:shared], TEST_SIZE)

    def together(self, other: "Trials") -> "Trials":
        """Return these and others, of the same splits."""
        return Trials(
            {**self.by_repeat, **other.by_repeat},
            {**self.parameters, **other.parameters},
            {**self.seconds, **other.seconds},
        )

    def facts(self) -> dict[str, Any]:
        """Return all of it as plain lists."""
        return {
            "auc": {name: values.tolist() for name, values in self.by_repeat.items()},
            "parameters": dict(self.parameters),
            "seconds": dict(self.seconds),
        }


def run_trials(
    annotations: Annotations,
    scale: ExperimentScale,
    store: ResultStore,
    seed: int,
    *,
    tuned: Tuned,
    share: float | None = None,
) -> Trials:
    """Let everybody take part on one data set; the learned prior where the scale says so.

    Parameters
    ----------
    annotations : Annotations
        One attribute.
    scale, store, seed
        Repeats and folds; where fits are kept; the first split.
    tuned : {"in every repeat", "in the first repeat"}
        Whether penalties found in the first repeat's training rows serve for all repeats.
    share : float, optional
        Reduce features to components with this share of the variance, in each split anew.
    """
    n_features = None if share is None else Reduce(share).fit(annotations).n_components_
    everybody = as_compared(compared_rankers(annotations, scale.n_folds, seed, n_features), share)
    if not scale.n_folds:
        everybody = {name: ranker.settle({}) for name, ranker in everybody.items()}
    first = run_compared(annotations, everybody, scale.repeats, store, seed, tuned=tuned)
    alone = as_compared({LEARNED: learned_prior(len(annotations))}, share)
    second = run_compared(annotations, alone, scale.repeats, store, seed, tuned=tuned)
    return first.together(second)


def run_compared(
    annotations: Annotations,
    rankers: Mapping[str, ComparedRanker],
    repeats: int,
    store: ResultStore,
    seed: int,
    *,
    tuned: Tuned,
    test_size: float = TEST_SIZE,
) -> Trials:
    """Compare some rankers, tuned in every repeat or in the first."""
    options: dict[str, Any] = {
        "test_size": test_size,
        "n_jobs": store.n_jobs,
        "random_state": seed,
        "folder": store.cells,
        "progress": store.finished,
    }
    searching = {name: ranker for name, ranker in rankers.items() if ranker.searches}
    if tuned == "in every repeat" or not searching:
        return _trials(compare(annotations, rankers, repeats=repeats, **options))
    search = _trials(compare(annotations, searching, repeats=1, **options))
    fixed = {
        name: ranker.settle(json.loads(search.parameters[name])) if name in searching else ranker
        for name, ranker in rankers.items()
    }
    found = _trials(compare(annotations, fixed, repeats=repeats, **options))
    # What was chosen, and what it took to choose it.
    return Trials(
        found.by_repeat,
        {**found.parameters, **search.parameters},
        {**found.seconds, **search.seconds},
    )


def _trials(comparison: Comparison) -> Trials:
    table = comparison.cells
    rows: dict[str, pa.Table] = {
        name: table.filter(compute.equal(table["ranker"], name)) for name in comparison.rankers
    }
    return Trials(
        {name: np.array(part["mean_score"].to_pylist()) for name, part in rows.items()},
        {name: part["parameters"][0].as_py() for name, part in rows.items()},
        {name: float(np.median(part["seconds"].to_numpy())) for name, part in rows.items()},
    )
