"""Addresses without their passwords, for messages and everything else that is shown."""

import re

# Whoever writes a password into an address may not know that @ and spaces are escaped there:
# all up to the last @ of a line may be part of it. Without a scheme, it ends at a space.
_IN_ADDRESS = re.compile(r"([\w.%+-]+:/+)[^\n]*@|([\w.%+-]+:)\S+@")
_IN_OPTION = re.compile(r"(pass\w*\s*=)\s*[^\s&]+", re.IGNORECASE)


def mask(text: str) -> str:
    """Return a text with what may be a password replaced by three stars.

    Examples
    --------
    >>> mask("There is no postgrsql://ann:p@ss word@host/shop?password=pig.")
    'There is no postgrsql://***@host/shop?password=***'
    >>> mask("There is no person zoe@home, and no file ann:pig@host/shop.")
    'There is no person zoe@home, and no file ann:***@host/shop.'
    """
    text = _IN_ADDRESS.sub(lambda found: f"{found[1] or found[2]}***@", text)
    return _IN_OPTION.sub(r"\1***", text)
