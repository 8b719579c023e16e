"""Simulated annotations: labels, and the weights behind them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from likeminds._util.array_types import Bool, Float
from likeminds._util.checks import refuse_outside_unit
from likeminds.data.annotations import Annotations

Int = NDArray[np.intp]

# The paper's layout, for 100 users and 80 features: the edges of its blocks of users and of
# features, and the ranges of users with personal weights.
_USERS, _FEATURES = 100, 80
_USER_EDGES = (0, 20, 40, 60, 80, 100)
_FEATURE_EDGES = (0, 20, 40, 50, 70, 80)
_PERSONAL_EDGES = (0, 5, 9, 15, 19, 25)

# Users who are simulated at a time, which bounds the memory for their items' features.
_USERS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Simulation:
    """Simulated annotations and the truth behind them.

    Attributes
    ----------
    annotations : Annotations
        The labels; ids of users are 0, 1, ...
    consensus : array of shape (n_features,)
        The weights that all users share.
    group, personal : arrays of shape (n_users, n_features)
        The weights that the school adds, and the personal weights.
    school : array of shape (n_users,)
        The school of each user, -1 for users without a school.
    """

    annotations: Annotations
    consensus: Float
    group: Float
    personal: Float
    school: Int

    @property
    def coef(self) -> Float:
        """Each user's weights, the sum of all three parts: (n_users, n_features)."""
        return self.consensus + self.group + self.personal


def make_simulation(
    n_users: int = _USERS,
    n_samples: int = 5000,
    n_features: int = _FEATURES,
    n_positive: int = 100,
    noise: float = 0.01,
    *,
    consensus_high: float = 5.0,
    consensus_spread: float = 0.5,
    centroid_high: float = 10.0,
    group_spread: float = 2.5,
    personal_high: float = 10.0,
    random_state: int | Generator | None = None,
) -> Simulation:
    """Simulate the data of Yang, Xu, Cao and Huang (2019), section "Simulated Dataset".

    Every user has separate samples, with standard normal features. Scores are the product of the
    features and ``consensus + group + personal`` weights, plus noise; the best are positive. Each
    of five schools has weights on its own block of features. Seventeen users, in three ranges, have
    personal weights. Other numbers of users and features scale the blocks and ranges. The defaults
    make 500,000 rows, 320 MB.

    Parameters
    ----------
    n_users, n_samples, n_features : int
        The number of users, of samples of each user, and of features.
    n_positive : int
        The number of positive samples of a user, which have the highest scores.
    noise : float
        Standard deviation of the noise of the scores.
    consensus_high, consensus_spread : float
        Consensus weights are uniform on (0, ``consensus_high``) plus normal noise with
        standard deviation ``consensus_spread``.
    centroid_high, group_spread : float
        A school's weights are normal, with standard deviation ``group_spread`` around a mean that
        is uniform on (0, ``centroid_high``).
    personal_high : float
        Personal weights are uniform on (0, ``personal_high``).
    random_state : int or Generator, optional
        Makes the result reproducible.

    Returns
    -------
    Simulation

    References
    ----------
    Yang, Z., Xu, Q., Cao, X. and Huang, Q. (2019), "Learning personalized attribute
    preference via multi-task AUC optimization", AAAI.

    Examples
    --------
    >>> simulation = make_simulation(10, 50, 8, n_positive=5, random_state=0)
    >>> simulation.annotations
    Annotations: 500 labels (10% positive) by 10 people on 500 items, 8 features
    >>> simulation.school
    array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    """
    refuse_below(1, n_users=n_users, n_features=n_features, n_positive=n_positive)
    refuse_below(n_positive + 1, n_samples=n_samples)
    rng = np.random.default_rng(random_state)
    consensus = rng.uniform(0, consensus_high, n_features)
    consensus += rng.normal(0, consensus_spread, n_features)
    group, school = _blocks(rng, n_users, n_features, centroid_high, group_spread)
    personal = np.zeros((n_users, n_features))
    edges = _scale_edges(_PERSONAL_EDGES, n_users, _USERS)
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        personal[first:end] = rng.uniform(0, personal_high, (end - first, n_features))

    features = rng.standard_normal((n_users, n_samples, n_features))
    coef = consensus + group + personal
    scores = np.matmul(features, coef[:, :, np.newaxis])[:, :, 0]
    scores += rng.normal(0, noise, scores.shape)
    annotations = Annotations(
        users=np.repeat(np.arange(n_users), n_samples),
        items=None,
        labels=_highest(scores, n_positive).ravel(),
        features=features.reshape(-1, n_features),
        features_per="row",
    )
    return Simulation(annotations, consensus, group, personal, school)


