"""Peers on the same crowds: ``python -m benchmarks.crowd_peers --data FOLDER``.

Every peer learns from the same splits as HierarchicalRanker, and is scored by the same functions:
those of `benchmarks.accuracy_check`, with the trials listed there. Printed are means over users,
the calibration error and processor seconds, then paired differences between HierarchicalRanker and
each peer, with 95 % intervals over users. ``--page FILE`` writes them between two marks of a page,
and to a JSON file of the same name. Trials of earlier runs with the same seeds stay there.

popularity
    The item effects alone: for pairs, a pooled Bradley-Terry model with a ridge penalty.
Factorisation
    Logistic matrix factorisation with features of items, tuned by `RankerCV`: labels only.
myFM
    The Bayesian factorisation machine by Gibbs sampling (``pip install myfm``); its rank (4, 8 or
    16) has the lowest log loss on 15 % of the training part. Grades: its ordered probit.
GPBoost
    Crossed random effects of users and items (``pip install gpboost``): labels only. Random weights
    of features by user are added if they lower the log loss on 15 % of the training part.
xlogit
    The mixed logit by simulated likelihood (``pip install xlogit``): choices only. Weights vary as
    in the published model or all of them do, by AIC.

A peer that is not installed is left out and listed.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy_check import (
    TRIALS,
    Saved,
    Trial,
    Verdict,
    compare,
    measure,
    score_sets,
)
from benchmarks.choice_models import SPECIFICATIONS
from benchmarks.peer_models import (
    CrossedEffects,
    MyFM,
    Pooled,
    SimulatedMixedLogit,
    TunedFactorisation,
)
from likeminds import Annotations, ThreeLevelRanker
from likeminds.rankers.baselines.popularity import has_shared_items

OURS = "HierarchicalRanker"
# Trials of other rankers, and of another reading of the same pairs, are left out.
DEFAULT = [
    name
    for name, trial in TRIALS.items()
    if trial.ranker is not ThreeLevelRanker and not name.endswith("position")
]
BEGIN, END = "<!-- measured -->", "<!-- end of what was measured -->"
# By name, the package that a peer needs.
PACKAGES = {"myFM": "myfm", "GPBoost": "gpboost", "xlogit": "xlogit"}

# By method: its means, processor seconds, and the gains of HierarchicalRanker by measure.
Results = dict[str, dict[str, Any]]


def peers_of(trial: Trial, annotations: Annotations) -> dict[str, Callable[[], Any]]:
    """Return the peers that take these answers, installed or not."""
    sets = annotations.choice_set_codes
    if sets is not None and (np.bincount(sets) != 2).any():
        spec = next(spec for spec in SPECIFICATIONS if spec.name == trial.file)
        return {"xlogit": partial(SimulatedMixedLogit, spec)}
    if annotations.grades is not None or sets is not None:
        return {"popularity": Pooled, "myFM": MyFM}
    shared = {"Factorisation": TunedFactorisation} if has_shared_items(annotations) else {}
    return {"popularity": Pooled, **shared, "myFM": MyFM, "GPBoost": CrossedEffects}


def is_there(peer: str) -> bool:
    """Return whether the package of a peer is installed."""
    return peer not in PACKAGES or find_spec(PACKAGES[peer]) is not None


def calibration_error(ranker: Any, test: Annotations) -> float:
    """Return the mean distance between probability and share of positives, in ten bins."""
    return _mean_gap(ranker.predict_proba(test)[:, 1], test.labels)


def calibration_error_by_chance(ranker: Any, test: Annotations) -> float:
    """Return the mean calibration error if labels are drawn from the predicted probabilities."""
    chance, rng, errors = ranker.predict_proba(test)[:, 1], np.random.default_rng(0), []
    for _ in range(100):
        labels = rng.random(len(chance)) < chance
        if test.choice_set_codes is not None:  # one item of each choice set is chosen
            noise = np.log(np.maximum(chance, 1e-300)) + rng.gumbel(size=len(chance))
            best = np.lexsort((-noise, test.choice_set_codes))
            first = np.unique(test.choice_set_codes[best], return_index=True)[1]
            labels = np.isin(np.arange(len(chance)), best[first])
        errors.append(_mean_gap(chance, labels))
    return float(np.mean(errors))


def _mean_gap(chance: np.ndarray, labels: np.ndarray) -> float:
    bins = np.minimum((chance * 10).astype(int), 9)
    return float(np.abs(np.bincount(bins, weights=chance - labels)).sum() / len(chance))


def run(name: str, folder: Path, seeds: Sequence[int], users: int | None) -> Results:
    """Measure every installed method on the splits of a trial, HierarchicalRanker first."""
    trial = TRIALS[name]
    annotations = trial.read(folder, trial.file)
    peers = peers_of(trial, annotations)
    # An AUC over several choice sets would compare utilities with log-probabilities.
    by_user = trial.score if annotations.choice_set_codes is None else score_sets
    ours: Saved = {}
    found: Results = {}
    for method, make in {OURS: trial.ranker, **peers}.items():
        if not is_there(method):
            print(f"{name}: {method} is left out, as {PACKAGES[method]} is not installed.")
            continue
        errors: list[tuple[float, float]] = []

        def score(ranker: Any, test: Annotations, errors: list[Any] = errors) -> Any:
            if test.grades is None:
                by_chance = calibration_error_by_chance(ranker, test)
                errors.append((calibration_error(ranker, test), by_chance))
            return by_user(ranker, test)

        asked = replace(trial, ranker=make, score=score)
        by_seed = {str(seed): measure(asked, folder, seed, users) for seed in seeds}
        means = {
            kind: float(
                np.mean([v for one in by_seed.values() for v in one["scores"][kind].values()])
            )
            for kind in next(iter(by_seed.values()))["scores"]
        }
        if errors:
            found_error, by_chance = np.mean(errors, axis=0).tolist()
            means |= {"calibration error": found_error, "by chance": by_chance}
        seconds = sum(one["seconds"] for one in by_seed.values()) / len(seeds)
        gains = list(compare({name: by_seed}, ours))
        ours = ours or {name: by_seed}
        found[method] = {"means": means, "seconds": seconds, "gains": summary(gains)}
        print("  ".join([f"{name:<16}", *cells(method, found[method])]), flush=True)
    return found


def summary(gains: Sequence[Verdict]) -> dict[str, Any]:
    """Return what the page shows of paired differences, by measure."""
    return {
        one.measure: {"gain": one.gain, "low": one.low, "high": one.high, "word": one.word}
        for one in gains
    }


def cells(method: str, result: dict[str, Any]) -> list[str]:
    """Return the cells of a row: the means, processor seconds, and gains with their intervals."""
    means = ", ".join(f"{kind} {value:.4f}" for kind, value in result["means"].items())
    gains = [
        f"{kind} {one['gain']:+.4f} [{one['low']:+.4f}, {one['high']:+.4f}] {one['word']}"
        for kind, one in result["gains"].items()
    ]
    return [method, means, f"{result['seconds']:.1f}", "; ".join(gains)]


def table(trials: dict[str, Results], seeds: Sequence[int]) -> str:
    """Return the measured part of the page, with a list of the data where a peer is ahead."""
    rows = [[name, *cells(*one)] for name, found in trials.items() for one in found.items()]
    behind = [
        f"{name}: {method} ({kind} {one['gain']:+.4f})"
        for name, found in trials.items()
        for method, result in found.items()
        for kind, one in result["gains"].items()
        if one["word"] == "worse"
    ]
    absent = [peer for peer in PACKAGES if not is_there(peer)]
    lines = [
        f"Written by `python -m benchmarks.crowd_peers --data FOLDER --seed {seeds[0]} --splits "
        f"{len(seeds)} --page FILE` on {date.today().isoformat()}.",
        *([f"Not installed, so left out: {', '.join(absent)}."] if absent else []),
        "",
        "| data | method | held-out labels | processor s | gain of HierarchicalRanker |",
        "|---|---|---|---|---|",
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
        f"`{OURS}` is behind on: {'; '.join(behind)}." if behind else f"`{OURS}` is never behind.",
    ]
    return "\n".join(lines) + "\n"


def write(page: Path, trials: dict[str, Results], seeds: Sequence[int]) -> None:
    """Write results to the page and its JSON file; others with the same seeds stay there."""
    path = page.with_suffix(".json")
    earlier = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    kept = earlier["trials"] if earlier.get("seeds") == list(seeds) else {}
    trials = dict(sorted((kept | trials).items(), key=lambda one: list(TRIALS).index(one[0])))
    text = json.dumps({"seeds": list(seeds), "trials": trials}, indent=1)
    path.write_text(f"{text}\n", encoding="utf-8")
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n{table(trials, seeds)}{END}{after}", encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with NAME.npz files")
    parser.add_argument("--only", nargs="+", metavar="TRIAL", default=DEFAULT)
    parser.add_argument("--splits", type=int, default=3, help="how many")
    parser.add_argument("--seed", type=int, default=10, help="of the first split")
    parser.add_argument("--users", type=int, help="at most so many users of each data set")
    parser.add_argument("--page", type=Path, help="write the table to this Markdown file")
    asked = parser.parse_args(arguments)
    seeds = range(asked.seed, asked.seed + asked.splits)
    for name in asked.only:
        if not (asked.data / f"{TRIALS[name].file}.npz").is_file():
            print(f"{name}: left out, as there is no {TRIALS[name].file}.npz in --data.")
            continue
        found = run(name, asked.data, seeds, asked.users)
        if asked.page:
            write(asked.page, {name: found}, seeds)


if __name__ == "__main__":
    main()
