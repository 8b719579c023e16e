"""How long a comparison takes: by fits to a few people, then by its own fits."""

import sys
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone

from likeminds._util.console import in_words
from likeminds.data.annotations import Annotations

# Comparisons of fewer labels take about as long as a forecast.
MANY_LABELS = 20_000
_SAMPLED = 1_000
# Time grows with the number of labels to this power: between searches by statistics of people,
# which grow slower, and HierarchicalRanker, which grows faster. On 100,000 film ratings, the
# rankers compared by default take 73 processor seconds, and by this power 79.
_POWER = 0.7
# Fits under way never count as more than this share of the work.
_MOST_UNDER_WAY = 0.99

Name = tuple[str, str]


class Forecast:
    """Seconds that fits take, by ranker.

    Parameters
    ----------
    names : sequence of names
        The attribute and the ranker of each fit that is to come.
    n_jobs : int, optional
        How many fits run at the same time (joblib).
    """

    def __init__(self, names: Sequence[Name], n_jobs: int | None = None) -> None:
        self._left = Counter(names)
        self._n_jobs = n_jobs
        self._n_workers = max(1, min(int(effective_n_jobs(n_jobs)), len(names)))
        self._expected: dict[Name, float] = {}
        self._taken: dict[Name, list[float]] = {}

    def measure(self, parts: Mapping[str, Annotations], rankers: Mapping[Name, Any]) -> None:
        """Time each ranker on a few people, and print on stderr how long all fits take."""
        if not rankers:
            return
        few = {part: _few_people(parts[part]) for part in {part for part, _ in rankers}}
        labels = max(map(len, few.values()))
        sys.stderr.write(f"Timing {len(rankers)} rankers on {labels:,} labels first.\n")
        sys.stderr.flush()
        times = Parallel(n_jobs=self._n_jobs)(
            delayed(_time)(ranker, few[part]) for (part, _), ranker in rankers.items()
        )
        for name, seconds in zip(rankers, times, strict=True):
            if seconds is not None:
                growth = len(parts[name[0]]) / len(few[name[0]])
                self._expected[name] = seconds * growth**_POWER
        left = in_words(self.seconds_left() / self._n_workers)
        n_fits = self._left.total()
        sys.stderr.write(f"{n_fits} fits take about {left} ({self._n_workers} at a time).\n")
        sys.stderr.flush()

    def seconds_left(self) -> float:
        """Return what the fits to come take together."""
        known = {name: float(np.mean(times)) for name, times in self._taken.items()}
        expected = self._expected | known
        usual = float(np.mean(list(expected.values()))) if expected else 1.0
        return sum(count * expected.get(name, usual) for name, count in self._left.items())

    def share_after(self, name: Name, seconds: float, elapsed: float) -> float:
        """Return the share of the work that is done after another fit, with those under way.

        Parameters
        ----------
        name : name
            Which fit.
        seconds : float
            How long it took.
        elapsed : float
            The seconds since the first fit began.
        """
        self._left[name] -= 1
        self._taken.setdefault(name, []).append(seconds)
        done, left = sum(map(sum, self._taken.values())), self.seconds_left()
        if not left:
            return 1.0
        under_way = min(elapsed * self._n_workers, _MOST_UNDER_WAY * (done + left))
        return max(done, under_way) / (done + left)


def _few_people(annotations: Annotations) -> Annotations:
    """Return about a thousand labels, by at least two people drawn at random."""
    order = np.random.default_rng(0).permutation(annotations.n_users)
    counts = np.bincount(annotations.user_codes, minlength=annotations.n_users)[order]
    n_users = max(2, int(np.searchsorted(np.cumsum(counts), _SAMPLED)) + 1)
    return annotations[np.isin(annotations.user_codes, order[:n_users])]


def _time(ranker: Any, few: Annotations) -> float | None:
    """Return the seconds of a fit; None where a few people are too few for the ranker."""
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            clone(ranker).fit(few)
        except ValueError:
            return None
    return perf_counter() - start
