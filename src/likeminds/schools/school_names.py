"""Names of schools, directions and features, from templates."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from likeminds._util.array_types import Bool, Float, FloatArray, Index
from likeminds._util.text_format import LIKE, TEXT_NAME, Verb, join_words

# A consensus weight below this share of the deviation counts as zero.
_INDIFFERENT = 0.25
_WANTS, _INSISTS, _LESS, _MINDS_LESS = (
    "wants {}",
    "insists on {}",
    "cares less about {}",
    "minds {} less",
)
_FEATURES_IN_A_NAME = 3
# The name of the item effect as a feature.
POPULARITY = "popularity"
# Names without a meaning: numbered columns, and features that a program computed.
_COLUMN = re.compile(r"(x|v|f|dim|feature)[ _-]?\d+", re.IGNORECASE)
_MADE = re.compile(
    r"(pc|component|factor|learned|deep|text|sentence|embedding)[ _-]?\d+|gist_.*", re.IGNORECASE
)
_ITEMS_IN_A_NAME, LETTERS_IN_A_NAME = 2, 48
# Items are named if their difference is at least this share of the largest.
_AS_TELLING = 0.5


def wish(feature: str, binary: bool, positive: bool, verb: Verb = LIKE) -> str:
    """Describe the wish that a positive, or a negative, weight of a feature expresses."""
    words = feature.replace("_", " ")
    if feature.startswith(TEXT_NAME):
        how = "with" if positive else "without"
        return f'texts {how} "{feature.removeprefix(TEXT_NAME)}"'
    if binary:
        # "finds no heel comfortable" would mean: not a single heel.
        return words if positive else f"no {words}" if verb.wishes else f"what has no {words}"
    return f"high {words}" if positive else f"low {words}"


def without_columns(features: Sequence[str], binary: Bool) -> list[str]:
    """Return names without prefix ("colour: red" -> "red") if that is unique and not a number."""
    kinds = [
        name.split(": ", 1)[-1] if yes_or_no and not name.startswith(TEXT_NAME) else name
        for name, yes_or_no in zip(features, binary.tolist(), strict=True)
    ]
    times = Counter(kinds)
    return [
        kind if times[kind] == 1 and not kind.isdecimal() else name
        for kind, name in zip(kinds, features, strict=True)
    ]


def wishes(
    strength: Float, features: Sequence[str], binary: Bool, verb: Verb = LIKE
) -> list[tuple[str, float]]:
    """Describe weights as wishes, strongest first, with the effect of each on scores."""
    features = without_columns(features, binary)
    return [
        (wish(features[j], bool(binary[j]), bool(strength[j] > 0), verb), float(strength[j]))
        for j in np.argsort(-np.abs(strength), kind="stable").tolist()
        if strength[j]
    ]


def name_deviation(  # noqa: PLR0917
    deviation: Float,
    consensus: Float,
    strength: Float,
    features: Sequence[str],
    binary: Bool,
    verb: Verb = LIKE,
) -> str:
    """Name a deviation from the consensus after its strongest features.

    The words depend on the consensus weight: "insists on" if it has the same sign, "cares less
    about" if it has the opposite sign and is larger, else "wants". Features are sorted by
    `strengths`. A verb that is not a wish replaces these words.
    """
    features = without_columns(features, binary)
    strongest = leading(strength)[:_FEATURES_IN_A_NAME]
    clauses: dict[str, list[str]] = {}
    for j in strongest.tolist():
        phrase = _phrase(float(deviation[j]), float(consensus[j]))
        positive = bool((consensus[j] if phrase == _LESS else deviation[j]) > 0)
        if phrase == _LESS and binary[j] and not positive:
            phrase, positive = _MINDS_LESS, True
        if phrase == _MINDS_LESS and not verb.wishes:
            phrase, positive = _LESS, False
        clauses.setdefault(phrase, []).append(wish(features[j], bool(binary[j]), positive, verb))
    return ", ".join(_filled(phrase, join_words(what), verb) for phrase, what in clauses.items())


def are_named(features: Iterable[str]) -> bool:
    """Return whether all features have meaningful names."""
    return not any(
        name == POPULARITY or _COLUMN.fullmatch(name) or _MADE.fullmatch(name) for name in features
    )


def is_made(feature: str) -> bool:
    """Return whether a feature was computed: a component, an embedding, a factor."""
    return _MADE.fullmatch(feature) is not None


def name_feature(name: str, values: FloatArray, called: Callable[[int], str]) -> str:
    """Return a feature's name; if computed, the items with its highest and lowest values."""
    most, least = int(values.argmax()), int(values.argmin())
    if not is_made(name) or values[most] == values[least]:
        return name.replace("_", " ")
    return f"{called(most)} rather than {called(least)}"