def make_schools(
    n_users: int = 200,
    n_labels: int = 50,
    n_items: int = 2000,
    n_features: int = 200,
    n_schools: int = 3,
    *,
    contested: float = 0.25,
    consensus_strength: float = 1.0,
    school_strength: float = 1.75,
    personal_strength: float = 0.4,
    n_loners: int = 0,
    positive_rate: float = 0.3,
    label_noise: float = 0.05,
    random_state: int | Generator | None = None,
) -> Simulation:
    """Simulate users with few labels each, in schools with opposed preferences.

    Each user labels a random subset of common items, whose features are standard normal. A model
    per user fails, as users have fewer labels than features. One model for all fails, too, as
    schools oppose each other on some features. A good model has to find the schools.

    Parameters
    ----------
    n_users, n_labels, n_items, n_features, n_schools : int
        The number of users, of labels of each user, of items, of features, of schools.
    contested : float
        The share of the features on which schools differ. There, the schools' weights sum
        to zero: two schools are opposites.
    consensus_strength, school_strength, personal_strength : float
        The length of each part of a user's weights.
    n_loners : int
        The number of users without a school (the last ones). Their personal part is as long as
        that of a school.
    positive_rate : float
        The share of positive labels of each user, before noise.
    label_noise : float
        The probability that a label is flipped. Labels of users who would have only one kind left
        are not flipped.
    random_state : int or Generator, optional
        Makes the result reproducible.

    Returns
    -------
    Simulation

    Examples
    --------
    >>> simulation = make_schools(n_users=6, n_labels=20, n_items=50, n_features=12, n_schools=2,
    ...                           random_state=0)
    >>> simulation.annotations
    Annotations: 120 labels (32% positive) by 6 people on 50 items, 12 features
    >>> np.bincount(simulation.school)
    array([3, 3])
    """
    refuse_below(1, n_schools=n_schools, n_users=n_users)
    refuse_below(2, n_labels=n_labels)
    refuse_below(0, n_loners=n_loners)
    refuse_below(n_loners, n_users=n_users)
    refuse_below(n_labels, n_items=n_items)
    refuse_outside_unit(contested=contested, positive_rate=positive_rate, label_noise=label_noise)
    rng = np.random.default_rng(random_state)
    consensus = _directions(rng, 1, n_features, consensus_strength)[0]
    schools = _draw_opposed_schools(rng, n_schools, n_features, contested) * school_strength
    school = rng.permutation(np.arange(n_users) % n_schools)
    school[n_users - n_loners :] = -1
    group = np.where(school[:, np.newaxis] < 0, 0.0, schools[school])
    personal_length = np.where(school < 0, school_strength, personal_strength)
    personal = _directions(rng, n_users, n_features, personal_length[:, np.newaxis])

    features = rng.standard_normal((n_items, n_features))
    items, scores = _judge(rng, features, consensus + group + personal, n_labels)
    n_positive = min(max(1, round(positive_rate * n_labels)), n_labels - 1)
    annotations = Annotations(
        users=np.repeat(np.arange(n_users), n_labels),
        items=items.ravel(),
        labels=_flip_labels(rng, _highest(scores, n_positive), label_noise).ravel(),
        features=features,
        features_per="item",
    )
    return Simulation(annotations, consensus, group, personal, school)


