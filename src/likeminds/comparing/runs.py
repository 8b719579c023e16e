"""The fits of a comparison: one ranker in one repeat, its result on disk, and the time left."""

import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

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

# With this many labels or fewer, timing rankers first takes about as long as comparing them.
MANY_LABELS = 20_000
# The number of labels that rankers are timed on: all default rankers take 2 seconds.
_SAMPLED = 300
# Time grows with the number of labels to this power. Searches by statistics of users grow slower,
# HierarchicalRanker faster. On 100,000 film ratings, the rankers compared by default take 67
# processor seconds, and by this power 75 to 88.
_POWER = 0.7
# Running fits count as at most this share of the work.
_MOST_UNDER_WAY = 0.99

# An attribute and a ranker.
Name = tuple[str, str]


@dataclass(frozen=True)
class Job:
    """A function of a module and its arguments; the result can be written as JSON."""

    name: str
    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    key: str = ""  # hash of all inputs; by default, of the arguments

    @property
    def fingerprint(self) -> str:
        """Hash of the function's name, its arguments and the version of the library."""
        where = f"{self.function.__module__}.{self.function.__qualname__}"
        return self.key or digest_of(where, dict(self.arguments), __version__)


@dataclass(frozen=True)
class ResultStore:
    """A folder of results, one small file each, computed by parallel jobs.

    Without a folder, nothing is stored.
    """

    folder: Path | None
    n_jobs: int | None = None
    finished: Callable[[str], None] = lambda _: None  # gets the name of each finished job or fit

    def one(self, job: Job) -> Any:
        """Return the result of one job that runs alone, so its time is comparable."""
        return replace(self, n_jobs=None).all([job])[0]

    def all(self, jobs: Sequence[Job]) -> list[Any]:
        """Return the results of jobs, in their order."""
        found = dict(enumerate(map(self.read, jobs)))
        missing = [place for place, result in found.items() if result is None]
        for place, result in self.run([jobs[place] for place in missing]):
            found[missing[place]] = result
            self.finished(jobs[missing[place]].name)
        return list(found.values())

    def read(self, job: Job) -> Any:
        """Return the stored result; None if there is none, or if its file is not valid."""
        path = self._path(job)
        try:
            stored = json.loads(path.read_bytes()) if path else {}
            return stored["result"] if stored["fingerprint"] == job.fingerprint else None
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None  # truncated or foreign file: compute again

    def run(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
        """Yield positions and results of jobs as they finish; each is stored first."""
        work = Parallel(n_jobs=self.n_jobs, return_as="generator_unordered")
        yield from work(
            delayed(_work)(place, job, self._path(job)) for place, job in enumerate(jobs)
        )

    def _path(self, job: Job) -> Path | None:
        return self.folder and self.folder / f"{job.name}-{job.fingerprint[:16]}.json"


def _work(place: int, job: Job, path: Path | None) -> tuple[int, Any]:
    result = job.function(**job.arguments)
    if path is None:
        return place, result
    stored = json.dumps({"job": job.name, "fingerprint": job.fingerprint, "result": result})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, stored.encode())
    return place, json.loads(stored)["result"]  # as read from the file


def fit_and_score(
    *,
    name: str,
    ranker: BaseEstimator,
    repeat: int,
    annotations: Annotations,
    test_size: float,
    seed: int,
) -> dict[str, Any]:
    """Return a ranker's row of `Comparison.cells` in one repeat, and its warnings (a `Job`)."""
    train, test = split_within_users(annotations, test_size, seed)
    ranker = clone(ranker)
    start = perf_counter()
    try:
        warned = fit_to_the_end(ranker, train)
        seconds = perf_counter() - start
        scores = with_consensus(ranker).decision_function(test)
        found = concordance_by_user(test.outcomes, scores, test.user_codes, test.weights)
        by_user = np.full(annotations.n_users, np.nan)
        by_user[lookup(test.user_ids, annotations.user_ids, "users")] = found.values
        mean = mean_concordance(test.outcomes, scores, test.users, test.weights)
    except Exception as error:
        raise RuntimeError(
            f"{name} failed in repeat {repeat}: {type(error).__name__}: {error}"
        ) from error
    chosen = getattr(ranker, "best_params_", None)
    used = ranker.get_params(deep=False) if chosen is None else chosen
    return {
        "ranker": name,
        "repeat": repeat,
        "mean_score": mean,  # over users, of their AUC (for grades, concordance)
        "seconds": seconds,
        "parameters": json.dumps(used, default=repr),
        "score_by_user": by_user.tolist(),
        "warnings": warned,
    }


