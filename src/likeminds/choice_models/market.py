"""Shares of items that people choose among, and how they move with a feature.

A person chooses item j with probability exp(s_j) / sum_k exp(s_k), s being their scores of the
items that are available. The share of an item is the mean of that over people, and over what is not
known about each of them (draws from their posterior).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Bool, Float, FloatArray, Index
from likeminds.mixed_model.extensions.sign_constraints import logs_of_moments, weights_of_logs
from likeminds.mixed_model.posterior import Posterior

# Draws from each person's posterior; half of them mirror the others.
_DRAWS = 64
# Draws of people's weights that are worked on at a time, in bytes.
_BYTES_AT_ONCE = 1 << 24


@dataclass(frozen=True)
class Market:
    """Items that users choose among, where ``available``; signs and logs as in `Specification`."""

    posterior: Posterior
    items: FloatArray
    available: Bool
    signs: Float | None = None
    logs: Float | None = None

    def shares(self) -> Float:
        """Return each person's probability of choosing each item, shape (n_users, n_items)."""
        found = [chances.mean(axis=1) for _, _, chances in self._visit()]
        return np.concatenate(found)

    def slopes(self, feature: int) -> Float:
        """Return d share_j / d feature_k, summed over nobody: (n_users, n_items, n_items)."""
        found = []
        for _, weights, chances in self._visit():
            weight = weights[:, :, feature]
            own = np.einsum("br,brj->bj", weight, chances) / chances.shape[1]
            both = np.einsum("br,brj,brk->bjk", weight, chances, chances) / chances.shape[1]
            found.append(np.eye(chances.shape[2]) * own[:, :, None] - both)
        return np.concatenate(found)

    def _visit(self) -> Iterator[tuple[Index, Float, Float]]:
        """Yield people, draws of their weights (b, r, d), and their chances (b, r, n_items)."""
        posterior, n_items = self.posterior, len(self.items)
        rng = np.random.default_rng(0)
        size = len(posterior.prior.mean)
        normal = rng.standard_normal((_DRAWS // 2, size))
        normal = np.concatenate([normal, -normal])
        most = max(1, _BYTES_AT_ONCE // (8 * _DRAWS * (n_items + 2 * size)))
        whole = posterior.prior.covariance
        for start in range(0, len(posterior.users), most):
            people = np.arange(start, min(start + most, len(posterior.users)))
            known = posterior.known[people].astype(np.float64)
            centre, covariance = posterior.points[people], whole - known.transpose(0, 2, 1) @ known
            if self.logs is not None:
                centre, covariance = logs_of_moments(centre, covariance, self.logs)
            values, vectors = np.linalg.eigh(covariance)
            root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
            points = centre[:, None] + normal @ root.transpose(0, 2, 1)
            if self.signs is not None:
                points = np.where(self.signs * points < 0.0, 0.0, points)
            if self.logs is not None:
                points = weights_of_logs(points, self.logs)
            weights = posterior.coordinates.weights(points)
            scores = weights @ self.items.T
            scores[np.broadcast_to(~self.available[people][:, None], scores.shape)] = -np.inf
            chances = np.exp(scores - scores.max(axis=2, keepdims=True))
            yield people, weights, chances / chances.sum(axis=2, keepdims=True)
