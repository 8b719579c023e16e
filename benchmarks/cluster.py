"""The same fit on a Dask cluster of two worker processes, and on two threads of one process."""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.exceptions import ConvergenceWarning

from benchmarks.results import Result, at_most
from likeminds import Annotations, HierarchicalRanker
from likeminds.cluster import Shards
from likeminds.paper.experiments.timing import seconds

_EACH, _N_FEATURES, _N_ITEMS, _N_FILES = 50, 64, 5_000, 8


def run(quick: bool) -> Result:
    """Measure the shuffle, and fits here and there."""
    from distributed import Client, LocalCluster  # noqa: PLC0415 - optional

    n_people, d = (400, 8) if quick else (100_000, _N_FEATURES)
    users, items, labels, features = _crowd(n_people, d)
    setup = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        warnings.catch_warnings(),
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(**setup) as cluster,
        Client(cluster) as client,
    ):
        warnings.simplefilter("ignore", ConvergenceWarning)
        for number, rows in enumerate(np.array_split(np.arange(len(users)), _N_FILES)):
            part = {"user": users[rows], "item": items[rows], "label": labels[rows]}
            pq.write_table(pa.table(part), Path(folder) / f"{number}.parquet")
        found: dict[str, Shards] = {}

        def shuffle() -> None:
            found["shards"] = Shards.from_parquet(folder, client, features, n_shards=4)

        shuffled = seconds(shuffle)
        shards = found["shards"]
        there, fitted_there = _fitted(shards)
        traffic = shards.traffic
    said = Annotations(users, items, labels, features, features_per="item")
    here, fitted_here = _fitted(said)
    apart = float(np.abs(fitted_here.coef_ - fitted_there.coef_).max())
    visits = max(traffic.visits, 1)
    return Result(
        title="On a cluster",
        compares=f"`HierarchicalRanker(n_groups=3)` on {n_people:,} people x {_EACH} labels x {d} "
        "features: two Dask worker processes, four shards, against the threads of one process.",
        tables=[
            {
                "columns": ["what", "seconds"],
                "rows": [
                    [f"reading {_N_FILES} Parquet files, and one shuffle by person", shuffled],
                    ["the fit on two workers", there],
                    ["the fit in one process", here],
                ],
            },
            {
                "columns": ["traffic", "number"],
                "rows": [
                    ["visits", traffic.visits],
                    ["KB sent to a shard, by visit", traffic.sent / visits / 4e3],
                    ["KB returned by a shard, by visit", traffic.returned / visits / 4e3],
                ],
            },
        ],
        goals=[
            at_most("two workers, times two threads", 1.3, there / here, judge=not quick),
            at_most("largest difference of a weight", 1e-6, apart, judge=not quick),
        ],
        notes=[],
        series={},
    )


def _crowd(n_people: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((_N_ITEMS, d))
    users = np.repeat(np.arange(n_people), _EACH)
    items = rng.integers(0, _N_ITEMS, len(users))
    directions = rng.standard_normal((3, d)) / np.sqrt(d)
    own = rng.standard_normal((n_people, 3))
    consensus = rng.standard_normal(d) / np.sqrt(d)
    common, along = features @ consensus, features @ directions.T
    scores = common[items] + np.einsum("nk,nk->n", along[items], own[users])
    labels = scores + rng.logistic(size=len(scores)) > 0
    order = rng.permutation(len(users))
    return users[order], items[order], labels[order], features


def _fitted(crowd: Shards | Annotations) -> tuple[float, HierarchicalRanker]:
    ranker = HierarchicalRanker(n_groups=3, item_effects=False)
    return seconds(lambda: ranker.fit(crowd)), ranker
