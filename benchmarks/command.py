"""The command: every benchmark in a process of its own, then the page and the picture.

This process imports nothing large, so that what a benchmark's process is charged for is its
own memory.
"""

import argparse
import importlib
import json
import os
import platform
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.page import write_page
from benchmarks.picture import write_picture

# Name: the module and the function in it.
BENCHMARKS = {
    "floor": ("floor", "run"),
    "starts": ("starts", "run"),
    "minima": ("starts", "run_minima"),
    "table2": ("table2", "run"),
    "growth": ("growth", "run"),
    "tuning": ("tuning", "run"),
    "auc": ("auc", "run"),
    "baselines": ("baselines", "run"),
    "peers": ("peers", "run"),
    "hierarchical": ("hierarchical", "run"),
    "hierarchical_crowd": ("large", "run"),
    "hierarchical_million": ("large", "run_million"),
    "models": ("models", "run"),
    "newcomers": ("newcomers", "run"),
    "wide": ("wide", "run"),
    "latency": ("latency", "run"),
    "service": ("service", "run"),
    "cluster": ("cluster", "run"),
    "crowd": ("crowd", "run"),
    "million": ("crowd", "run_million"),
}


def main(arguments: list[str] | None = None) -> int:
    """Run what is asked for, and write all that is known."""
    asked = _parser().parse_args(arguments)
    if asked.child:
        print(json.dumps(_measured(asked.child, asked.quick)))
        return 0
    asked.out.mkdir(parents=True, exist_ok=True)
    store = asked.out / "benchmarks.json"
    results = json.loads(store.read_text()) if store.exists() else {}
    for name in _chosen(asked):
        print(f"{name} ...", flush=True)
        measure = _measured if asked.here else _in_own_process
        results[name] = measure(name, asked.quick)
        print(f"{name}: {results[name]['seconds']:.0f} s", flush=True)
        store.write_text(json.dumps(results, indent=1) + "\n")
    ordered = {name: results[name] for name in BENCHMARKS if name in results}
    problem = write_picture(ordered, asked.out / "benchmarks.png")
    write_page(ordered, asked.out / "benchmarks.md", problem)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does everything run?")
    parser.add_argument("--only", choices=BENCHMARKS, nargs="+", help="these; the others are kept")
    parser.add_argument("--million", action="store_true", help="a million people, too")
    parser.add_argument("--here", action="store_true", help="without processes of their own")
    parser.add_argument("--redraw", action="store_true", help="page and picture of what is kept")
    parser.add_argument("--out", type=Path, default=Path("docs"), help="where to write")
    parser.add_argument("--child", choices=BENCHMARKS, help=argparse.SUPPRESS)
    return parser


def _chosen(asked: argparse.Namespace) -> list[str]:
    if asked.redraw:
        return []
    if asked.only:
        return list(asked.only)
    return [name for name in BENCHMARKS if not name.endswith("million") or asked.million]


def _in_own_process(name: str, quick: bool) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks", "--child", name, *(["--quick"] * quick)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def _measured(name: str, quick: bool) -> dict[str, Any]:
    """Run one benchmark here, and say what it cost and where it ran."""
    module, function = BENCHMARKS[name]
    timing = importlib.import_module("likeminds.paper.experiments.timing")
    busy, start = _busy_seconds(), time.perf_counter()
    result = getattr(importlib.import_module(f"benchmarks.{module}"), function)(quick)
    taken = time.perf_counter() - start
    # Kilobytes, except on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30
    for goal in result["goals"]:
        if goal["what"] == "peak memory, GiB":
            goal["measured"] = peak
            goal["met"] = None if quick else peak <= goal["bound"]
    return {
        **result,
        "quick": quick,
        "seconds": taken,
        "peak_gib": peak,
        "cores": timing.n_cores(),
        "blas_threads": timing.blas_threads(),
        "others_cores": busy and (_busy_seconds() - busy - _own_seconds()) / taken,
        "python": platform.python_version(),
        "numpy": importlib.import_module("numpy").__version__,
        "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _busy_seconds() -> float | None:
    """Return how long all cores together have been busy since the machine started (Linux)."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return None
    user, nice, system, _idle, _wait, *rest = map(int, stat.read_text().split()[1:9])
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    """Return how long this process has kept a core busy."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
