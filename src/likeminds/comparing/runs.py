"""The cells of a comparison: one ranker, one repeat, and its result on disk."""

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import joblib
import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from likeminds._util.array_types import Float
from likeminds._util.atomic_files import write_whole
from likeminds._version import __version__
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import lookup
from likeminds.data.splits import split_within_users
from likeminds.metrics.concordance import concordance_by_user, mean_concordance
from likeminds.rankers.candidates import was_interrupted
from likeminds.rankers.capabilities import with_consensus

Key = tuple[str, int]
T = TypeVar("T")


@dataclass(frozen=True)
class RunResult:
    """What one ranker reached in one repeat.

    Attributes
    ----------
    mean_score : float
        The mean over people of their AUC on the rows held out (of grades, the concordance).
    scores : tuple of float
        That of each person, NaN where it is not defined.
    seconds : float
        How long the fit took, tuning included.
    parameters : str
        The parameters chosen (or given, where nothing is tuned), as JSON.
    warnings : tuple of str
        What the fit warned of.
    """

    mean_score: float
    scores: tuple[float, ...]
    seconds: float
    parameters: str
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class ComparisonRun:
    """One ranker in one repeat: which split it sees, and where its result goes."""

    name: str
    ranker: Any
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
            kept = json.loads(self.path.read_bytes())
            scores = tuple(np.nan if one is None else float(one) for one in kept["scores"])
            if kept["fingerprint"] != self.fingerprint or len(scores) != n_users:
                return None
            return RunResult(
                float(kept["mean_score"]),
                scores,
                float(kept["seconds"]),
                str(kept["parameters"]),
                tuple(map(str, kept["warnings"])),
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
            kept = vars(result) | {
                "ranker": self.name,
                "repeat": self.repeat,
                "fingerprint": self.fingerprint,
                "scores": [None if np.isnan(one) else one for one in result.scores],
            }
            write_whole(self.path, json.dumps(kept).encode())
        return self.key, result

    def _measure(self, annotations: Annotations) -> RunResult:
        train, test = split_within_users(annotations, self.test_size, self.seed)
        ranker = clone(self.ranker)
        start = perf_counter()
        warned = fit_to_the_end(ranker, train)
        seconds = perf_counter() - start
        scores = with_consensus(ranker).decision_function(test)
        return RunResult(
            mean_concordance(test.outcomes, scores, test.users, test.weights),
            tuple(_by_user(annotations, test, scores).tolist()),
            seconds,
            _parameters(ranker),
            warned,
        )


def fit_to_the_end(ranker: Any, annotations: Annotations) -> tuple[str, ...]:
    """Fit, and return what it warned of; an interrupt that the ranker survives is raised here.

    What is kept on disk must not come from half a fit.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # It holds for all rankers alike, in every repeat: no news.
        warnings.filterwarnings("ignore", ".*one class only", UserWarning)
        ranker.fit(annotations)
    told = tuple(dict.fromkeys(str(warning.message) for warning in caught))
    if was_interrupted(ranker) or any(message.startswith("Interrupted") for message in told):
        raise KeyboardInterrupt
    return told


def all_cells(
    annotations: Annotations,
    rankers: Mapping[str, Any],
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
                path = _path(folder, name, repeat, key)
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


def _path(folder: Path, name: str, repeat: int, fingerprint: str) -> Path:
    """Return the file of a cell: a readable name, with a hash that differs between inputs."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:60]
    return folder / f"{readable}-{repeat:03d}-{fingerprint[:16]}.json"


def _data_fingerprint(annotations: Annotations) -> str:
    """Return a hash of all that a split, a fit or a score can depend on."""
    return digest_of(
        annotations.features,
        annotations.feature_rows,
        annotations.feature_names,
        annotations.user_codes,
        annotations.item_codes,
        # By their representations: equal texts need not be equal objects.
        [repr(person) for person in annotations.user_ids.tolist()],
        [repr(item) for item in annotations.item_ids.tolist()],
        annotations.labels,
        annotations.grades,
        annotations.weights,
        annotations.choice_set_codes,
    )


def _cell_fingerprint(data: str, ranker: Any, test_size: float, seed: int) -> str:
    """Return a hash of the data, the split, and the estimator's class and parameters."""
    parameters = {
        name: _class_of(value) if hasattr(value, "get_params") else value
        for name, value in sorted(ranker.get_params().items())
        if name.split("__")[-1] not in ("n_jobs", "verbose")  # the same result
    }
    return digest_of(data, __version__, _class_of(ranker), parameters, float(test_size), seed)


def _class_of(estimator: Any) -> str:
    return f"{type(estimator).__module__}.{type(estimator).__qualname__}"


def digest_of(*parts: Any) -> str:
    """Return a hash of some arrays, texts and numbers."""
    # Array by array, and not in one list: whether two are views of one must not matter.
    return str(joblib.hash([joblib.hash(part, "sha1") for part in parts], "sha1"))


def _by_user(annotations: Annotations, test: Annotations, scores: Float) -> Float:
    found = concordance_by_user(test.outcomes, scores, test.user_codes, test.weights)
    by_user = np.full(annotations.n_users, np.nan)
    by_user[lookup(test.user_ids, annotations.user_ids, "users")] = found.values
    return by_user


def _parameters(ranker: Any) -> str:
    chosen = getattr(ranker, "best_params_", None)
    return json.dumps(ranker.get_params(deep=False) if chosen is None else chosen, default=repr)
