"""Labels that do not fit in memory: time compared with reading the same columns, and memory.

    python -m benchmarks.out_of_core --labels 10000000 --out docs/out-of-core.json

writes a folder of Parquet files once (``--folder``), then fits in processes of their own.
docs/large.md quotes the JSON file (``python -m tools.quoted_numbers``).
"""

import argparse
import json
import multiprocessing
import resource
import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from likeminds import AnnotationFolder, HierarchicalRanker, ThreeLevelRanker

_ROWS_A_PART = 1_000_000
RANKERS = {
    "three levels": ThreeLevelRanker,
    "learned prior": lambda: HierarchicalRanker(item_effects=False),
}


def write_folder(folder: Path, n_labels: int, labels_each: int, n_features: int) -> None:
    """Write labels of people with schools of thought, rows in any order, in parts of a million."""
    rng = np.random.default_rng(0)
    n_users = n_labels // labels_each
    schools = rng.standard_normal((4, n_features))
    weights = schools[rng.integers(4, size=n_users)] + 0.5 * rng.standard_normal(
        (n_users, n_features)
    )
    folder.mkdir(parents=True)
    for part, start in enumerate(range(0, n_labels, _ROWS_A_PART)):
        n_rows = min(_ROWS_A_PART, n_labels - start)
        X = rng.standard_normal((n_rows, n_features), dtype=np.float32)
        user = rng.integers(n_users, size=n_rows)
        score = np.einsum("nd,nd->n", X, weights[user]) + rng.logistic(size=n_rows)
        columns = {"user": user, "label": score > 0}
        columns |= {f"x{k}": X[:, k] for k in range(n_features)}
        parquet.write_table(pa.table(columns), folder / f"part-{part:05}.parquet")


def read_only(folder: Path) -> int:
    """Read all columns, and do nothing with them."""
    n_rows = 0
    for file in sorted(folder.glob("*.parquet")):
        with parquet.ParquetFile(file) as parts:
            n_rows += sum(len(batch) for batch in parts.iter_batches(_ROWS_A_PART))
    return n_rows


def fit(folder: Path, ranker: str, memory: str, scratch: str) -> int:
    """Fit, and return the number of labels."""
    found = AnnotationFolder(folder, memory_limit=memory, scratch=scratch)
    return int(RANKERS[ranker]().fit(found).n_labels_)


def _largest_own(told: dict[str, float], done: threading.Event) -> None:
    """Watch how much memory is the process's own, and not that of files it has mapped."""
    while not done.wait(0.05):
        lines = Path("/proc/self/status").read_text().splitlines()
        own = next((int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)
        told["own_gib"] = max(told.get("own_gib", 0.0), own / (1 << 20))


def _measured(send, work, arguments) -> None:
    told: dict[str, float] = {}
    done = threading.Event()
    watch = threading.Thread(target=_largest_own, args=(told, done), daemon=True)
    watch.start()
    wall, cpu = time.perf_counter(), time.process_time()
    told["rows"] = work(*arguments)
    told["seconds"] = time.perf_counter() - wall
    told["cpu_seconds"] = time.process_time() - cpu
    done.set()
    told["peak_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    send.send(told)


def measure(work, *arguments) -> dict[str, float]:
    """Work in a process of its own; return rows, seconds and peak memory."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_measured, args=(send, work, arguments))
    process.start()
    send.close()
    found: dict[str, float] = receive.recv()
    process.join()
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print one line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=int, default=5_000_000)
    parser.add_argument("--labels-each", type=int, default=500)
    parser.add_argument("--features", type=int, default=10)
    parser.add_argument("--memory", default="2GB", help="What reading and grouping may take.")
    parser.add_argument("--folder", type=Path, help="Written if it is not there; kept.")
    parser.add_argument("--rankers", nargs="*", default=list(RANKERS), choices=list(RANKERS))
    parser.add_argument("--out", type=Path, help="Write all results to this JSON file.")
    given = parser.parse_args(arguments)
    results: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = given.folder or Path(place) / "labels"
        if not folder.exists():
            write_folder(folder, given.labels, given.labels_each, given.features)
        floor = results["reading alone"] = measure(read_only, folder)
        floor["million_rows_per_cpu_second"] = floor["rows"] / floor["cpu_seconds"] / 1e6
        print(json.dumps({"what": "reading alone", **floor}), flush=True)
        for name in given.rankers:
            scratch = str(Path(place) / "scratch")
            found = measure(fit, folder, name, given.memory, scratch)
            results[name] = found
            found["million_rows_per_cpu_second"] = found["rows"] / found["cpu_seconds"] / 1e6
            found["over_reading"] = found["seconds"] / floor["seconds"]
            found["cpu_over_reading"] = found["cpu_seconds"] / floor["cpu_seconds"]
            print(json.dumps({"what": name, **found}), flush=True)
            shutil.rmtree(scratch, ignore_errors=True)
    if given.out:
        given.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
