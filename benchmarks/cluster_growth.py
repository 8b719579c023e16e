"""What travels and what workers hold, by number of workers: formulas and counters.

``python -m benchmarks.cluster_growth`` writes docs/development/cluster-growth.json and its two
tables in cluster.md: what travels, with how far weights are from those of the first number of
workers, and what a worker has in memory. Nothing is timed: more workers than cores only share them.
"""

import argparse
import os
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.cluster import N_FILES, make_crowd, write_parts
from benchmarks.tables import DOCS, markdown, publish
from likeminds import HierarchicalRanker
from likeminds.cluster import Shards

# Weights may differ by so much between numbers of workers.
_SAME = 1e-6
_MANY, _PAGE = 100_000, DOCS / "development" / "cluster.md"
_TRAVELS = ["workers", "sent to a shard, by visit", "returned by it", "the end, by user"]
_TRAVELS += ["weights differ by"]
_HELD = ["workers", "labels of each worker", "at its start", "at most in the shuffle", "permanent"]
_HELD += ["at most in the fit", "after it"]
# People whose labels are shuffled before anything is counted: what is imported is not counted.
_FEW = 200


@dataclass(frozen=True)
class Sizes:
    """What formulas are made of.

    Attributes
    ----------
    people, labels, items : int
        How many there are; of people and labels, on each worker.
    read, named : float
        Labels of the partitions that a worker reads, and people who are in each of these.
    p : int
        Coordinates: the features, and the intercept.
    """

    users: float
    labels: float
    read: float
    named: float
    items: int
    p: int

    @classmethod
    def of(cls, n_users: int, n_labels: int, n_workers: int, table: Any) -> "Sizes":
        """Return the sizes of a crowd whose rows are in files in any order."""
        n_files = -(-N_FILES // n_workers)
        in_a_file = n_users * (1.0 - (1.0 - 1.0 / N_FILES) ** (n_labels / n_users))
        read = max(n_labels / n_workers, n_files * n_labels / N_FILES)
        each = n_users / n_workers, n_labels / n_workers
        return cls(*each, read, n_files * in_a_file, len(table), table.shape[1] + 1)

    @property
    def sent(self) -> float:
        """Bytes of a state with one direction."""
        return 8 * self.p * 3

    @property
    def returned(self) -> float:
        """Bytes of an answer."""
        return 8 * (2 * self.p**2 + self.p + 4)

    @property
    def asked(self) -> float:
        """Bytes of what is known of a person in the end."""
        return 8 * self.p + 4 * min(self.p, 16) * self.p + 8

    @property
    def kept(self) -> float:
        """Bytes that a worker has more, once it has its shard."""
        return 17 * self.labels + 8 * self.users + 8 * self.items * (self.p - 1)

    @property
    def shuffling(self) -> float:
        """Bytes that it has more at most while partitions are read and shards are made."""
        return self.kept + 64 * self.read + 16 * self.named

    @property
    def fitting(self) -> float:
        """Bytes that it has more at most in a fit."""
        return self.kept + (41 + 8 * self.p) * self.labels + 2 * self.asked * self.users


def main() -> None:
    """Measure the crowd with each number of workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=_MANY)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--labels", type=int, default=10)
    parser.add_argument("--features", type=int, default=8)
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows: dict[str, Any] = {}
    first = None
    with tempfile.TemporaryDirectory() as folder:
        users, items, labels, features = make_crowd(given.users, given.labels, given.features)
        write_parts(folder, users, items, labels)
        del users, items, labels
        for n_workers in given.workers:
            found, coef, sizes = _measured(folder, features, n_workers)
            first = coef if first is None else first
            found["apart"] = float(np.abs(coef - first).max())
            assert found["apart"] < _SAME, f"weights differ by {found['apart']}"
            names = ("sent", "returned", "asked", "shuffling", "kept", "fitting")
            found |= {"labels": sizes.labels, "formulas": {n: getattr(sizes, n) for n in names}}
            rows[str(n_workers)] = found
            print(n_workers, found, flush=True)
    if given.users == _MANY:
        publish("development/cluster-growth", rows, _PAGE, as_tables(rows))


def as_tables(rows: dict[str, Any]) -> str:
    """Return what travels, and what workers hold: counters, with the formulas' values."""
    travels, held = [], []
    for n_workers, found in rows.items():
        formulas, empty = found["formulas"], found["empty"]
        counted = [f"{found[n]:,.0f} ({formulas[n]:,.0f})" for n in ("sent", "returned", "asked")]
        travels.append([n_workers, *counted, f"{found['apart']:.0e}"])
        more = [
            f"{(found[n] - empty) / 1e6:,.0f} ({formulas[n] / 1e6:,.0f})"
            for n in ("shuffling", "kept", "fitting")
        ]
        after = f"{(found['after'] - empty) / 1e6:,.0f}"
        held.append([n_workers, f"{found['labels']:,.0f}", f"{empty / 1e6:,.0f}", *more, after])
    between = (
        "Counts include about a kilobyte of pickling, and the formulas do not. Megabytes of the "
        "largest worker, in addition to those at its start:"
    )
    return "\n\n".join([markdown(_TRAVELS, travels), between, markdown(_HELD, held)])


def _measured(folder: str, features: Any, n_workers: int) -> tuple[dict[str, Any], Any, Sizes]:
    """Fit on so many worker processes; return counters, the weights, and what formulas need."""
    from distributed import Client, LocalCluster  # noqa: PLC0415 - optional

    setup = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": None}
    unlimited = {"memory_limit": None}
    with LocalCluster(**setup, **unlimited) as cluster, Client(cluster) as client:
        _warm_up(client, features)
        found = {"empty": most(client, resident)}
        client.run(count_from_here)
        shards = Shards.from_folder(folder, client, features)
        found |= {"kept": most(client, resident), "shuffling": most(client, peak)}
        client.run(count_from_here)
        ranker = HierarchicalRanker(n_groups=1, item_effects=False).fit(shards)
        found |= {"after": most(client, resident), "fitting": most(client, peak)}
        traffic = shards.traffic
        by_shard = max(traffic.visits, 1) * len(shards)
        found |= {"sent": traffic.sent / by_shard, "returned": traffic.returned / by_shard}
        found["asked"] = traffic.asked / len(ranker.users_)
        sizes = Sizes.of(len(ranker.users_), shards.counts.n_labels, n_workers, features)
    return found, ranker.coef_, sizes


def _warm_up(client: Any, features: Any) -> None:
    """Let all workers import what they need, and start their threads."""
    with tempfile.TemporaryDirectory() as folder:
        users, items, labels, _ = make_crowd(_FEW, 4, features.shape[1])
        write_parts(folder, users, items, labels)
        shards = Shards.from_folder(folder, client, features)
        HierarchicalRanker(n_groups=1, item_effects=False).fit(shards)
        shards.release()


def most(client: Any, work: Any) -> int:
    """Return the largest answer of a worker."""
    return max(client.run(work).values())


def resident() -> int:
    """Return the bytes that a process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak() -> int:
    """Return the bytes that it had at most since `count_from_here`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def count_from_here() -> None:
    """Forget what a process had at most."""
    Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    main()
