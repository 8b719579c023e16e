"""What somebody may have meant who wrote a name that does not exist."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Any

from likeminds._util.text_format import visible

# How alike two names must be, from 0 to 1, and how much less than the most alike one.
_LEAST, _WORSE = 0.6, 0.12
_MOST = 3
# Among more names than these, only those that begin alike or share a word are looked at closely.
_LOOKED_AT = 5_000
_LETTERS_IN_A_WORD = 3


def close_matches(wrong: Any, known: Iterable[Any]) -> list[str]:
    """Return the names most like one that is wrong, the most alike first.

    Examples
    --------
    >>> close_matches("Matrix (1999)", ["Heat (1995)", "Matrix, The (1999)"])
    ['Matrix, The (1999)']
    >>> close_matches("anne", ["Ann", "bob"])
    ['Ann']
    """
    text = str(wrong).lower()
    names = [str(name) for name in known]
    if len(names) > _LOOKED_AT:
        words = [word for word in _words(text) if len(word) >= _LETTERS_IN_A_WORD]
        start = text[:2]
        names = [
            name
            for name in names
            if (low := name.lower()).startswith(start) or any(word in low for word in words)
        ][:_LOOKED_AT]
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(text)
    found = []
    for place, name in enumerate(names):
        matcher.set_seq1(name.lower())
        # The cheap bounds come first: most names are nothing like it.
        if matcher.real_quick_ratio() >= _LEAST and matcher.quick_ratio() >= _LEAST:
            ratio = matcher.ratio()
            if ratio >= _LEAST:
                found.append((-ratio, place, name))
    found.sort()
    return [name for less, _, name in found[:_MOST] if less <= found[0][0] + _WORSE]


def did_you_mean(wrong: Any, known: Iterable[Any]) -> str:
    """Return a question that names what somebody may have meant; empty if nothing is like it.

    Examples
    --------
    >>> did_you_mean("prize", ["price", "local company"])
    ' Did you mean price?'
    """
    found = [visible(name, keep="") for name in close_matches(wrong, known)]
    return f" Did you mean {' or '.join(found)}?" if found else ""


def _words(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() else " " for letter in text).split()
