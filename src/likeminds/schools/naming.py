"""Words for a school: what it wants, compared with what everybody wants."""

from collections.abc import Sequence

import numpy as np

from likeminds._support.arrays import Bool, Float, Index

# Below this share of what the school adds, the crowd's own wish is as good as none.
_INDIFFERENT = 0.25
_WANTS, _INSISTS, _LESS, _MINDS_LESS = (
    "wants {}",
    "insists on {}",
    "cares less about {}",
    "minds {} less",
)
_FEATURES_IN_A_NAME = 3


def wish(feature: str, binary: bool, positive: bool) -> str:
    """Say what a positive, or a negative, weight of a feature asks for.

    Examples
    --------
    >>> wish("contract_length", False, True), wish("local_company", True, False)
    ('high contract length', 'no local company')
    """
    words = feature.replace("_", " ")
    if binary:
        return words if positive else f"no {words}"
    return f"high {words}" if positive else f"low {words}"


def wishes(strength: Float, features: Sequence[str], binary: Bool) -> list[tuple[str, float]]:
    """Say what weights ask for, strongest first, and how far each moves scores.

    Parameters
    ----------
    strength, features, binary
        As in `name_deviation`.

    Examples
    --------
    >>> wishes(np.array([-2.0, 0.5, 0.0]), ["price", "green", "local"],
    ...        np.array([False, True, True]))
    [('low price', -2.0), ('green', 0.5)]
    """
    return [
        (wish(features[j], bool(binary[j]), bool(strength[j] > 0)), float(strength[j]))
        for j in np.argsort(-np.abs(strength), kind="stable").tolist()
        if strength[j]
    ]


def name_deviation(
    deviation: Float,
    consensus: Float,
    strength: Float,
    features: Sequence[str],
    binary: Bool,
) -> str:
    """Name a deviation from the consensus after its strongest features.

    A feature is wanted (the crowd does not care, or wants the opposite), insisted on (the crowd
    wants it, too) or cared about less than the crowd does.

    Parameters
    ----------
    deviation, consensus : arrays of shape (n_features,)
        Weights.
    strength : array of shape (n_features,)
        How much each feature matters to the deviation: see `strengths`.
    features : sequence of str
        Their names.
    binary : array of shape (n_features,)
        Which are yes or no.

    Examples
    --------
    >>> deviation, consensus = np.array([-1.0, 0.9, -0.5]), np.array([-2.0, 0.0, 0.8])
    >>> name_deviation(deviation, consensus, strengths(deviation[None], np.eye(3))[0],
    ...                ["price", "green", "local"], np.array([False, True, True]))
    'insists on low price, wants green, cares less about local'
    """
    strongest = leading(strength)[:_FEATURES_IN_A_NAME]
    said: dict[str, list[str]] = {}
    for j in strongest.tolist():
        phrase = _phrase(float(deviation[j]), float(consensus[j]))
        wanted = bool((consensus[j] if phrase == _LESS else deviation[j]) > 0)
        if phrase == _LESS and binary[j] and not wanted:
            phrase, wanted = _MINDS_LESS, True
        said.setdefault(phrase, []).append(wish(features[j], bool(binary[j]), wanted))
    return ", ".join(phrase.format(_together(wishes)) for phrase, wishes in said.items())


def strengths(deviations: Float, spread: Float) -> Float:
    """Return how much each feature matters to the scores that some weights add.

    With w the weights and S the covariance of the features, feature j has the part w_j (S w)_j
    of the variance w'S w of these scores; what another feature takes back (a price against the
    rates that replace it) does not count. With all other features unchanged it moves scores by
    w_j^2 over entry j, j of the inverse of S. The strength is the root of the larger of the two,
    with the sign of the weight: for independent features, the weight times the feature's spread.

    Parameters
    ----------
    deviations : array of shape (n, n_features)
        Weights.
    spread : array of shape (n_features, n_features)
        The covariance of the features.

    Examples
    --------
    >>> strengths(np.array([[3.0, -4.0]]), np.diag([1.0, 4.0])).round(3)
    array([[ 3., -8.]])
    """
    variance = spread.diagonal()
    varied = variance > 1e-12 * variance.max(initial=0.0)
    inner = spread[np.ix_(varied, varied)]
    alone = np.zeros(len(variance))
    # A little more of each feature alone, lest those that are sums of others divide by zero.
    alone[varied] = 1.0 / np.linalg.inv(inner + 1e-9 * np.diag(variance[varied])).diagonal()
    part = np.maximum(deviations * (deviations @ spread), deviations**2 * alone)
    return np.asarray(np.sign(deviations) * np.sqrt(np.maximum(part, 0.0)))


def leading(strength: Float) -> Index:
    """Return which features carry a vector of strengths, strongest first.

    As many as there would be if they were equally strong: (sum of squares)^2 over the sum of
    fourth powers, rounded up.

    Examples
    --------
    >>> leading(np.array([0.1, -3.0, 2.9, 0.0]))
    array([1, 2])
    """
    largest = float(np.abs(strength).max(initial=0.0))
    if not largest:
        return np.arange(0)
    squares = (strength / largest) ** 2
    total = float(squares.sum())
    # A hair less, lest rounding makes one more of equal ones.
    n = int(np.ceil(total**2 / float((squares**2).sum()) - 1e-9))
    return np.argsort(-squares, kind="stable")[:n]


def _phrase(deviation: float, consensus: float) -> str:
    if abs(consensus) < _INDIFFERENT * abs(deviation):
        return _WANTS
    if deviation * consensus > 0:
        return _INSISTS
    return _LESS if abs(deviation) < abs(consensus) else _WANTS


def _together(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
