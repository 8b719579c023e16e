"""What one shuffle by person moves, and what stays: rows against statistics, formulas and counters.

``python -m benchmarks.cluster_shuffle`` writes docs/development/cluster-shuffle.json and its table
in cluster.md, for crowds with a million labels each. Nothing is timed. Where features are columns
of the rows, workers that get rows have a table of all items, too.
"""

import argparse
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.cluster import N_FILES, make_crowd
from benchmarks.cluster_growth import count_from_here, most, peak, resident
from benchmarks.tables import DOCS, markdown, publish
from likeminds import ThreeLevelRanker
from likeminds.cluster import Shards
from likeminds.cluster.partitions import shards_of

_N_WORKERS, _MANY = 2, 1_000_000
_WAYS = ("rows", "statistics")
_MEASURED = ("sent", "sent by formula", "peak", "permanent", "permanent by formula")
# Fits differ by no more than this.
_SAME = 1e-6


def main() -> None:
    """Shuffle each crowd in both ways, with features apart and in the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=int, default=_MANY)
    parser.add_argument("--each", type=int, nargs="+", default=[10, 5000])
    parser.add_argument("--features", type=int, default=8)
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    rows = []
    for each in given.each:
        users, items, labels, features = make_crowd(given.labels // each, each, given.features)
        with tempfile.TemporaryDirectory() as folder:
            _write(folder, users, items, labels, features)
            for in_rows in (False, True):
                expected = _expected(users, items, features, in_rows)
                found = [_shuffled(folder, features, in_rows, way) for way in (False, True)]
                apart = float(np.abs(found[0][-1] - found[1][-1]).max())
                assert apart < _SAME, f"weights differ by {apart}"
                row: dict[str, Any] = {"labels": each, "in rows": in_rows, "apart": apart}
                kept = _kept(each, len(users), features)
                for way, one, moved, held in zip(_WAYS, found, expected, kept, strict=True):
                    numbers = (one[0], moved, *one[1:-1], held)
                    row[way] = dict(zip(_MEASURED, map(float, numbers), strict=True))
                rows.append(row)
                print(row, flush=True)
    if given.labels == _MANY:
        publish("development/cluster-shuffle", rows, DOCS / "development/cluster.md", table(rows))


def table(rows: list[dict[str, Any]]) -> str:
    """Return megabytes, with the formulas' values in brackets."""
    head = ["labels of each user", "features"]
    head += [f"{way}: {what}" for way in _WAYS for what in ("sent", "peak", "permanent")]
    cells = []
    for row in rows:
        cells.append([f"{row['labels']:,}", "columns" if row["in rows"] else "a table"])
        for way in _WAYS:
            sent, formula, peak, stays, held = (row[way][name] / 1e6 for name in _MEASURED)
            cells[-1] += [f"{sent:,.1f} ({formula:,.1f})", f"{peak:,.0f}"]
            cells[-1] += [f"{stays:,.0f} ({held:,.0f})"]
    return markdown(head, cells)


def _write(folder: str, users: Any, items: Any, labels: Any, features: Any) -> None:
    """Write rows in any order, with the features of their items."""
    for number, rows in enumerate(np.array_split(np.arange(len(users)), N_FILES)):
        part = {"user": users[rows], "item": items[rows], "label": labels[rows]}
        part |= {f"x{n}": column for n, column in enumerate(features[items[rows]].T)}
        pq.write_table(pa.table(part), Path(folder) / f"{number}.parquet")


def _shuffled(folder: str, features: Any, in_rows: bool, statistics: bool) -> tuple[Any, ...]:
    """Return the bytes that move, what the largest worker has at most and keeps, and weights."""
    from distributed import Client, LocalCluster  # noqa: PLC0415 - optional

    given: Any = [f"x{n}" for n in range(features.shape[1])] if in_rows else features
    setup = {"n_workers": _N_WORKERS, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**setup, memory_limit=None) as cluster, Client(cluster) as client:
        some = pa.table(pq.read_table(Path(folder) / "0.parquet")[:500])
        Shards.from_parts([some] * _N_WORKERS, client, given, statistics=statistics).release()
        empty = most(client, resident)
        client.run(count_from_here)
        shards = Shards.from_folder(folder, client, given, statistics=statistics)
        at_most, stays = most(client, peak) - empty, most(client, resident) - empty
        ranker = ThreeLevelRanker(n_groups=0).fit(shards)
        return shards.shuffled, at_most, stays, ranker.coef_


def _expected(users: Any, items: Any, features: Any, in_rows: bool) -> tuple[int, int]:
    """Return the bytes that formulas say: of rows, and of statistics."""
    d = features.shape[1]
    arrays = 8 * 2 * (1 + d + d * (d + 1) // 2)
    of_rows, of_statistics = 9 * len(users), 0
    shard = shards_of(np.arange(users.max() + 1).tolist(), _N_WORKERS)
    for rows in np.array_split(np.arange(len(users)), N_FILES):
        n_rows = np.bincount(users[rows])
        there = n_rows > 0
        named = len(np.unique(items[rows] * _N_WORKERS + shard[users[rows]]))
        of_rows += 8 * (int(there.sum()) + named)
        a_row = 5 + 8 * d * len(np.unique(items[rows])) / len(rows) if in_rows else 5
        few = n_rows < np.ceil(arrays / a_row)
        each = np.where(few, 8 + 5 * n_rows, 4 + arrays) + 8
        of_statistics += int(each[there].sum())
        if in_rows:
            mine = rows[few[users[rows]]]
            places = np.unique(items[mine] * _N_WORKERS + shard[users[mine]])
            of_statistics += 8 * d * len(places)
    return of_rows, of_statistics


def _kept(each: int, n_labels: int, features: Any) -> tuple[float, float]:
    """Return the bytes that a worker has of rows, and of statistics; but for tables in columns."""
    labels, (n_items, d) = n_labels / _N_WORKERS, features.shape
    users = labels / each
    both = 8 * users + 8 * n_items * d
    of_statistics = users * 16 * (1 + d + d * d) if each >= d else 9 * labels
    return both + 17 * labels, both + of_statistics


if __name__ == "__main__":
    main()
