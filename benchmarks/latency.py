"""Latency, each compared with its floor in the same run.

python -m benchmarks.latency [--rows 10000000] [--users 2000]

Starts of the program are compared with Python's, the best ten of 100,000 items for all users with
the bare product, and tables of labels with pyarrow alone (time, and peak memory over the size of
the table). One newcomer is timed, too.
"""

import argparse
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from benchmarks.results import Goal, Result, at_most

_REPEATS = 5


def _seconds(work: Callable[[], Any], repeats: int = _REPEATS) -> float:
    """Return the shortest of a few times."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def _peak() -> int:
    """Return the most memory this process has had, in KiB; not, as `resource` does, its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def _starts(repeats: int) -> dict[str, float]:
    def start(*words: str) -> float:
        run = [sys.executable, *words]
        return _seconds(lambda: subprocess.run(run, check=False, capture_output=True), repeats)

    likeminds = ("-c", "from likeminds.cli import main; main()")
    return {
        "python": start("-c", "pass"),
        "import numpy": start("-c", "import numpy"),
        "import likeminds": start("-c", "import likeminds; likeminds.Annotations"),
        "likeminds --help": start(*likeminds, "--help"),
        "likeminds rank --help": start(*likeminds, "rank", "--help"),
    }


def _newcomer() -> dict[str, float]:
    from likeminds import HierarchicalRanker, load_electricity  # noqa: PLC0415

    said = load_electricity()
    ranker = HierarchicalRanker(n_groups=2).fit(said)
    X, y = said.X[:8], said.labels[:8]
    one = _seconds(lambda: ranker.newcomer(X, y).decision_function(X), 20)
    return {"newcomer": one, "decision_function alone": _seconds(lambda: ranker.coef_ @ X.T, 20)}


def _all_users(n_users: int, n_items: int, n_features: int = 64) -> dict[str, float]:
    from likeminds.rankers.ranking import best_items  # noqa: PLC0415

    rng = np.random.default_rng(0)
    weights = rng.standard_normal((n_users, n_features))
    rows = rng.standard_normal((n_items, n_features))
    columns = np.ascontiguousarray(rows.T)
    size = max(1, (1 << 26) // (8 * n_items))
    blocks = [weights[start : start + size] for start in range(0, n_users, size)]

    def products() -> None:
        for block in blocks:
            block @ columns

    def best() -> None:
        for _ in best_items(weights.__getitem__, len(weights), rows, 10):
            pass

    before = _peak()
    best()
    more = _peak() - before
    # In turns, by the processor's time too: other programs then count little.
    turns = [(_timed(products), _timed(best)) for _ in range(5)]
    (bare, bare_cpu), (found, cpu) = (np.min([turn[k] for turn in turns], axis=0) for k in (0, 1))
    return {"bare product": float(bare), "best ten": float(found), "ratio": float(found / bare)} | {
        "ratio of CPU seconds": float(cpu / bare_cpu),
        "more memory, MiB": more / 1024,
    }


def _timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Return seconds, and those of the processor."""
    started, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - started, time.process_time() - cpu


def _write_labels(folder: Path, n_rows: int, stem: str = "labels") -> None:
    rng = np.random.default_rng(0)
    users = pa.array([f"user-{k}" for k in range(n_rows // 100)])
    items = pa.array([f"item-{k}" for k in range(20_000)])
    columns = {
        "user": users.take(pa.array(rng.integers(len(users), size=n_rows))),
        "item": items.take(pa.array(rng.integers(len(items), size=n_rows))),
        "label": rng.integers(2, size=n_rows),
        **{f"x{k}": rng.standard_normal(n_rows) for k in range(4)},
    }
    parquet.write_table(pa.table(columns), folder / f"{stem}.parquet")
    csv.write_csv(pa.table(columns), folder / f"{stem}.csv")


def _read(send: Any, path: str, alone: bool) -> None:
    from likeminds import Annotations  # noqa: PLC0415

    readers = {".csv": csv.read_csv, ".parquet": parquet.read_table}
    ours = {".csv": Annotations.from_csv, ".parquet": Annotations.from_parquet}
    read = (readers if alone else ours)[Path(path).suffix]
    read(Path(path).with_stem("few"))  # what is imported late is no part of the peak
    before = _peak()
    found: list[Any] = []
    seconds, cpu = _timed(lambda: found.append(read(path)))
    peak = _peak() - before
    send.send((seconds, cpu, peak / 1024, found[0].nbytes / (1 << 20) if alone else 0.0))


def _reading(folder: Path, kind: str) -> dict[str, float]:
    context = multiprocessing.get_context("spawn")
    found = []
    for alone in (True, False):
        receive, send = context.Pipe(duplex=False)
        process = context.Process(target=_read, args=(send, str(folder / f"labels.{kind}"), alone))
        process.start()
        found.append(receive.recv())
        process.join()
    (floor, floor_cpu, _, table), (seconds, cpu, peak, _) = found
    return {"pyarrow": floor, "annotations": seconds, "ratio": seconds / floor} | {
        "ratio of CPU seconds": cpu / floor_cpu,
        "peak over table": peak / table,
    }


def run(quick: bool) -> Result:
    """Measure everything once, for the page."""
    sizes = (20_000, 20, 1) if quick else (10_000_000, 2000, _REPEATS)
    found = dict(_all(*sizes))
    return Result(
        title="Latency",
        compares="Seconds, and floors from the same run. Starts of the program are compared with "
        "Python's; the best ten of 100,000 items x 64 features for 2,000 people with the bare "
        "product; reading 10 million labels with pyarrow alone (each in its own process).",
        tables=[
            {
                "columns": ["what", "measured", "value"],
                "rows": [[name, *part] for name, parts in found.items() for part in parts.items()],
            }
        ],
        goals=list(_goals(found, judge=not quick)),
        notes=[
            "Peaks are the memory that reading adds to the process, over the size of pyarrow's "
            "table."
        ],
        series={},
    )


def _goals(found: dict[str, dict[str, float]], *, judge: bool) -> Iterator[Goal]:
    ratio = found["all users"]["ratio"]
    yield at_most("best ten for all users over the bare product", 1.5, ratio, judge=judge)
    for kind in ("parquet", "csv"):
        told = found[f"reading {kind}"]
        yield at_most(f"{kind} over pyarrow", 2.0, told["ratio"], judge=judge)
        yield at_most(f"{kind}: peak over the table", 2.0, told["peak over table"], judge=judge)


def _all(n_rows: int, n_users: int, repeats: int) -> Iterator[tuple[str, dict[str, float]]]:
    yield "starts", _starts(repeats)
    yield "one newcomer", _newcomer()
    yield "all users", _all_users(n_users, min(100_000, 50 * n_users))
    with tempfile.TemporaryDirectory() as place:
        _write_labels(Path(place), n_rows)
        _write_labels(Path(place), 1000, "few")
        for kind in ("parquet", "csv"):
            yield f"reading {kind}", _reading(Path(place), kind)


def main() -> None:
    """Measure, and print one line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--users", type=int, default=2_000)
    given = parser.parse_args()
    for name, found in _all(given.rows, given.users, _REPEATS):
        print(json.dumps({name: found}), flush=True)


if __name__ == "__main__":
    main()
