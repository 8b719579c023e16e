"""Co-clusters of users and features: learned weights compared with those of a simulation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from likeminds._util.array_types import Float, Index
from likeminds._util.checks import as_matrix
from likeminds.datasets.simulation import Simulation

_STARTS = 20


@dataclass(frozen=True, eq=False)
class CoClusterRecovery:
    """True and learned co-clusters; an adjusted Rand index is 1 if they are equal, 0 by chance.

    Attributes
    ----------
    true, learned : arrays of shape (n_users, n_features)
        The weights.
    true_users, learned_users : arrays of shape (n_users,)
        The cluster of each user; true users without a school have -1.
    true_features, learned_features : arrays of shape (n_features,)
        The cluster of users whose mean weight on the feature is farthest from that of all users;
        -1 if none differs.
    users_index, features_index : float
        Adjusted Rand index between true and learned clusters of users with a school, and of
        features.
    cosine : float
        Mean over users of the cosine between true and learned weights.
    """

    true: Float
    learned: Float
    true_users: Index
    learned_users: Index
    true_features: Index
    learned_features: Index

    @property
    def users_index(self) -> float:
        """Adjusted Rand index of the users with a school."""
        known = self.true_users >= 0
        return float(adjusted_rand_score(self.true_users[known], self.learned_users[known]))

    @property
    def features_index(self) -> float:
        """Adjusted Rand index of the features."""
        return float(adjusted_rand_score(self.true_features, self.learned_features))

    @property
    def cosine(self) -> float:
        """Mean cosine between true and learned weights."""
        return float(np.mean(np.sum(directions(self.true) * directions(self.learned), axis=1)))


def cocluster_recovery(
    simulation: Simulation, coef: ArrayLike, n_clusters: int | None = None
) -> CoClusterRecovery:
    """Compare the co-clusters of learned weights with those of a simulation.

    Users are clustered by k-means on the directions of their weights, less the mean direction.

    Parameters
    ----------
    simulation : Simulation
        The truth (see `likeminds.make_simulation`).
    coef : array of shape (n_users, n_features)
        Learned weights, such as ``ranker.coef_``; users in the order of the simulation.
    n_clusters : int, optional
        The number of clusters of users; by default the true number of schools.

    Returns
    -------
    CoClusterRecovery

    Examples
    --------
    >>> from likeminds import ThreeLevelRanker, make_simulation
    >>> simulation = make_simulation(20, 300, 20, n_positive=30, random_state=0)
    >>> ranker = ThreeLevelRanker(n_groups=5).fit(simulation.annotations)
    >>> found = cocluster_recovery(simulation, ranker.coef_)
    >>> print(f"users {found.users_index:.2f}, features {found.features_index:.2f}")
    users 1.00, features 0.84
    """
    learned = np.asarray(as_matrix(coef, "coef"), dtype=np.float64)
    if learned.shape != simulation.group.shape:
        raise ValueError(
            f"coef has shape {learned.shape}, but the simulation has {simulation.group.shape} "
            "(users, features). Pass the weights of a ranker fitted to its annotations."
        )
    true_users = np.unique(simulation.school, return_inverse=True)[1] - (
        simulation.school.min() < 0
    )
    number = int(true_users.max()) + 1 if n_clusters is None else n_clusters
    k_means = KMeans(number, n_init=_STARTS, random_state=0)
    clusters = np.asarray(k_means.fit_predict(deviations(learned)))
    return CoClusterRecovery(
        simulation.coef,
        learned,
        true_users,
        clusters,
        _cluster_features(simulation.group, true_users),
        _cluster_features(deviations(learned), clusters),
    )


def _cluster_features(weights: Float, users: Index) -> Index:
    """Return for each feature the cluster of users whose mean weight is farthest from zero."""
    means = np.abs([weights[users == cluster].mean(axis=0) for cluster in range(users.max() + 1)])
    return np.where(means.max(axis=0) > 0, means.argmax(axis=0), -1)


def directions(coef: Float) -> Float:
    """Scale weights to unit length, which does not change the ranking."""
    lengths = np.linalg.norm(coef, axis=1, keepdims=True)
    return np.asarray(coef / np.where(lengths > 0, lengths, 1.0))


def deviations(coef: Float) -> Float:
    """Return the directions of weights, less their mean over users."""
    unit = directions(coef)
    return np.asarray(unit - unit.mean(axis=0))