def are_telling(strength: Float, features: Sequence[str]) -> bool:
    """Return whether `name_deviation` would use meaningful names only (at least one)."""
    strongest = leading(strength)[:_FEATURES_IN_A_NAME].tolist()
    return bool(strongest) and are_named(features[j] for j in strongest)


def shorten(text: str, letters: int = LETTERS_IN_A_NAME) -> str:
    """Return the beginning of a text, cut between words."""
    whole = " ".join(text.split())
    if len(whole) <= letters:
        return whole
    begun = whole[: letters - 3]
    return f"{begun.rsplit(' ', 1)[0] if ' ' in begun else begun} ..."


def name_by_items(
    own: Float,
    others: Float,
    margin: Float,
    called: Callable[[int], str],
    verb: Verb = LIKE,
    *,
    liked_only: bool = False,
) -> str:
    """Name users after the items that set them apart from others; empty if none is ``liked_only``.

    ``own`` and ``others`` are each item's rank for these and for other users, from 0 to 1.
    Differences up to ``margin`` may be chance.
    """
    difference = own - others
    sure = np.where(np.abs(difference) > margin, difference, 0.0)
    sure -= np.sign(sure) * margin
    liked, rejected = (own > 0.5) & (sure > 0), (own < 0.5) & (sure < 0)
    clauses: list[tuple[Callable[[str], str], Bool]] = [
        (verb.one, liked),
        (verb.one_not, rejected),
    ]
    if liked_only:
        clauses = clauses[:1]
    elif not (liked | rejected).any():
        clauses = [(lambda what: f"{verb.more(what)} than others", sure > 0), (verb.less, sure < 0)]
    words = []
    most = max(float(np.abs(sure[which]).max(initial=0.0)) for _, which in clauses)
    for say, which in clauses:
        size = np.where(which, np.abs(sure), 0.0)
        best = np.argsort(-size, kind="stable")[:_ITEMS_IN_A_NAME]
        names = [called(j) for j in best.tolist() if size[j] > 0 and size[j] >= _AS_TELLING * most]
        words += [say(join_words(names))] if names else []
    return ", ".join(words)


def strengths(deviations: Float, spread: Float) -> Float:
    """Return the effect of each feature on the scores of some weights.

    Let w be the weights, and S the covariance of the features. Feature j contributes w_j (S w)_j to
    the variance w'S w of the scores, which correlated features can cancel. With all other features
    unchanged, it contributes w_j^2 over entry j, j of the inverse of S. The strength is the root of
    the larger of the two, with the sign of the weight. For independent features, it is the weight
    times the feature's standard deviation.
    """
    variance = spread.diagonal()
    varied = variance > 1e-12 * variance.max(initial=0.0)
    inner = spread[np.ix_(varied, varied)]
    alone = np.zeros(len(variance))
    # A ridge avoids division by zero for linearly dependent features.
    alone[varied] = 1.0 / np.linalg.inv(inner + 1e-9 * np.diag(variance[varied])).diagonal()
    part = np.maximum(deviations * (deviations @ spread), deviations**2 * alone)
    return np.asarray(np.sign(deviations) * np.sqrt(np.maximum(part, 0.0)))


def leading(strength: Float) -> Index:
    """Return the features that dominate a vector of strengths, strongest first.

    Their number is the effective number of features, (sum of squares)^2 over the sum of fourth
    powers, rounded up.
    """
    largest = float(np.abs(strength).max(initial=0.0))
    if not largest:
        return np.arange(0)
    squares = (strength / largest) ** 2
    total = float(squares.sum())
    # Subtract a little, so rounding errors do not add a feature.
    n = int(np.ceil(total**2 / float((squares**2).sum()) - 1e-9))
    return np.argsort(-squares, kind="stable")[:n]


def _phrase(deviation: float, consensus: float) -> str:
    if abs(consensus) < _INDIFFERENT * abs(deviation):
        return _WANTS
    if deviation * consensus > 0:
        return _INSISTS
    return _LESS if abs(deviation) < abs(consensus) else _WANTS


def _filled(phrase: str, what: str, verb: Verb) -> str:
    """Fill in a template; if the verb is not a wish, use the verb instead."""
    if verb.wishes:
        return phrase.format(what)
    if phrase == _INSISTS:
        return verb.more(what, even=True)
    return verb.less(what) if phrase == _LESS else verb.one(what)
