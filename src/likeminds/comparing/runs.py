"""The fits of a comparison: one ranker in one repeat, its result on disk, and the time left."""

import itertools
import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import joblib
import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import BaseEstimator, clone

from likeminds._util.atomic_files import write_whole
from likeminds._util.console import in_words, report_progress
from likeminds._version import __version__
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import lookup
from likeminds.data.splits import split_within_users
from likeminds.metrics.concordance import concordance_by_user, mean_concordance
from likeminds.rankers.candidates import was_interrupted
from likeminds.rankers.capabilities import with_consensus

# Comparisons of fewer labels take about as long as a forecast.
MANY_LABELS = 20_000
# All rankers compared by default take 2 seconds on so many labels.
_SAMPLED = 300
# Time grows with the number of labels to this power: between searches by statistics of users,
# which grow slower, and HierarchicalRanker, which grows faster. On 100,000 film ratings, the
# rankers compared by default take 67 processor seconds, and by this power 75 to 88.
_POWER = 0.7
# Fits under way never count as more than this share of the work.
_MOST_UNDER_WAY = 0.99

Key = tuple[str, int]
# An attribute and a ranker.
Name = tuple[str, str]
T = TypeVar("T")


@dataclass(frozen=True)
class RunResult:
    """The result of one ranker in one repeat."""

    mean_score: float  # the mean over users of their AUC (for grades, concordance) on held-out rows
    scores: tuple[float, ...]  # by user, NaN where it is not defined
    seconds: float  # of the fit, tuning included
    parameters: str  # those chosen (or given, where nothing is tuned), as JSON
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class ComparisonRun:
    """One ranker in one repeat: which split it sees, and where its result goes."""

    name: str
    ranker: BaseEstimator
    repeat: int
    test_size: float
    seed: int
    fingerprint: str
    path: Path | None

    @property
    def key(self) -> Key:
        """The name of the ranker, and the number of the repeat."""
        return self.name, self.repeat

    def read(self, n_users: int) -> RunResult | None:
        """Return the result on disk; None where there is none, or none that can be trusted."""
        if self.path is None or not self.path.is_file():
            return None
        try:
            stored = json.loads(self.path.read_bytes())
            scores = tuple(np.nan if one is None else float(one) for one in stored["scores"])
            if stored["fingerprint"] != self.fingerprint or len(scores) != n_users:
                return None
            return RunResult(
                float(stored["mean_score"]),
                scores,
                float(stored["seconds"]),
                str(stored["parameters"]),
                tuple(map(str, stored["warnings"])),
            )
        except (ValueError, KeyError, TypeError):
            return None  # truncated, or not ours: computed again

    def run(self, annotations: Annotations) -> tuple[Key, RunResult]:
        """Fit and score; keep the result on disk before anything else can go wrong."""
        try:
            result = self._measure(annotations)
        except Exception as error:
            raise RuntimeError(
                f"{self.name} failed in repeat {self.repeat}: {type(error).__name__}: {error}"
            ) from error
        if self.path is not None:
            stored = vars(result) | {
                "ranker": self.name,
                "repeat": self.repeat,
                "fingerprint": self.fingerprint,
                "scores": [None if np.isnan(one) else one for one in result.scores],
            }
            write_whole(self.path, json.dumps(stored).encode())
        return self.key, result

    def _measure(self, annotations: Annotations) -> RunResult:
        train, test = split_within_users(annotations, self.test_size, self.seed)
        ranker = clone(self.ranker)
        start = perf_counter()
        warned = fit_to_the_end(ranker, train)
        seconds = perf_counter() - start
        scores = with_consensus(ranker).decision_function(test)
        found = concordance_by_user(test.outcomes, scores, test.user_codes, test.weights)
        by_user = np.full(annotations.n_users, np.nan)
        by_user[lookup(test.user_ids, annotations.user_ids, "users")] = found.values
        mean = mean_concordance(test.outcomes, scores, test.users, test.weights)
        chosen = getattr(ranker, "best_params_", None)
        used = ranker.get_params(deep=False) if chosen is None else chosen
        parameters = json.dumps(used, default=repr)
        return RunResult(mean, tuple(by_user.tolist()), seconds, parameters, warned)


# An attribute and a fit.
Work = tuple[str, ComparisonRun]


