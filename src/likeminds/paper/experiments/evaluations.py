"""The same loss evaluated in slower ways: through a person's rows, and through their pairs."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from likeminds import Annotations
from likeminds._util.array_types import Float
from likeminds.losses import QuadraticLoss


@dataclass(frozen=True)
class UserRows:
    """The rows of one person, as a contiguous array, and which are positive."""

    rows: Float
    positive: np.ndarray


def people_of(annotations: Annotations) -> list[UserRows]:
    """Return everybody's rows."""
    order, offsets = annotations.user_index()
    features = annotations.X[order].astype(np.float64, copy=False)
    labels = annotations.labels[order]
    return [UserRows(features[begin:end], labels[begin:end]) for begin, end in pairwise(offsets)]


@dataclass(frozen=True)
class ThroughRows(QuadraticLoss):
    """Proposition 1 as the paper uses it: two products with each person's rows.

    The rows stay in memory as they are, so that nothing is gathered or centred anew.
    """

    people: list[UserRows]

    @classmethod
    def of(cls, loss: QuadraticLoss, people: list[UserRows]) -> "ThroughRows":
        """Take b and c from a loss that has them, and the rows for all products."""
        return cls(**vars(loss), people=people)

    def apply(self, W: Float) -> Float:
        """Return A_i w_i = X_i'L_i X_i w_i for every person."""
        product = np.empty(self.shape)
        for i, person in enumerate(self.people):
            scores = person.rows @ W[i]
            product[i] = _laplacian_times(scores, person.positive) @ person.rows
        return product


def _laplacian_times(scores: Float, positive: np.ndarray) -> Float:
    n_positive = int(positive.sum())
    n_negative = len(positive) - n_positive
    mean_positive = scores[positive].sum() / n_positive
    mean_negative = (scores.sum() - mean_positive * n_positive) / n_negative
    product: Float = np.where(
        positive, (scores - mean_negative) / n_positive, (scores - mean_positive) / n_negative
    )
    return product


def pair_differences(person: UserRows) -> Float:
    """Return x_p - x_q for every positive p and negative q, shape (n+ n-, d)."""
    liked, others = person.rows[person.positive], person.rows[~person.positive]
    differences: Float = (liked[:, None, :] - others[None, :, :]).reshape(-1, liked.shape[1])
    return differences


def pair_gradient(differences: Float, w: Float) -> tuple[float, Float]:
    """Return the loss and its gradient as they are defined, pair by pair."""
    left = 1.0 - differences @ w
    return 0.5 * float(left @ left) / len(left), -(left @ differences) / len(left)


def pair_bytes(people: list[UserRows]) -> int:
    """Return what all pair differences would take, held at once."""
    total = 0
    for person in people:
        n_positive = int(person.positive.sum())
        total += 8 * person.rows.shape[1] * n_positive * (len(person.rows) - n_positive)
    return total
