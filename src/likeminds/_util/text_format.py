"""Format texts: counts, signs, lists, verbs, escaped control characters, masked passwords."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Names of text features start with this; the words of the text follow.
TEXT_NAME = "text: "
# Control characters (C0 and C1), line separators, bidirectional controls, lone surrogates.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# Passwords may hold an unescaped @ or space: with a scheme, mask all up to the last @ of a line,
# without one, up to the last @ before a space.
_IN_ADDRESS = re.compile(r"([\w.%+-]+:/+)[^\n]*@|([\w.%+-]+:)\S+@")
_IN_OPTION = re.compile(r"(pass\w*\s*=)\s*[^\s&]+", re.IGNORECASE)
# The object precedes the complement of these: "find it rude".
_WITH_COMPLEMENT = ("find", "consider", "call", "judge", "rate")
_MODAL = ("would", "will", "can", "could", "should", "might", "may", "must")
_WISHING = ("like", "love", "enjoy", "want", "prefer", "choose", "buy")
_OPPOSITES = {
    "like it": "dislike it",
    "agree with it": "disagree with it",
    "rate it high": "rate it low",
}
_DEGREES = {"most high": "highest", "more high": "higher", "less high": "lower"}
# The number of bad values that a message names before "and N more".
_NAMED = 5
# The least similarity of two names, from 0 to 1, and its largest distance from the best one.
_LEAST_ALIKE, _LESS_ALIKE = 0.6, 0.12
_MOST_MATCHES = 3
# With more names than this, only names with the same beginning or a common word are compared.
_LOOKED_AT = 5_000
_LETTERS_IN_A_WORD = 3


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun, in the singular or the plural."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def signed(value: float, digits: int = 3) -> str:
    """Return a number with its sign; zero has none."""
    shown = f"{value:+.{digits}f}"
    return shown if float(shown) else shown[1:]


def decimal(value: float) -> str:
    """Return a number with three decimals, or three digits if it is small or large."""
    if value == 0.0 or 5e-3 <= abs(value) < 1e4:
        return f"{value + 0.0:.3f}"
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.3g}"


def written_grade(grade: float | str) -> str:
    """Return a grade as written: a word as it is, a number with one decimal."""
    return grade if isinstance(grade, str) else f"{grade:.1f}"


def join_words(words: Sequence[str]) -> str:
    """Join words by commas and "and"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def visible(text: str, keep: str = "\n\t") -> str:
    r"""Return a text with control characters and lone surrogates, but those to keep, as escapes.

    Examples
    --------
    >>> print(visible("ann\x1b[2J"), visible("two\nlines", keep=""))
    ann\x1b[2J two\nlines
    """
    return _UNSEEN.sub(
        lambda found: found[0] if found[0] in keep else found[0].encode("unicode_escape").decode(),
        text,
    )


def mask(text: str) -> str:
    """Replace possible passwords with three asterisks.

    Examples
    --------
    >>> mask("There is no postgrsql://ann:p@ss word@host/shop?password=pig.")
    'There is no postgrsql://***@host/shop?password=***'
    >>> mask("There is no person zoe@home, and no file ann:pig@host/shop.")
    'There is no person zoe@home, and no file ann:***@host/shop.'
    """
    text = _IN_ADDRESS.sub(lambda found: f"{found[1] or found[2]}***@", text)
    return _IN_OPTION.sub(r"\1***", text)


def listing(values: "Sequence[object] | NDArray[Any]", most: int = _NAMED) -> str:
    """Name the first few values, and count the rest."""
    named = ", ".join(visible(str(value), keep="") for value in values[:most])
    rest = len(values) - most
    return f"{named} and {rest:,} more" if rest > 0 else named


def close_matches(wrong: object, known: Iterable[object]) -> list[str]:
    """Return the names most similar to an unknown one, the most similar first."""
    text = str(wrong).lower()
    names = [str(name) for name in known]
    if len(names) > _LOOKED_AT:
        plain = "".join(letter if letter.isalnum() else " " for letter in text)
        words = [word for word in plain.split() if len(word) >= _LETTERS_IN_A_WORD]
        names = [
            name
            for name in names
            if (low := name.lower()).startswith(text[:2]) or any(word in low for word in words)
        ][:_LOOKED_AT]
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(text)
    found = []
    for place, name in enumerate(names):
        matcher.set_seq1(name.lower())
        # The cheap bounds come first: most names are not similar.
        bounds = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
        if all(bound() >= _LEAST_ALIKE for bound in bounds):
            found.append((-matcher.ratio(), place, name))
    found.sort()
    return [name for less, _, name in found[:_MOST_MATCHES] if less <= found[0][0] + _LESS_ALIKE]