def fit_to_the_end(ranker: BaseEstimator, annotations: Annotations) -> tuple[str, ...]:
    """Fit, and return the warnings; raise if interrupted, so no half fit is stored."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # True of all rankers in every repeat.
        warnings.filterwarnings("ignore", ".*one class only", UserWarning)
        ranker.fit(annotations)
    messages = tuple(dict.fromkeys(str(warning.message) for warning in caught))
    if was_interrupted(ranker) or any(one.startswith("Interrupted") for one in messages):
        raise KeyboardInterrupt
    return messages


def all_cells(
    annotations: Annotations,
    rankers: Mapping[str, BaseEstimator],
    test_size: float,
    seeds: Sequence[int],
    folder: Path | None,
) -> list[ComparisonRun]:
    """Return all cells, repeat by repeat: an interrupted run has equally many of each ranker."""
    data = "" if folder is None else _data_fingerprint(annotations)
    cells = []
    for repeat, seed in enumerate(seeds):
        for name, ranker in rankers.items():
            key, path = "", None
            if folder is not None:
                key = _cell_fingerprint(data, ranker, test_size, seed)
                readable = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:60]
                path = folder / f"{readable}-{repeat:03d}-{key[:16]}.json"
            cells.append(ComparisonRun(name, ranker, repeat, test_size, seed, key, path))
    return cells


def work_on(
    calls: Sequence[tuple[Callable[..., T], tuple[Any, ...]]],
    n_jobs: int | None,
    finished: Callable[[T], None],
) -> Iterator[T]:
    """Yield the results of calls as they are completed, after telling ``finished`` of each."""
    work = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    for result in work(delayed(call)(*arguments) for call, arguments in calls):
        finished(result)
        yield result


def _data_fingerprint(annotations: Annotations) -> str:
    """Return a hash of all that a split, a fit or a score can depend on."""
    return digest_of(
        annotations.features,
        annotations.feature_rows,
        annotations.feature_names,
        annotations.user_codes,
        annotations.item_codes,
        # By their representations: equal texts need not be equal objects.
        [repr(user) for user in annotations.user_ids.tolist()],
        [repr(item) for item in annotations.item_ids.tolist()],
        annotations.labels,
        annotations.grades,
        annotations.weights,
        annotations.choice_set_codes,
    )


def _cell_fingerprint(data: str, ranker: BaseEstimator, test_size: float, seed: int) -> str:
    """Return a hash of the data, the split, and the estimator's class and parameters."""
    parameters = {
        name: _class_of(value) if isinstance(value, BaseEstimator) else value
        for name, value in sorted(ranker.get_params().items())
        if name.split("__")[-1] not in ("n_jobs", "verbose")  # the same result
    }
    return digest_of(data, __version__, _class_of(ranker), parameters, float(test_size), seed)


def _class_of(estimator: object) -> str:
    return f"{type(estimator).__module__}.{type(estimator).__qualname__}"


def digest_of(*parts: object) -> str:
    """Return a hash of some arrays, texts and numbers."""
    # Array by array, and not in one list: whether two are views of one must not matter.
    return str(joblib.hash([joblib.hash(part, "sha1") for part in parts], "sha1"))


