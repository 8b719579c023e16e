"""Format texts: counts, signs, lists, escaped control characters, masked passwords."""

import re
from collections.abc import Sequence

# Names of text features start with this; the words of the text follow.
TEXT_NAME = "text: "
# Control characters (C0 and C1), line separators, bidirectional controls, lone surrogates.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# Passwords may hold an unescaped @ or space: with a scheme, mask all up to the last @ of a line,
# without one, up to the last @ before a space.
_IN_ADDRESS = re.compile(r"([\w.%+-]+:/+)[^\n]*@|([\w.%+-]+:)\S+@")
_IN_OPTION = re.compile(r"(pass\w*\s*=)\s*[^\s&]+", re.IGNORECASE)


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun, in the singular or the plural."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def signed(value: float, digits: int = 3) -> str:
    """Return a number with its sign; zero has none."""
    shown = f"{value:+.{digits}f}"
    return shown if float(shown) else shown[1:]


def decimal(value: float) -> str:
    """Return a number with three decimals, or three digits where it is small or large."""
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
    """Replace possible passwords by three stars.

    Examples
    --------
    >>> mask("There is no postgrsql://ann:p@ss word@host/shop?password=pig.")
    'There is no postgrsql://***@host/shop?password=***'
    >>> mask("There is no person zoe@home, and no file ann:pig@host/shop.")
    'There is no person zoe@home, and no file ann:***@host/shop.'
    """
    text = _IN_ADDRESS.sub(lambda found: f"{found[1] or found[2]}***@", text)
    return _IN_OPTION.sub(r"\1***", text)
