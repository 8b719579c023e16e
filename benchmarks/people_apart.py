"""What a model of very many people takes in memory, in one file and with people apart.

``python -m benchmarks.people_apart`` makes a model of simulated people, asks it for rankings of
some of them in processes of their own, and writes docs/development/people-apart.json, which
model-files.md quotes (``python -m tools.quoted_numbers``).
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from copy import copy
from pathlib import Path

import numpy as np

from benchmarks.tables import DOCS
from likeminds import HierarchicalRanker, load, make_schools, save

_ASKED, _MANY = 200, 1_000_000


def main() -> None:
    """Measure, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=_MANY)
    parser.add_argument("--features", type=int, default=8)
    parser.add_argument("--users-per-file", type=int, default=20_000)
    parser.add_argument("--ask", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.ask:
        print(json.dumps(ask(Path(given.ask), given.users, given.features)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        ranker = simulated(given.users, given.features)
        one, apart = Path(scratch) / "one.likeminds", Path(scratch) / "apart.likeminds"
        save(ranker, one)
        save(ranker, apart, users_per_file=given.users_per_file)
        found = {
            "users": given.users,
            "megabytes": sum(file.stat().st_size for file in apart.iterdir()) / 1e6,
            "files": -(-given.users // given.users_per_file),
            "one file": _in_another_process(one, given),
            "people apart": _in_another_process(apart, given),
        }
    print(json.dumps(found, indent=1))
    if given.users == _MANY:
        path = DOCS / "development" / "people-apart.json"
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def simulated(n_users: int, n_features: int) -> HierarchicalRanker:
    """Return a model of many people: those of a small one, with noise, under other names."""
    said = make_schools(200, 20, 100, n_features, n_schools=2, random_state=0).annotations
    ranker = HierarchicalRanker(n_groups=1, item_effects=False).fit(said)
    many, rng = copy(ranker), np.random.default_rng(0)
    who = rng.integers(0, 200, n_users)
    del many.annotations_
    for name in ("coef_", "group_", "personal_", "intercept_", "information_", "factor_weights_"):
        setattr(many, name, getattr(ranker, name)[who])
    many.personal_ += rng.normal(size=many.personal_.shape)
    many.coef_ = many.consensus_ + many.group_ + many.personal_
    many.users_ = np.array([_name(n) for n in range(n_users)], dtype=object)
    return many


def ask(path: Path, n_users: int, n_features: int) -> dict[str, float]:
    """Rank for some people; return milliseconds, and megabytes that this process holds more."""
    items = dict(enumerate(np.random.default_rng(1).normal(size=(100, n_features))))
    before = _held()
    start = time.perf_counter()
    ranker = load(path)
    opened = time.perf_counter()
    ranker.rank(_name(0), items, k=10)
    first = time.perf_counter()
    for n in np.random.default_rng(2).integers(0, n_users, _ASKED):
        ranker.rank(_name(n), items, k=10)
    end = time.perf_counter()
    after = _held()
    return {
        "open": 1e3 * (opened - start),
        "first": 1e3 * (first - start),
        "others": 1e3 * (end - first) / _ASKED,
        "resident": after[0] - before[0],
        "own": after[1] - before[1],
    }


def _name(n: int) -> str:
    return f"person-{n:09d}"


def _held() -> tuple[float, float]:
    """Return the resident memory of this process, and that of no file, in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    said = {line.split(":")[0]: line.split() for line in lines}
    return float(said["VmRSS"][1]) / 1e3, float(said["RssAnon"][1]) / 1e3


def _in_another_process(path: Path, given: argparse.Namespace) -> dict[str, float]:
    sizes = ["--users", str(given.users), "--features", str(given.features)]
    command = [sys.executable, "-m", "benchmarks.people_apart", "--ask", str(path), *sizes]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    main()
