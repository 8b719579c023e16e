"""Texts with their control characters escaped, safe to show on a terminal."""

import re

# Control characters (C0 and C1), line separators, bidirectional controls, lone surrogates.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str, keep: str = "\n\t") -> str:
    r"""Return a text with control characters and lone surrogates written as escapes.

    Parameters
    ----------
    text : str
        May hold ids and names, whatever is in them.
    keep : str
        Which of these characters stay: by default those that lay out a text.

    Examples
    --------
    >>> print(visible("ann\x1b[2J"))
    ann\x1b[2J
    >>> print(visible("two\nlines", keep=""))
    two\nlines
    """
    return _UNSEEN.sub(
        lambda found: found[0] if found[0] in keep else found[0].encode("unicode_escape").decode(),
        text,
    )
