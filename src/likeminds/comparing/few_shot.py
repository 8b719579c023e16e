"""A model judged on people it knows, on strangers, and with a few choices of strangers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator

from likeminds._util.array_types import Bool, Float, IdArray, Index
from likeminds._util.result_tables import Frames, ResultTable
from likeminds.data.annotations import Annotations
from likeminds.data.coded_labels import are_choices
from likeminds.data.identifiers import lookup
from likeminds.data.splits import order_within_users
from likeminds.metrics.by_user import MetricByUser
from likeminds.metrics.choices import score_choices
from likeminds.metrics.concordance import concordance_by_user, measure_of
from likeminds.mixed_model.choice_probabilities import chances_of_sets
from likeminds.mixed_model.posterior import Posterior
from likeminds.rankers.capabilities import Capability, with_consensus


@dataclass(frozen=True)
class FewShotScores:
    """How well a model does for some people.

    Attributes
    ----------
    seen : bool
        Whether the model was fitted to others of their choices (or labels).
    shots : int
        How many of their own it was told, without a refit, if it was not.
    measures : dict of MetricByUser
        Of choices, "accuracy" and (where scores are log-odds) "log_loss"; of labels and grades,
        "auc" or "concordance".
    n_said : int
        On how many choices, or labels.
    """

    seen: bool
    shots: int
    measures: dict[str, MetricByUser]
    n_said: int

    def as_row(self) -> dict[str, Any]:
        """Return means and standard errors, as a row of a table."""
        row: dict[str, Any] = {"people": "seen" if self.seen else "unseen", "shots": self.shots}
        for name, metric in self.measures.items():
            row |= {name: metric.mean, f"{name}_error": metric.standard_error}
        return row | {"n_users": len(self._anyone.users), "n_said": self.n_said}

    @property
    def _anyone(self) -> MetricByUser:
        return next(iter(self.measures.values()))


class FewShotTable(list[FewShotScores], ResultTable):
    """Scores of groups of people, a row for each."""

    def __init__(self, scores: Iterable[FewShotScores], frames: Frames) -> None:
        super().__init__(scores)
        self.frames = frames

    def to_arrow(self) -> pa.Table:
        """Return a table of pyarrow with the columns of `FewShotScores.as_row`."""
        return pa.Table.from_pylist([one.as_row() for one in self])

    def _headline(self) -> str:
        return "Scores of people that the model knows, and of new users by their shots"


def score_shots(
    ranker: Any,
    said: Annotations,
    shots: Sequence[int] = (0, 5, 10),
    random_state: int | Generator | None = 0,
) -> FewShotTable:
    """Score a fitted ranker on people it knows, and on strangers told k choices of theirs.

    Who was in the training is judged on everything here (hold it out before). Of everybody else,
    as many choices as the highest of ``shots`` are drawn at random and set aside. The ranker is
    told the first k of them (`newcomer`, nothing is refitted), and judged on the rest, the same for
    all k. Strangers without a rest are left out. Unknown items are scored as with
    ``unknown="consensus"``.

    Parameters
    ----------
    ranker : fitted ranker
        Strangers need one with `newcomer`, unless ``shots`` is 0 alone.
    said : Annotations
        Comparisons, rankings or choices; or labels or grades, judged by the concordance.
    shots : sequence of int, default=(0, 5, 10)
        How many choices (or labels) of strangers are told.
    random_state : int or Generator, optional
        Makes the draw reproducible.

    Returns
    -------
    FewShotTable
        A list of `FewShotScores`, also a table (`to_pandas` and the like): one for users that the
        model knows, if there are any, and one for each k, if there are new users.

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, load_electricity
    >>> homes = load_electricity()
    >>> ranker = HierarchicalRanker(n_groups=1).fit(homes.of_users(homes.user_ids[:200]))
    >>> found = score_shots(ranker, homes.of_users(homes.user_ids[200:]), shots=[0, 4])
    >>> [(one.seen, one.shots, sorted(one.measures)) for one in found]
    [(False, 0, ['accuracy', 'log_loss']), (False, 4, ['accuracy', 'log_loss'])]
    """
    wanted = sorted({int(k) for k in shots})
    if not wanted or wanted[0] < 0:
        raise ValueError(f"shots must be one or more numbers from 0, not {list(shots)}.")
    said = said.written_as(ranker.users_)
    known = lookup(said.user_ids, ranker.users_, "users") >= 0
    found = []
    if known.any():
        rows = said[known[said.user_codes]]
        found.append(_judge(rows, _Scorer.of_seen(ranker, rows), seen=True, shots=0))
    if not known.all():
        found += _strangers(ranker, said[~known[said.user_codes]], wanted, random_state)
    return FewShotTable(found, said.frames)


def _strangers(
    ranker: Any, said: Annotations, shots: Sequence[int], random_state: int | Generator | None
) -> list[FewShotScores]:
    if shots[-1]:
        Capability.NEWCOMERS.require(ranker)
    place = order_within_users(said, np.random.default_rng(random_state))
    rest = place >= shots[-1]
    if not rest.any():
        raise ValueError(
            f"Nobody unknown to the model has more than {shots[-1]} choices or labels, so that "
            "nothing is left to judge by. Lower shots."
        )
    test = said[rest]
    has_rest = np.isin(said.users, test.user_ids)
    found = []
    for k in shots:
        told = (place < k) & has_rest
        scorer = _Scorer.of_unknown_users(ranker, said, told, test)
        found.append(_judge(test, scorer, seen=False, shots=k))
    return found


@dataclass(frozen=True)
class _Scorer:
    """Scores of rows, and the posteriors that they come from, where there are any."""

    scores: Float
    posterior: Posterior | None
    people: Index | None

    @classmethod
    def of_seen(cls, ranker: Any, said: Annotations) -> "_Scorer":
        scores = with_consensus(ranker).decision_function(said)
        posterior = ranker._posterior() if hasattr(ranker, "_posterior") else None
        return cls(scores, posterior, lookup(said.users, ranker.users_, "users"))

    @classmethod
    def of_unknown_users(
        cls, ranker: Any, said: Annotations, told: Bool, test: Annotations
    ) -> "_Scorer":
        if not told.any():
            scores = with_consensus(ranker).decision_function(test)
            posterior = ranker._posterior() if hasattr(ranker, "_posterior") else None
            return cls(scores, posterior, np.full(len(test), -1))
        posterior = with_consensus(ranker).newcomer(said[told])
        people = lookup(test.users, posterior.users, "users")
        users: IdArray | None = test.users if len(posterior.users) > 1 else None
        return cls(posterior.decision_function(test, users), posterior, people)

    def chances(self, said: Annotations) -> Float | None:
        """Return the probability of each row to be chosen; None where scores are no log-odds."""
        if self.posterior is None or self.people is None:
            return None
        return chances_of_sets(self.posterior, said, self.scores, self.people)


def _judge(said: Annotations, scorer: _Scorer, *, seen: bool, shots: int) -> FewShotScores:
    if not are_choices(said):
        judged = concordance_by_user(said.outcomes, scorer.scores, said.users, said.weights)
        return FewShotScores(seen, shots, {measure_of(said.outcomes).lower(): judged}, len(said))
    chances = scorer.chances(said)
    scores = score_choices(said, scorer.scores, chances)
    measures = {"accuracy": scores.accuracy}
    if chances is not None:
        measures["log_loss"] = scores.log_loss
    assert said.choice_set_codes is not None
    return FewShotScores(seen, shots, measures, int(said.choice_set_codes.max()) + 1)