class Forecast:
    """Seconds that fits take: by fits to a few users, then by the comparison's own fits."""

    def __init__(self, names: Sequence[Name], n_jobs: int | None = None) -> None:
        self._left = Counter(names)
        self._n_workers = max(1, min(int(effective_n_jobs(n_jobs)), len(names)))
        self._expected: dict[Name, float] = {}
        self._taken: dict[Name, list[float]] = {}

    def measure(
        self, parts: Mapping[str, Annotations], rankers: Mapping[Name, BaseEstimator]
    ) -> None:
        """Time each ranker on a few users, and print on stderr how long all fits take."""
        if not rankers:
            return
        few = {part: _few_users(parts[part]) for part in {part for part, _ in rankers}}
        labels = max(map(len, few.values()))
        sys.stderr.write(f"Timing {len(rankers)} rankers on {labels:,} labels first.\n")
        sys.stderr.flush()
        # In this process: to start others takes longer than the fits. The first fit of a process
        # loads libraries, which would count as slow.
        (part, _), warm_up = next(iter(rankers.items()))
        _time(warm_up, few[part])
        for name, ranker in rankers.items():
            seconds = _time(ranker, few[name[0]])
            if seconds is not None:
                growth = len(parts[name[0]]) / len(few[name[0]])
                self._expected[name] = seconds * growth**_POWER
        left = in_words(self.seconds_left() / self._n_workers)
        n_fits = self._left.total()
        sys.stderr.write(f"{n_fits} fits take about {left} ({self._n_workers} at a time).\n")
        sys.stderr.flush()

    def in_order(self, work: Sequence[Work]) -> list[Work]:
        """Return fits by repeat, the longest first; before all, the shortest, to show progress."""
        if not self._expected:
            return list(work)

        def lasts(one: Work) -> float:
            return self._expected.get((one[0], one[1].name), np.inf)

        shortest = min(work, key=lambda one: (one[1].repeat, lasts(one)))
        others = [one for one in work if one is not shortest]
        return [shortest, *sorted(others, key=lambda one: (one[1].repeat, -lasts(one)))]

    def seconds_left(self) -> float:
        """Return the seconds that all fits to come take."""
        return sum(self._each_left())

    def _each_left(self) -> list[float]:
        """Return the seconds of each fit to come, the longest first."""
        measured = {name: float(np.mean(times)) for name, times in self._taken.items()}
        expected = self._expected | measured
        typical = float(np.mean(list(expected.values()))) if expected else 1.0
        left = (expected.get(name, typical) for name in self._left.elements())
        return sorted(left, reverse=True)

    def share_after(self, name: Name, seconds: float, elapsed: float) -> float:
        """Return the share of the work done after a fit; fits under way count by time elapsed."""
        self._left[name] -= 1
        self._taken.setdefault(name, []).append(seconds)
        # By no more than the longest fits to come, one for each worker.
        done, each = sum(map(sum, self._taken.values())), self._each_left()
        if not each:
            return 1.0
        begun = done + sum(each[: self._n_workers])
        under_way = min(elapsed * self._n_workers, begun, _MOST_UNDER_WAY * (done + sum(each)))
        return max(done, under_way) / (done + sum(each))


def _few_users(annotations: Annotations) -> Annotations:
    """Return about a thousand labels, of at least two users drawn at random."""
    order = np.random.default_rng(0).permutation(annotations.n_users)
    counts = np.bincount(annotations.user_codes, minlength=annotations.n_users)[order]
    n_users = max(2, int(np.searchsorted(np.cumsum(counts), _SAMPLED)) + 1)
    return annotations[np.isin(annotations.user_codes, order[:n_users])]


def _time(ranker: BaseEstimator, few: Annotations) -> float | None:
    """Return the seconds of a fit; None where a few users are too few for the ranker."""
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            clone(ranker).fit(few)
        except ValueError:
            return None
    return perf_counter() - start


def run_all(
    parts: Mapping[str, Annotations],
    work: Sequence[Work],
    n_jobs: int | None,
    progress: bool | Callable[[str], None],
) -> Iterator[tuple[str, tuple[Key, RunResult]]]:
    """Yield results as they are finished, with the attribute of each, and report progress."""
    forecast = Forecast([(part, cell.name) for part, cell in work], n_jobs)
    if progress is True:
        many = [one for one in work if len(parts[one[0]]) > MANY_LABELS]
        forecast.measure(parts, {(part, cell.name): cell.ranker for part, cell in many})
    calls = [(_run_cell, (part, cell, parts[part])) for part, cell in forecast.in_order(work)]
    done, start = itertools.count(1), perf_counter()
    with report_progress(progress is True, "fits", len(work)) as report:

        def finished(found: tuple[str, tuple[Key, RunResult]]) -> None:
            part, ((name, repeat), result) = found
            described = f"{part}: {name}" if part else name
            if callable(progress):
                progress(described)
            share = forecast.share_after((part, name), result.seconds, perf_counter() - start)
            report(next(done), f"{described}, repeat {repeat}", share)

        yield from work_on(calls, n_jobs, finished)


def _run_cell(
    part: str, cell: ComparisonRun, annotations: Annotations
) -> tuple[str, tuple[Key, RunResult]]:
    return part, cell.run(annotations)
