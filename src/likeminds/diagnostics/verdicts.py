"""The result of diagnostics: a verdict on each annotator, and agreement."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import expit

from likeminds._util.array_types import Float, IdArray, Index
from likeminds._util.result_tables import Frames, ResultTable, Rows
from likeminds._util.text_format import counted
from likeminds.data.annotations import Annotations
from likeminds.metrics.inter_annotator_agreement import Agreement
from likeminds.metrics.paired import PairedDifference, over_users
from likeminds.metrics.severity import Severity

AGREES, DIFFERENT, REVERSED, CONSTANT, RANDOM, UNCLEAR = VERDICTS = (
    *("agrees", "different", "reversed", "constant", "random", "unclear"),
)
# Verdicts to review, and the meaning of each verdict.
UNUSUAL = (REVERSED, CONSTANT, RANDOM, DIFFERENT)
MEANINGS = {
    AGREES: "the consensus predicts their labels",
    DIFFERENT: "their own ranking predicts their labels better than the consensus does",
    REVERSED: "the consensus predicts the opposite of their labels: yes and no may be swapped",
    CONSTANT: "nearly always the same answer, or long runs of one answer, whatever the item",
    RANDOM: "nothing predicts their labels better than chance, though there are enough labels",
    UNCLEAR: "too few labels, or labels of one kind, to tell",
}


@dataclass(frozen=True, eq=False, repr=False)
class Diagnostics(ResultTable):
    """The predictability of each user's labels, and a verdict; a table with a row per user.

    Attributes
    ----------
    users : array of shape (n_users,)
        The users.
    verdict : array of shape (n_users,)
        "agrees": the consensus predicts their labels. "different": their own function predicts them
        better than the consensus does. "reversed": the reversed consensus predicts their labels,
        and their own function hardly better. "constant": answers are nearly all the same or come in
        long runs, whatever the item. "random": neither function predicts them better than chance,
        though there are enough labels. "unclear": too few labels, or labels of one kind.
    consensus_auc, own_auc : arrays of shape (n_users,)
        AUC of the consensus and of the user's own function on held-out labels. Grades are split at
        the user's median. NaN for users without a pair to compare.
    low, high : arrays of shape (n_users,)
        A 95 % interval of ``own_auc``.
    n_labels, positive_share : arrays of shape (n_users,)
        The number of labels, and the share of positive labels.
    readiness : array of shape (n_users,)
        The log-odds of a yes, given the item's consensus score, less the mean of users. Strict
        users are below zero. Users with few labels are shrunk to zero. NaN for choices.
    p_chance : array of shape (n_users,)
        The p-value of the better of the two AUCs under random labels.
    p_attentive : array of shape (n_users,)
        The probability that an attentive user has so low an AUC; NaN with too few labels or users.
    held_out : bool
        True if ``annotations`` were held-out labels; False after cross-fitting.
    seconds : array of shape (n_users,), optional
        Median response times; NaN if they are not known.
    agreement : Agreement or None
        Inter-annotator agreement, and each user's mean kappa with the others. None for choices, or
        if no item was labelled by several users.
    """

    users: IdArray
    verdict: NDArray[np.str_]
    consensus_auc: Float
    own_auc: Float
    low: Float
    high: Float
    n_labels: Index
    positive_share: Float
    p_chance: Float
    p_attentive: Float
    held_out: bool
    readiness: Float
    frames: Frames = "pyarrow"
    seconds: Float | None = None
    agreement: Agreement | None = None

    @property
    def counts(self) -> dict[str, int]:
        """The number of users with each verdict."""
        return {verdict: int((self.verdict == verdict).sum()) for verdict in VERDICTS}

    def of(self, verdict: str) -> IdArray:
        """Return the users with a verdict."""
        if verdict not in VERDICTS:
            raise ValueError(f"verdict must be one of {', '.join(VERDICTS)}, not {verdict!r}.")
        chosen: IdArray = self.users[self.verdict == verdict]
        return chosen

    def leave_out(self, verdicts: Collection[str], annotations: Annotations) -> Annotations:
        """Return the annotations without those of users with one of the verdicts."""
        out = np.concatenate([self.of(verdict) for verdict in verdicts])
        is_kept = ~np.isin(annotations.user_ids, out)
        if not is_kept.any():
            raise ValueError(
                f"All users have the verdict {' or '.join(verdicts)}, so no labels remain."
            )
        return annotations[is_kept[annotations.user_codes]]

    @property
    def gain(self) -> PairedDifference:
        """The mean over users of ``own_auc - consensus_auc``, with its interval."""
        return over_users(self.own_auc - self.consensus_auc)

    def disagreement(self) -> str:
        """Return a sentence on whether disagreement is noise or predictable."""
        mean, low, high, _ = self.gain
        auc = f"in AUC {mean:+.3f}, 95 % interval {low:+.3f} to {high:+.3f}"
        if low > 0:
            return (
                "Disagreement is partly predictable: each user's own ranking predicts held-out "
                f"labels better than the consensus ({auc}). Only the rest is noise."
            )
        return (
            "Disagreement is noise, or different thresholds, as far as these labels show: users' "
            f"own rankings do not predict held-out labels better than the consensus ({auc})."
        )

    def to_arrow(self) -> pa.Table:
        """Return a table of pyarrow with a row per user."""
        columns: dict[str, Any] = {
            "user": self.users.tolist(),
            "verdict": self.verdict.tolist(),
            "labels": self.n_labels,
        }
        names = ("positive_share", "readiness", "consensus_auc", "own_auc", "low", "high")
        columns |= {name: getattr(self, name) for name in (*names, "p_chance", "p_attentive")}
        if self.seconds is not None and np.isfinite(self.seconds).any():
            columns["seconds"] = self.seconds
        if self.agreement is not None:
            columns["kappa"] = self.agreement.kappa_by_user
        return pa.table(columns)

    @property
    def severity(self) -> Severity | None:
        """The shares of yes by user; None for choices."""
        if not np.isfinite(self.readiness).any():
            return None
        return Severity(self.users, self.positive_share, self.n_labels)

    @property
    def yes_where_divided(self) -> Float:
        """The probability that each user says yes to an item with an average chance of a yes."""
        return np.asarray(expit(self.readiness))

    def __repr__(self) -> str:
        return f"<{self._headline()}>"

    def _html_tables(self) -> Sequence[Rows]:
        unusual = self.to_arrow().filter(np.isin(self.verdict, UNUSUAL))
        counts = [{"verdict": verdict, "users": n} for verdict, n in self.counts.items()]
        return counts, unusual.to_pylist()

    def _headline(self) -> str:
        counts = ", ".join(f"{n} {verdict}" for verdict, n in self.counts.items())
        severity = self.severity
        words = "" if severity is None else f"; {severity}"
        return f"{counted(len(self.users), 'person', 'people')}: {counts}{words}"
