"""What travels and what workers hold, by numbers of people and workers: formulas and counters.

    python -m benchmarks.cluster_growth --people 100000 1000000 --workers 2 4 8 16

prints the rows of a table for docs/cluster.md. Nothing is timed: more workers than cores only share
them.
"""

import argparse
import ctypes
import gc
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.exceptions import ConvergenceWarning

from benchmarks.cluster import make_crowd, write_parts
from likeminds import HierarchicalRanker
from likeminds.cluster import Shards

# Bytes that were counted, for which there are formulas.
_COUNTED = ("sent", "returned", "asked")


def main() -> None:
    """Measure each number of people with each number of workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--labels", type=int, default=10)
    parser.add_argument("--features", type=int, default=8)
    parser.add_argument(
        "--give-back", action="store_true", help="free memory before it is measured"
    )
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    for n_people in given.people:
        first = None
        with tempfile.TemporaryDirectory() as folder:
            users, items, labels, features = make_crowd(n_people, given.labels, given.features)
            write_parts(folder, users, items, labels)
            del users, items, labels
            for n_workers in given.workers:
                found, coef = _measured(folder, features, n_workers, given.give_back)
                first = coef if first is None else first
                apart = float(np.abs(coef - first).max())
                print(_row(n_people, n_workers, found, apart), flush=True)


def _measured(
    folder: str, features: Any, n_workers: int, give_back: bool
) -> tuple[dict[str, Any], Any]:
    """Fit on so many worker processes; return counters, what formulas say, and the weights."""
    from distributed import Client, LocalCluster  # noqa: PLC0415 - optional

    setup = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": None}
    unlimited = {"memory_limit": None}
    with LocalCluster(**setup, **unlimited) as cluster, Client(cluster) as client:
        client.run(_import)
        empty = max(client.run(_resident).values())
        shards = Shards.from_parquet(folder, client, features)
        if give_back:
            client.run(_give_back)
        there = max(client.run(_resident).values())
        seen: list[int] = []

        def watch(*_: Any) -> None:
            seen.append(max(client.run(_resident).values()))

        ranker = HierarchicalRanker(n_groups=1, item_effects=False, callback=watch)
        ranker.fit(shards)
        p, traffic = features.shape[1] + 1, shards.traffic
        by_shard = max(traffic.visits, 1) * len(shards)
        found = {
            "shards": len(shards),
            "visits": traffic.visits,
            "sent": round(traffic.sent / by_shard),
            "sent_formula": 8 * p * 3,
            "returned": round(traffic.returned / by_shard),
            "returned_formula": 8 * (2 * p**2 + p + 4),
            "asked": round(traffic.asked / len(ranker.users_)),
            "asked_formula": 8 * p + 4 * min(p, 16) * p + 8,
            "worker_mb_empty": round(empty / 1e6),
            "worker_mb_labels": round(there / 1e6),
            "worker_mb_fit": round(max(seen, default=there) / 1e6),
            "labels_each": shards.census.n_labels / n_workers,
        }
    return found, ranker.coef_


def _row(n_people: int, n_workers: int, found: dict[str, Any], apart: float) -> str:
    """Return a row of the table: counters, and in brackets what formulas say."""
    counted = [f"{found[name]:,} ({found[f'{name}_formula']:,})" for name in _COUNTED]
    memory = [found[name] for name in ("worker_mb_empty", "worker_mb_labels", "worker_mb_fit")]
    numbers = [f"{n_people:,}", n_workers, f"{found['labels_each']:,.0f}", *counted, *memory]
    return f"| {' | '.join(map(str, [*numbers, f'{apart:.0e}']))} |"


def _import() -> None:
    import likeminds.cluster  # noqa: F401, PLC0415 - so that it is not counted later


def _give_back() -> None:
    """Give memory that is free back to the system."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)


def _resident() -> int:
    """Return the bytes that a process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