def did_you_mean(wrong: object, known: Iterable[object]) -> str:
    """Return a question with similar names; empty without any."""
    found = [visible(name, keep="") for name in close_matches(wrong, known)]
    return f" Did you mean {' or '.join(found)}?" if found else ""


@dataclass(frozen=True)
class Verb:
    """Words for a positive label in explanations: an infinitive, whose object replaces "it".

    Examples
    --------
    >>> find = Verb.of("find rude")
    >>> find.words, find.one("the joke"), find.many(), find.most()
    ('find it rude', 'finds the joke rude', 'find rude', 'finds most rude')
    >>> find.one_not("it"), Verb.of("agree with").one_not("tea"), Verb.of("would buy").one("tea")
    ('does not find it rude', 'disagrees with tea', 'would buy tea')
    """

    words: str

    @classmethod
    def of(cls, verb: str | None) -> "Verb":
        """Parse an infinitive, by default "rate high"; insert "it" if it is missing."""
        words = ("rate high" if verb is None else verb).split()
        if "it" not in words[1:]:
            main = int(words[0] in _MODAL and len(words) > 1)
            place = main + 1 if words[main] in _WITH_COMPLEMENT else len(words)
            words.insert(place, "it")
        return cls(" ".join(words))

    @property
    def wishes(self) -> bool:
        """Whether a positive label means that the user wants the item."""
        return self.words.removeprefix("would ").removesuffix(" it") in _WISHING

    @property
    def conditional(self) -> "Verb":
        """The verb for items that a user has not labelled: "would like"."""
        return self if self.words.split()[0] in _MODAL else Verb(f"would {self.words}")

    def one(self, what: str = "") -> str:
        """Return "finds WHAT rude"."""
        first, *rest = self.words.split()
        return _put(what, _third_person(first), *rest)

    def many(self, what: str = "") -> str:
        """Return "find WHAT rude"."""
        return _put(what, *self.words.split())

    def one_not(self, what: str = "") -> str:
        """Return "does not find WHAT rude"."""
        if self.words in _OPPOSITES:
            return Verb(_OPPOSITES[self.words]).one(what)
        first, *rest = self.words.split()
        start = [first, "not"] if first in _MODAL else ["does", "not", first]
        return _put(what, *start, *rest)

    def would(self, what: str = "it") -> str:
        """Return "would find WHAT rude"."""
        return self.conditional.many(what)

    def question(self, what: str = "this") -> str:
        """Return "Do you find WHAT rude?"."""
        if self == RATE:
            return f"How do you rate {what}?"
        first, *rest = self.words.split()
        start = [first.capitalize(), "you"] if first in _MODAL else ["Do", "you", first]
        return f"{_put(what, *start, *rest)}?"

    def most(self, *, many: bool = False) -> str:
        """Return "finds most rude", or "likes best"."""
        best = self.words.removeprefix("would ") == "like it"
        verb = self._in_degree("best" if best else "most")
        return verb.many() if many else verb.one()

    def more(self, what: str, *, even: bool = False) -> str:
        """Return "finds WHAT more rude"."""
        return self._in_degree("even more" if even else "more").one(what)

    def less(self, what: str) -> str:
        """Return "finds WHAT less rude"."""
        return self._in_degree("less").one(what)

    def _in_degree(self, degree: str) -> "Verb":
        before, _, complement = f"{self.words} ".partition(" it ")
        words = f"{degree} {complement}".strip()
        for irregular, word in _DEGREES.items():
            words = words.replace(irregular, word)
        return Verb(f"{before} it {words}")


LIKE = Verb("like it")
# The verb of labels with an unknown meaning, as items may be disliked.
RATE = Verb("rate it high")


def read_verb(verb: str | None) -> str | None:
    """Check the verb of a user; {} in it stands for the attribute."""
    if verb is None:
        return None
    first = verb.split()[0] if isinstance(verb, str) and verb.split() else "is"
    if first.endswith("s") and not first.endswith(("ss", "us")):
        raise ValueError(f'verb must be an infinitive as in "find rude" or "like", not {verb!r}.')
    return verb


def _third_person(verb: str) -> str:
    if verb in _MODAL:
        return verb
    if verb.endswith("y") and verb[-2:-1] not in set("aeiou"):
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "x", "zz", "ch", "sh", "o")) else f"{verb}s"


def _put(what: str, *words: str) -> str:
    """Replace the first "it" after the verb by an object, or leave it out."""
    place = words.index("it", 1)
    return " ".join(word for word in (*words[:place], what, *words[place + 1 :]) if word)
