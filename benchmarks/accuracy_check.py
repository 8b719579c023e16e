"""Accuracy before and after a change: ``python -m benchmarks.accuracy_check --data FOLDER``.

``--save before.json`` writes the scores of every user on held-out labels. ``--against before.json``
prints paired differences over users with 95 % intervals, a verdict for each data set, and processor
seconds; the exit status is 1 if a data set is worse. Measures are the AUC and the log loss of
labels, the concordance and the log loss of grades, and the accuracy and the log loss of choices and
pairs. 30 % of the labels of each user are held out at random, by whole choice sets, with fixed
seeds. The
electricity data is bundled; FOLDER may hold the others as ``NAME.npz``. Large data sets are
represented by some of their users.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.choice_models import SPECIFICATIONS
from benchmarks.grades import read_graded
from benchmarks.shared_crowds import read_crowds_of
from likeminds import (
    Annotations,
    HierarchicalRanker,
    ThreeLevelRanker,
    auc_by_user,
    load_electricity,
    score_choices,
    split_within_users,
)
from likeminds.metrics import concordance_by_user
from likeminds.metrics.paired import over_users
from likeminds.paper.experiments.data_sets import fewer_users

SEEDS = (10, 11, 12)
TEST = 0.3
# A difference below this size is level, however narrow its interval is.
MARGIN = 0.0005
# Users with fewer labels of either kind are left out of the AUC and of the concordance.
FEWEST = 3
# By measure, whether larger is better.
LARGER = {"AUC": True, "concordance": True, "accuracy": True, "log loss": False}

# By measure, one value per user; NaN where a user has none.
Measured = dict[str, tuple[np.ndarray, np.ndarray]]


def _labels(folder: Path, name: str) -> Annotations:
    return next(read_crowds_of(folder / f"{name}.npz")).said


def _grades(folder: Path, name: str) -> Annotations:
    return read_graded(folder / f"{name}.npz").graded


def _choices(folder: Path, name: str) -> Annotations:
    found = next(spec for spec in SPECIFICATIONS if spec.name == name).read(folder)
    assert found is not None
    return found


def _pairs(folder: Path, name: str, *, position: bool = False) -> Annotations:
    """Read pairs of items, or pairs of which the file holds the differences of features.

    With ``position``, these have one more feature: 1 for the item that was shown first, else 0.
    """
    with np.load(folder / f"{name}.npz", allow_pickle=False) as data:
        user, a, b, first = data["user"], data["a"], data["b"], data["label"] == 1
        if "rows" not in data.files:
            won, lost = np.where(first, a, b), np.where(first, b, a)
            features = data["X"].astype(np.float64)
            return Annotations.from_comparisons(user, won, lost, features=features)
        rows = data["rows"].astype(np.float64)
    if position:
        rows = np.hstack([rows, np.ones((len(rows), 1))])
    sides = np.stack([rows, np.zeros_like(rows)], axis=1).reshape(-1, rows.shape[1])
    labels = np.column_stack([first, ~first]).ravel()
    return Annotations(
        user.repeat(2), None, labels, sides, choice_sets=np.arange(len(user)).repeat(2)
    )


def _electricity(folder: Path, name: str) -> Annotations:  # noqa: ARG001 - it is bundled
    return load_electricity()


def score_labels(ranker: Any, test: Annotations) -> Measured:
    """Return the AUC of each user."""
    return {"AUC": _values(auc_by_user(test.labels, ranker.decision_function(test), test.users))}


def score_probabilities(ranker: Any, test: Annotations) -> Measured:
    """Return the AUC and the log loss of each user."""
    given = ranker.predict_proba(test)[np.arange(len(test)), test.labels.astype(np.intp)]
    return score_labels(ranker, test) | {"log loss": _log_loss(test, given)}


def score_grades(ranker: Any, test: Annotations) -> Measured:
    """Return the concordance of each user, and the log loss where there are probabilities."""
    scores = ranker.decision_function(test)
    found = {"concordance": _values(concordance_by_user(test.grades, scores, test.users))}
    if getattr(ranker, "grading_", None) is None:
        return found
    predicted = ranker.predict_grades(test)
    place = np.searchsorted(predicted.grades, test.grades).clip(max=len(predicted.grades) - 1)
    if (predicted.grades[place] == test.grades).all():  # else the grades were binned
        found["log loss"] = _log_loss(test, predicted.probabilities[np.arange(len(test)), place])
    return found


def score_sets(ranker: Any, test: Annotations) -> Measured:
    """Return the accuracy and the log loss of the choices of each user."""
    found = score_choices(test, ranker.decision_function(test), ranker.predict_proba(test)[:, 1])
    return {"accuracy": _values(found.accuracy), "log loss": _values(found.log_loss)}


def score_electricity(ranker: Any, test: Annotations) -> Measured:
    """Return the AUC too, by which this data set is known."""
    return score_labels(ranker, test) | score_sets(ranker, test)


def _values(metric: Any) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(metric.users), np.asarray(metric.values, dtype=np.float64)


def _log_loss(test: Annotations, given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    loss = -np.log(np.maximum(given, np.finfo(np.float64).tiny))
    number = np.bincount(test.user_codes, minlength=test.n_users)
    total = np.bincount(test.user_codes, weights=loss, minlength=test.n_users)
    return test.user_ids, total / np.where(number, number, np.nan)


# Some held-out items were never labelled in the training part.
_HIERARCHICAL = partial(HierarchicalRanker, unknown="consensus")


@dataclass(frozen=True)
class Trial:
    """A ranker on a data set.

    Attributes
    ----------
    file : str
        The data set.
    read : callable
        Reads it from a folder.
    score : callable
        Measures a fitted ranker on held-out labels.
    users : int
        At most so many users take part.
    ranker : callable
        Makes the ranker.
    """

    file: str
    read: Callable[[Path, str], Annotations]
    score: Callable[[Any, Annotations], Measured]
    users: int = 400
    ranker: Callable[[], Any] = _HIERARCHICAL


_LABELS = partial(Trial, read=_labels, score=score_probabilities)
_THREE = partial(Trial, read=_labels, score=score_labels, ranker=ThreeLevelRanker)
_GRADES = partial(Trial, read=_grades, score=score_grades)
_CHOICES = partial(Trial, read=_choices, score=score_sets)
_PAIRS = partial(Trial, read=_pairs, score=score_sets)

TRIALS: dict[str, Trial] = {
    "electricity": Trial("electricity", _electricity, score_electricity),
    "electricity, three levels": Trial(
        "electricity", _electricity, score_labels, ranker=ThreeLevelRanker
    ),
    "verbagg": _LABELS("verbagg"),
    "trolley": _LABELS("trolley"),
    "trolley, three levels": _THREE("trolley"),
    "landmine": _LABELS("landmine"),
    "landmine, three levels": _THREE("landmine"),
    "speed": _LABELS("speed", users=500),
    "polis_brexit": _LABELS("polis_brexit"),
    "polis_taxes": _LABELS("polis_taxes"),
    "polis_football": _LABELS("polis_football", users=1500),
    "polis_uber": _LABELS("polis_uber", users=400),
    "offensive": _LABELS("offensive"),
    "jokes": _LABELS("jokes", users=400),
    "movies": _LABELS("movies", users=300),
    "oasis": _LABELS("oasis", users=200),
    "un": _LABELS("un"),
    "london_faces": _LABELS("london_faces", users=100),
    "faces_3dsk": _LABELS("faces_3dsk", users=100),
    "offensive, grades": _GRADES("offensive"),
    "jokes, grades": _GRADES("jokes", users=200),
    "movies, grades": _GRADES("movies", users=150),
    "oasis, grades": _GRADES("oasis", users=100),
    "un, grades": _GRADES("un_grades", users=100),
    "yogurt, choices": _CHOICES("yogurt"),
    "car100, choices": _CHOICES("car100"),
    "swissmetro, choices": _CHOICES("swissmetro", users=800),
    "bank, pairs": _PAIRS("bank", users=1000),
    "bank, pairs, position": Trial("bank", partial(_pairs, position=True), score_sets, users=1000),
    "ukp, pairs": _PAIRS("ukp", users=1500),
}


def measure(trial: Trial, folder: Path, seed: int, positions: int | None) -> dict[str, Any]:
    """Fit to one split; return the measures of each user by name, and processor seconds."""
    most = trial.users if positions is None else min(positions, trial.users)
    said = fewer_users(trial.read(folder, trial.file), most)
    train, test = split_within_users(said, TEST, random_state=seed, stratify=False)
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The labels of .* one class only", UserWarning)
        ranker = trial.ranker().fit(train)
    seconds = time.process_time() - begun
    few = set(said.user_ids[said.label_counts().min(axis=1) < FEWEST].tolist())
    scores: dict[str, dict[str, float]] = {}
    for name, (users, values) in trial.score(ranker, test).items():
        left_out = few if name in ("AUC", "concordance") else set()
        pairs = zip(users.tolist(), values.tolist(), strict=True)
        kept = {user: value for user, value in pairs if user not in left_out}
        scores[name] = {str(u): round(v, 9) for u, v in kept.items() if np.isfinite(v)}
    return {"seconds": round(seconds, 2), "scores": scores}


# By trial and by seed, what `measure` returns.
Saved = dict[str, dict[str, dict[str, Any]]]


def run(
    names: Sequence[str], folder: Path | None, seeds: Sequence[int], users: int | None
) -> Saved:
    """Measure the trials whose data is there."""
    found: Saved = {}
    for name in names:
        trial = TRIALS[name]
        if trial.read is not _electricity and not _is_there(folder, trial):
            print(f"{name}: left out, as there is no {trial.file}.npz in --data.", flush=True)
            continue
        for seed in seeds:
            result = measure(trial, folder or Path(), seed, users)
            found.setdefault(name, {})[str(seed)] = result
            means = [f"{k} {np.mean(list(v.values())):.4f}" for k, v in result["scores"].items()]
            print(f"{name}, split {seed}: {', '.join(means)}; {result['seconds']:.1f} s")
            sys.stdout.flush()
    return found


def _is_there(folder: Path | None, trial: Trial) -> bool:
    return folder is not None and (folder / f"{trial.file}.npz").is_file()


@dataclass(frozen=True)
class Verdict:
    """A paired difference over users, after less before; positive is better.

    ``worst`` is the smallest gain of a user: intervals of a mean do not show one user's loss.
    """

    trial: str
    measure: str
    n_users: int
    before: float
    after: float
    gain: float
    low: float
    high: float
    worst: float

    @property
    def word(self) -> str:
        """Say better or worse where the interval and the margin exclude a level result."""
        if abs(self.gain) < MARGIN or self.low <= 0 <= self.high or np.isnan(self.low):
            return "level"
        return "better" if self.gain > 0 else "worse"


def compare(before: Saved, after: Saved) -> Iterator[Verdict]:
    """Yield the difference of each measure of the trials that both have."""
    for name in after:
        if name not in before:
            continue
        seeds = [seed for seed in after[name] if seed in before[name]]
        measures = [m for m in LARGER if any(m in after[name][s]["scores"] for s in seeds)]
        for kind in measures:
            old, new = (_over_splits(saved[name], seeds, kind) for saved in (before, after))
            users = [user for user in new if user in old]
            one, two = (np.array([each[u] for u in users]) for each in (old, new))
            if users:
                gains = (two - one) * (1.0 if LARGER[kind] else -1.0)
                mean, low, high, _ = over_users(gains)
                means = float(one.mean()), float(two.mean())
                yield Verdict(name, kind, len(users), *means, mean, low, high, float(gains.min()))


def _over_splits(
    splits: Mapping[str, Any], seeds: Sequence[str], measured: str
) -> dict[str, float]:
    """Return the mean of each user over the splits in which they have a value."""
    values: dict[str, list[float]] = {}
    for seed in seeds:
        for user, value in splits[seed]["scores"].get(measured, {}).items():
            values.setdefault(user, []).append(value)
    return {user: float(np.mean(each)) for user, each in values.items()}


def show(before: Saved, after: Saved) -> int:
    """Print the verdicts; return how many are worse."""
    verdicts = list(compare(before, after))
    wide = max([len(v.trial) for v in verdicts], default=0)
    for v in verdicts:
        interval = f"{v.gain:+.5f} [{v.low:+.5f}, {v.high:+.5f}]"
        print(
            f"{v.trial:<{wide}}  {v.measure:<11}  {v.n_users:>4} users  "
            f"{v.before:.4f} -> {v.after:.4f}  gain {interval}  worst user {v.worst:+.3f}  {v.word}"
        )
    missing = [name for name in after if name not in before]
    if missing:
        print(f"Not measured before: {'; '.join(missing)}.")
    both = [(b, s) for b in after if b in before for s in after[b] if s in before[b]]
    seconds = [sum(saved[b][s]["seconds"] for b, s in both) for saved in (before, after)]
    words = [v.word for v in verdicts]
    counts = ", ".join(f"{words.count(word)} {word}" for word in ("better", "level", "worse"))
    print(f"{counts}. Processor seconds of fits: {seconds[0]:.1f} -> {seconds[1]:.1f}.")
    return words.count("worse")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with NAME.npz files")
    parser.add_argument("--save", type=Path, help="write the scores of every user to this file")
    parser.add_argument("--against", type=Path, help="compare with a file that --save wrote")
    parser.add_argument("--only", nargs="+", choices=TRIALS, metavar="TRIAL", help="just these")
    parser.add_argument("--splits", type=int, default=len(SEEDS), help="at most three")
    parser.add_argument("--users", type=int, help="at most so many users of each data set")
    asked = parser.parse_args(arguments)
    before: Saved = json.loads(asked.against.read_text("utf-8")) if asked.against else {}
    after = run(asked.only or list(TRIALS), asked.data, SEEDS[: asked.splits], asked.users)
    if asked.save:
        asked.save.write_text(json.dumps(after, indent=1) + "\n", encoding="utf-8")
    return 1 if asked.against and show(before, after) else 0


if __name__ == "__main__":
    sys.exit(main())
