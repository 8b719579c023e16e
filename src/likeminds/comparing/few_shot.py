"""Scores of a model for known users, and for new users with few choices or labels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator

from likeminds._util.array_types import Float
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
from likeminds.rankers.prior_ranker import PriorRanker
from likeminds.rankers.ranker import Ranker


@dataclass(frozen=True)
class FewShotScores:
    """Scores of a model for some users.

    Attributes
    ----------
    seen : bool
        Whether the model was fitted to other choices (or labels) of these users.
    shots : int
        The number of choices of each new user given to the model, without a refit.
    measures : dict of MetricByUser
        For choices, "accuracy" and (if scores are log-odds) "log_loss"; for labels and grades,
        "auc" or "concordance".
    n_scored : int
        The number of choices or labels scored.
    """

    seen: bool
    shots: int
    measures: dict[str, MetricByUser]
    n_scored: int

    def as_row(self) -> dict[str, Any]:
        """Return means and standard errors, as a row of a table."""
        row: dict[str, Any] = {"users": "seen" if self.seen else "unseen", "shots": self.shots}
        for name, metric in self.measures.items():
            row |= {name: metric.mean, f"{name}_error": metric.standard_error}
        n_users = len(next(iter(self.measures.values())).users)
        return row | {"n_users": n_users, "n_scored": self.n_scored}


class FewShotTable(list[FewShotScores], ResultTable):
    """Scores of groups of users, a row for each."""

    def __init__(self, scores: Iterable[FewShotScores], frames: Frames) -> None:
        super().__init__(scores)
        self.frames = frames

    def to_arrow(self) -> pa.Table:
        """Return a table of pyarrow with the columns of `FewShotScores.as_row`."""
        return pa.Table.from_pylist([one.as_row() for one in self])

    def _headline(self) -> str:
        return "Scores of known users, and of new users by their shots"


def score_shots(
    ranker: Ranker,
    annotations: Annotations,
    shots: Sequence[int] = (0, 5, 10),
    random_state: int | Generator | None = 0,
) -> FewShotTable:
    """Score a fitted ranker on known users, and on new users after k of their choices.

    Known users are scored on all their rows, so hold these out of training. For each new user,
    ``max(shots)`` choices are drawn at random. The ranker gets the first k of them (`newcomer`,
    without a refit), and is scored on the user's other choices. New users without other choices are
    left out. Unknown items are scored as with ``unknown="consensus"``.

    Parameters
    ----------
    ranker : fitted ranker
        For new users it needs the method `newcomer`, unless ``shots`` is 0 alone.
    annotations : Annotations
        Comparisons, rankings or choices, or labels or grades.
    shots : sequence of int, default=(0, 5, 10)
        The numbers of choices (or labels) of each new user to give to the ranker.
    random_state : int or Generator, optional
        The seed of the draw.

    Returns
    -------
    FewShotTable
        A list of `FewShotScores`, also a table (`to_pandas` and the like): one for known
        users, if there are any, and one for each k, if there are new users.

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, load_electricity
    >>> homes = load_electricity()
    >>> ranker = HierarchicalRanker(n_groups=1).fit(homes.of_users(homes.user_ids[:200]))
    >>> found = score_shots(ranker, homes.of_users(homes.user_ids[200:]), shots=[0, 4])
    >>> [(one.seen, one.shots, sorted(one.measures)) for one in found]
    [(False, 0, ['accuracy', 'log_loss']), (False, 4, ['accuracy', 'log_loss'])]
    """
    numbers = sorted({int(k) for k in shots})
    if not numbers or numbers[0] < 0:
        raise ValueError(f"shots must be one or more numbers from 0, not {list(shots)}.")
    annotations = annotations.written_as(ranker.users_)
    known = lookup(annotations.user_ids, ranker.users_, "users") >= 0
    found = []
    if known.any():
        rows = annotations[known[annotations.user_codes]]
        found.append(_judge(rows, *_scores_of(ranker, rows), seen=True, shots=0))
    if not known.all():
        found += _new_users(
            ranker, annotations[~known[annotations.user_codes]], numbers, random_state
        )
    return FewShotTable(found, annotations.frames)


def _new_users(
    ranker: Ranker,
    annotations: Annotations,
    shots: Sequence[int],
    random_state: int | Generator | None,
) -> list[FewShotScores]:
    if shots[-1]:
        Capability.NEWCOMERS.require(ranker)
    place = order_within_users(annotations, np.random.default_rng(random_state))
    rest = place >= shots[-1]
    if not rest.any():
        raise ValueError(
            f"No new user has more than {shots[-1]} choices or labels, so none are left to "
            "score. Lower shots."
        )
    test = annotations[rest]
    has_rest = np.isin(annotations.users, test.user_ids)
    found = []
    for k in shots:
        shown = (place < k) & has_rest
        scores, posterior = _scores_of(ranker, test)
        if shown.any():
            posterior = with_consensus(ranker).newcomer(annotations[shown])
            users = test.users if len(posterior.users) > 1 else None
            scores = posterior.decision_function(test, users)
        found.append(_judge(test, scores, posterior, seen=False, shots=k))
    return found


def _judge(
    annotations: Annotations, scores: Float, posterior: Posterior | None, *, seen: bool, shots: int
) -> FewShotScores:
    if not are_choices(annotations):
        users, weights = annotations.users, annotations.weights
        found = concordance_by_user(annotations.outcomes, scores, users, weights)
        measures = {measure_of(annotations.outcomes).lower(): found}
        return FewShotScores(seen, shots, measures, len(annotations))
    chances = None
    if posterior is not None:
        owner = lookup(annotations.users, posterior.users, "users")
        chances = chances_of_sets(posterior, annotations, scores, owner)
    choices = score_choices(annotations, scores, chances)
    measures = {"accuracy": choices.accuracy}
    if chances is not None:
        measures["log_loss"] = choices.log_loss
    assert annotations.choice_set_codes is not None
    return FewShotScores(seen, shots, measures, int(annotations.choice_set_codes.max()) + 1)


def _scores_of(ranker: Ranker, annotations: Annotations) -> tuple[Float, Posterior | None]:
    """Return scores of rows, and the posterior behind them, if there is one."""
    scores = with_consensus(ranker).decision_function(annotations)
    return scores, ranker._posterior() if isinstance(ranker, PriorRanker) else None
