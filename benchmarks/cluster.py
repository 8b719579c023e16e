"""The same fit on a Dask cluster of two worker processes, and on two threads of one process."""

import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.exceptions import ConvergenceWarning

from benchmarks.results import Result, at_most
from likeminds import Annotations, HierarchicalRanker
from likeminds.cluster import Shards
from likeminds.paper.experiments.timing import seconds

_EACH, _N_FEATURES, _N_ITEMS = 50, 64, 5_000
N_FILES = 8


def run(quick: bool) -> Result:
    """Measure the shuffle, and fits here and there."""
    from distributed import Client, LocalCluster  # noqa: PLC0415 - optional

    n_users, d = (400, 8) if quick else (100_000, _N_FEATURES)
    users, items, labels, features = make_crowd(n_users, _EACH, d)
    setup: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    setup["processes"] = not quick  # which take longer to start than a tiny fit
    with (
        warnings.catch_warnings(),
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(**setup) as cluster,
        Client(cluster) as client,
    ):
        warnings.simplefilter("ignore", ConvergenceWarning)
        write_parts(folder, users, items, labels)
        found: dict[str, Shards] = {}

        def shuffle() -> None:
            found["shards"] = Shards.from_folder(folder, client, features)

        shuffled = seconds(shuffle)
        shards = found["shards"]
        before = _cpu_of(client)
        there, fitted_there = _fitted(shards)
        cpu_there = _cpu_of(client) - before
        traffic = shards.traffic
    said = Annotations(users, items, labels, features, features_per="item")
    before = time.process_time()
    here, fitted_here = _fitted(said)
    cpu_here = time.process_time() - before
    apart = float(np.abs(fitted_here.coef_ - fitted_there.coef_).max())
    visits = max(traffic.visits, 1)
    return Result(
        title="On a cluster",
        compares=f"`HierarchicalRanker(n_groups=3)` on {n_users:,} people x {_EACH} labels x {d} "
        "features: two Dask worker processes, a shard each, against the threads of one process.",
        tables=[
            {
                "columns": ["what", "seconds", "CPU seconds"],
                "rows": [
                    [f"reading {N_FILES} Parquet files, and one shuffle", shuffled, None],
                    ["the fit on two workers", there, cpu_there],
                    ["the fit in one process", here, cpu_here],
                ],
            },
            {
                "columns": ["traffic", "number"],
                "rows": [
                    ["visits", traffic.visits],
                    ["KB sent to a shard, by visit", traffic.sent / visits / 2e3],
                    ["KB returned by a shard, by visit", traffic.returned / visits / 2e3],
                    ["MB of what people have, in the end", traffic.asked / 1e6],
                ],
            },
        ],
        goals=[
            at_most("two workers, times two threads", 1.3, there / here, judge=not quick),
            at_most("the same in CPU seconds", 1.3, cpu_there / cpu_here, judge=not quick),
            at_most("largest difference of a weight", 1e-6, apart, judge=not quick),
        ],
        notes=[],
        series={},
    )


def _cpu_of(client: Any) -> float:
    """Return the CPU seconds of this process and of all workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


def write_parts(folder: str, users: Any, items: Any, labels: Any) -> None:
    """Write labels to Parquet files, in the order of rows."""
    for number, rows in enumerate(np.array_split(np.arange(len(users)), N_FILES)):
        part = {"user": users[rows], "item": items[rows], "label": labels[rows]}
        pq.write_table(pa.table(part), Path(folder) / f"{number}.parquet")


def make_crowd(n_users: int, each: int, d: int) -> tuple[Any, Any, Any, Any]:
    """Return people, items and labels of rows in any order, and the features of items."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((_N_ITEMS, d))
    users = np.repeat(np.arange(n_users), each)
    items = rng.integers(0, _N_ITEMS, len(users))
    directions = rng.standard_normal((3, d)) / np.sqrt(d)
    own = rng.standard_normal((n_users, 3))
    consensus = rng.standard_normal(d) / np.sqrt(d)
    common, along = features @ consensus, features @ directions.T
    scores = common[items] + np.einsum("nk,nk->n", along[items], own[users])
    labels = scores + rng.logistic(size=len(scores)) > 0
    order = rng.permutation(len(users))
    return users[order], items[order], labels[order], features


def _fitted(crowd: Shards | Annotations) -> tuple[float, HierarchicalRanker]:
    ranker = HierarchicalRanker(n_groups=3, item_effects=False)
    return seconds(lambda: ranker.fit(crowd)), ranker