def _blocks(
    rng: Generator, n_users: int, n_features: int, centroid_high: float, spread: float
) -> tuple[Float, Int]:
    """Return the paper's blocks of group weights, and the block of each user."""
    group, school = np.zeros((n_users, n_features)), np.empty(n_users, dtype=np.intp)
    users = _scale_edges(_USER_EDGES, n_users, _USERS)
    features = _scale_edges(_FEATURE_EDGES, n_features, _FEATURES)
    for block in range(len(users) - 1):
        members = slice(users[block], users[block + 1])
        cared_about = slice(features[block], features[block + 1])
        shape = group[members, cared_about].shape
        group[members, cared_about] = rng.normal(rng.uniform(0, centroid_high), spread, shape)
        school[members] = block
    return group, school


def _scale_edges(edges: Sequence[int], n: int, full: int) -> list[int]:
    """Scale edges from a range of ``full`` to a range of ``n``, rounding halves up."""
    return [(2 * edge * n + full) // (2 * full) for edge in edges]


def _highest(scores: Float, n: int) -> Bool:
    """Mark the n highest scores of each row."""
    marked = np.zeros(scores.shape, dtype=np.bool_)
    best = np.argpartition(scores, -n, axis=1)[:, -n:]
    np.put_along_axis(marked, best, True, axis=1)
    return marked


def _directions(rng: Generator, n: int, n_features: int, length: float | Float) -> Float:
    """Return n random vectors of the given length."""
    vectors = rng.standard_normal((n, n_features))
    vectors *= length / np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _draw_opposed_schools(
    rng: Generator, n_schools: int, n_features: int, contested: float
) -> Float:
    """Return a unit vector per school, on the contested features, which sum to zero."""
    vectors = np.zeros((n_schools, n_features))
    if n_schools == 1:
        return vectors  # no other school to oppose
    n_contested = round(contested * n_features)
    if n_contested < n_schools:
        raise ValueError(
            f"{n_schools} schools cannot all differ on {n_contested} contested feature(s). "
            "Raise contested= or n_features=, or lower n_schools=."
        )
    # Orthogonal vectors minus their mean are the corners of a regular simplex.
    corners = np.linalg.qr(rng.standard_normal((n_contested, n_schools)))[0].T
    corners -= corners.mean(axis=0)
    chosen = np.sort(rng.choice(n_features, n_contested, replace=False))
    vectors[:, chosen] = corners / np.sqrt(1 - 1 / n_schools)
    return vectors


def _judge(rng: Generator, features: Float, coef: Float, n_labels: int) -> tuple[Int, Float]:
    """Return the items that each user labels, and the user's scores of them."""
    n_users = len(coef)
    items = np.empty((n_users, n_labels), dtype=np.intp)
    scores = np.empty((n_users, n_labels))
    for first in range(0, n_users, _USERS_AT_ONCE):
        users = slice(first, first + _USERS_AT_ONCE)
        # The items with the lowest random numbers; single precision halves the time.
        lots = rng.random((len(coef[users]), len(features)), dtype=np.float32)
        items[users] = np.sort(np.argpartition(lots, n_labels - 1, axis=1)[:, :n_labels], axis=1)
        scores[users] = np.matmul(features[items[users]], coef[users, :, np.newaxis])[:, :, 0]
    return items, scores


def _flip_labels(rng: Generator, labels: Bool, noise: float) -> Bool:
    """Flip labels at random, except for users who would have only one kind left."""
    flipped = labels ^ (rng.random(labels.shape) < noise)
    alike = (flipped == flipped[:, :1]).all(axis=1, keepdims=True)
    return np.where(alike, labels, flipped)


def refuse_below(least: int, **numbers: int) -> None:
    """Raise ValueError for numbers that are too small, by their names."""
    for name, number in numbers.items():
        if number < least:
            raise ValueError(f"{name} must be at least {least}, but is {number}.")