# An attribute and a fit.
Work = tuple[str, Job]


def fit_to_the_end(ranker: BaseEstimator, annotations: Annotations) -> tuple[str, ...]:
    """Fit and return the warnings; raise KeyboardInterrupt if interrupted."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # This warning concerns all rankers in every repeat.
        warnings.filterwarnings("ignore", ".*one class only", UserWarning)
        ranker.fit(annotations)
    messages = tuple(dict.fromkeys(str(warning.message) for warning in caught))
    if was_interrupted(ranker) or any(one.startswith("Interrupted") for one in messages):
        raise KeyboardInterrupt
    return messages


def all_fits(
    annotations: Annotations,
    rankers: Mapping[str, BaseEstimator],
    test_size: float,
    seeds: Sequence[int],
    *,
    stored: bool,
) -> list[Job]:
    """Return all fits by repeat, so an interrupted run has as many of each ranker."""
    data = _data_fingerprint(annotations) if stored else ""
    shared = {"annotations": annotations, "test_size": test_size}
    return [
        Job(
            f"{re.sub(r'[^A-Za-z0-9._-]+', '-', name)[:60]}-{repeat:03d}",
            fit_and_score,
            {"name": name, "ranker": ranker, "repeat": repeat, "seed": seed} | shared,
            _fit_fingerprint(data, ranker, test_size, seed) if stored else "",
        )
        for repeat, seed in enumerate(seeds)
        for name, ranker in rankers.items()
    ]


def _data_fingerprint(annotations: Annotations) -> str:
    """Return a hash of all inputs of splits, fits and scores."""
    return digest_of(
        annotations.features,
        annotations.feature_rows,
        annotations.feature_names,
        annotations.user_codes,
        annotations.item_codes,
        # Hash the repr: joblib hashes equal but distinct strings differently.
        [repr(user) for user in annotations.user_ids.tolist()],
        [repr(item) for item in annotations.item_ids.tolist()],
        annotations.labels,
        annotations.grades,
        annotations.weights,
        annotations.choice_set_codes,
    )


def _fit_fingerprint(data: str, ranker: BaseEstimator, test_size: float, seed: int) -> str:
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
    # Array by array, so the hash does not depend on whether two arrays are views of one.
    return str(joblib.hash([joblib.hash(part, "sha1") for part in parts], "sha1"))


class Forecast:
    """Estimate the time of fits, first from fits to a few users, then from finished fits."""

    def __init__(self, names: Sequence[Name], n_jobs: int | None = None) -> None:
        self._left = Counter(names)
        self._n_workers = max(1, min(int(effective_n_jobs(n_jobs)), len(names)))
        self._expected: dict[Name, float] = {}
        self._taken: dict[Name, list[float]] = {}

    def measure(self, fits: Mapping[Name, tuple[BaseEstimator, Annotations]]) -> None:
        """Time each ranker on a few users, and print on stderr how long all fits take."""
        if not fits:
            return
        few = {part: _few_users(annotations) for (part, _), (_, annotations) in fits.items()}
        labels = max(map(len, few.values()))
        sys.stderr.write(f"Timing {len(fits)} rankers on {labels:,} labels first.\n")
        sys.stderr.flush()
        # Starting other processes would take longer than the fits. The first fit of a process loads
        # libraries, so a warm-up fit comes first.
        (part, name), (warm_up, _) = next(iter(fits.items()))
        _time(warm_up, few[part])
        for (part, name), (ranker, annotations) in fits.items():
            seconds = _time(ranker, few[part])
            if seconds is not None:
                growth = len(annotations) / len(few[part])
                self._expected[part, name] = seconds * growth**_POWER
        left = in_words(self.seconds_left() / self._n_workers)
        n_fits = self._left.total()
        sys.stderr.write(f"{n_fits} fits take about {left} ({self._n_workers} at a time).\n")
        sys.stderr.flush()

    def in_order(self, work: Sequence[Work]) -> list[Work]:
        """Return fits by repeat, longest first; the shortest of all comes first, as progress."""
        if not self._expected:
            return list(work)

        def place(one: Work) -> tuple[int, float]:
            return one[1].arguments["repeat"], self._expected.get(_name(one), np.inf)

        shortest = min(work, key=place)
        others = [one for one in work if one is not shortest]
        return [shortest, *sorted(others, key=lambda one: (place(one)[0], -place(one)[1]))]

    def seconds_left(self) -> float:
        """Return the seconds that all remaining fits take."""
        return sum(self._each_left())

    def _each_left(self) -> list[float]:
        """Return the seconds of each remaining fit, the longest first."""
        measured = {name: float(np.mean(times)) for name, times in self._taken.items()}
        expected = self._expected | measured
        typical = float(np.mean(list(expected.values()))) if expected else 1.0
        left = (expected.get(name, typical) for name in self._left.elements())
        return sorted(left, reverse=True)

    def share_after(self, name: Name, seconds: float, elapsed: float) -> float:
        """Return the share of work done after a fit; running fits count by the time elapsed."""
        self._left[name] -= 1
        self._taken.setdefault(name, []).append(seconds)
        # Running fits count at most as the longest remaining fits, one per worker.
        done, each = sum(map(sum, self._taken.values())), self._each_left()
        if not each:
            return 1.0
        begun = done + sum(each[: self._n_workers])
        under_way = min(elapsed * self._n_workers, begun, _MOST_UNDER_WAY * (done + sum(each)))
        return max(done, under_way) / (done + sum(each))


def _few_users(annotations: Annotations) -> Annotations:
    """Return about 300 labels, of at least two users drawn at random."""
    order = np.random.default_rng(0).permutation(annotations.n_users)
    counts = np.bincount(annotations.user_codes, minlength=annotations.n_users)[order]
    n_users = max(2, int(np.searchsorted(np.cumsum(counts), _SAMPLED)) + 1)
    return annotations[np.isin(annotations.user_codes, order[:n_users])]


def _time(ranker: BaseEstimator, few: Annotations) -> float | None:
    """Return the seconds of a fit; None if these users are too few for the ranker."""
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            clone(ranker).fit(few)
        except ValueError:
            return None
    return perf_counter() - start


def run_all(
    work: Sequence[Work], store: ResultStore, progress: bool | Callable[[str], None]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each finished fit's attribute and row, and report progress."""
    forecast = Forecast([_name(one) for one in work], store.n_jobs)
    if progress is True:
        forecast.measure(
            {
                _name(one): (one[1].arguments["ranker"], one[1].arguments["annotations"])
                for one in work
                if len(one[1].arguments["annotations"]) > MANY_LABELS
            }
        )
    work = forecast.in_order(work)
    start = perf_counter()
    with report_progress(progress is True, "fits", len(work)) as report:
        for done, (place, row) in enumerate(store.run([job for _, job in work]), start=1):
            part, name = _name(work[place])
            described = f"{part}: {name}" if part else name
            if callable(progress):
                progress(described)
            share = forecast.share_after((part, name), row["seconds"], perf_counter() - start)
            report(done, f"{described}, repeat {row['repeat']}", share)
            yield part, row


def _name(work: Work) -> Name:
    return work[0], work[1].arguments["name"]
