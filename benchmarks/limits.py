"""Sizes at the edge of what is legal: processor seconds and peak memory of fit, save and load.

    python -m benchmarks.limits

Each case runs in a process of its own. ``--page`` writes the table in docs/large.md anew, from all
cases that were measured, also in earlier runs (``--only columns``); docs/limits.json keeps them.
"""

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.out_of_core import measure
from likeminds import Annotations, AttributeModel, HierarchicalRanker, load, save
from likeminds.baselines import RidgeToConsensus

_DOCS = Path(__file__).parent.parent / "docs"
_BEGIN, _END = "<!-- limits: python -m benchmarks.limits -->", "<!-- end of limits -->"


def people(n: int) -> tuple[Any, Annotations]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 10))
    liked = X @ rng.standard_normal(10) + rng.logistic(size=n) > 0
    return HierarchicalRanker(), Annotations(
        users=np.arange(n), items=None, labels=liked, features=X, features_per="row"
    )


def columns(n: int) -> tuple[Any, Annotations]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, n), dtype=np.float32)
    item = np.concatenate([rng.permutation(200)[:40] for _ in range(50)])
    score = X @ rng.standard_normal(n, dtype=np.float32) / np.sqrt(n)
    return HierarchicalRanker(), Annotations(
        users=np.repeat(np.arange(50), 40),
        items=item,
        labels=score[item] + rng.logistic(size=len(item)) > 0,
        features=X,
        item_ids=np.arange(200),
        features_per="item",
    )


def one_user(n: int) -> tuple[Any, Annotations]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + 1000, 10))
    liked = X @ rng.standard_normal(10) + rng.logistic(size=len(X)) > 0
    users = np.append(np.zeros(n, dtype=int), np.repeat(np.arange(1, 11), 100))
    return HierarchicalRanker(), Annotations(
        users=users, items=None, labels=liked, features=X, features_per="row"
    )


def attributes(n: int) -> tuple[Any, Annotations]:
    rng = np.random.default_rng(0)
    each = 40
    ranker = RidgeToConsensus() if n > 100 else HierarchicalRanker()
    return AttributeModel(ranker), Annotations(
        users=np.tile(np.repeat(np.arange(5), 8), n),
        items=rng.integers(100, size=each * n),
        labels=rng.random(each * n) < 0.5,
        attributes=np.repeat([f"attribute-{k}" for k in range(n)], each),
        features=rng.standard_normal((100, 5)),
        item_ids=np.arange(100),
        features_per="item",
    )


# What docs/large.md says that each takes at most: processor seconds, GiB.
CASES: dict[str, tuple[Callable[[int], tuple[Any, Annotations]], int, str, float, float]] = {
    "people": (people, 1_000_000, "1,000,000 users with one label each, 10 features", 60, 4),
    "columns": (columns, 100_000, "100,000 features, 2,000 labels on 200 items", 240, 2),
    "user": (one_user, 1_000_000, "one user with 1,000,000 labels, 10 features", 60, 2),
    "attributes": (attributes, 10_000, "10,000 attributes, 40 labels each, ridge: fit", 120, 1),
    "learned": (attributes, 20, "20 attributes, 40 labels each, learned prior", 60, 1),
}


def work(case: str, n: int) -> int:
    """Fit, save and load; print the memory after each step; return the number of labels.

    One file does not hold 10,000 attributes, which are fitted only.
    """
    ranker, said = CASES[case][0](n)
    steps = ("data", "fit") if case == "attributes" else ("data", "fit", "save", "load")
    with tempfile.TemporaryDirectory() as folder:
        for step in steps:
            began = time.process_time()
            if step == "fit":
                model = ranker.fit(said)
            elif step == "save":
                path = save(model, Path(folder) / "limits.likeminds", with_data=True)
            elif step == "load":
                load(path, verify=True)
            seconds = time.process_time() - began
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
            print(f"{case}: {step} {seconds:.1f} CPU s, {memory:.2f} GiB", flush=True)
    return len(said)


def as_table(found: dict[str, dict[str, float]]) -> str:
    """Return what was measured as a table in Markdown."""
    lines = [
        "| size | CPU seconds | at most | memory, GiB | at most |",
        "|---|---|---|---|---|",
    ]
    for case, (_, _, what, seconds, memory) in CASES.items():
        if case in found:
            told = found[case]
            lines.append(
                f"| {what} | {told['cpu_seconds']:.0f} | {seconds:g} "
                f"| {told['peak_gib']:.2f} | {memory:g} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Measure the cases, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--share", type=float, default=1.0, help="Of the sizes.")
    parser.add_argument("--page", action="store_true", help="Write docs/large.md anew.")
    given = parser.parse_args()
    kept = _DOCS / "limits.json"
    found = json.loads(kept.read_text()) if kept.exists() and given.share == 1 else {}
    for case in given.only:
        found[case] = measure(work, case, max(20, int(given.share * CASES[case][1])))
        beyond = [
            f"{name} {found[case][name]:.2f} > {most}"
            for name, most in zip(("cpu_seconds", "peak_gib"), CASES[case][3:], strict=True)
            if found[case][name] > most
        ]
        print(f"{case}: beyond what docs/large.md says: {', '.join(beyond)}" if beyond else "")
    print(as_table(found))
    if given.page:
        kept.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        page = _DOCS / "large.md"
        before, rest = page.read_text().split(_BEGIN)
        table = f"{_BEGIN}\n{as_table(found)}\n{_END}"
        page.write_text(before + table + rest.split(_END)[1])


if __name__ == "__main__":
    main()
