"""Secrets that callers show: API keys and the tokens of people, kept as hashes only."""

import hashlib
import secrets
import time
from enum import IntEnum

from likeminds.service.store import Key

KEY_PREFIX, TOKEN_PREFIX = "lmk_", "lmp_"


class Role(IntEnum):
    """What a caller may do; each role may do what those before it may.

    PERSON sees the crowd, and one's own labels; READ ranks for anybody; WRITE sees and changes
    anybody's labels; ADMIN exports and deletes people, and refreshes the model.
    """

    PERSON = 0
    READ = 1
    WRITE = 2
    ADMIN = 3


def hashed(secret: str) -> str:
    """Return the hash under which a secret, or an id, is kept.

    Secrets are 256 random bits: nobody can try them all, so that a fast hash is enough.

    Examples
    --------
    >>> hashed("lmk_x")[:8]
    '7d376474'
    """
    return hashlib.sha256(secret.encode()).hexdigest()


def new_token() -> str:
    """Return the token of a new person."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def new_key(name: str, role: str) -> tuple[str, Key]:
    """Return a new API key, and what is kept of it."""
    if role not in {"read", "write", "admin"}:
        raise ValueError(f"A key's role is read, write or admin, not {role!r}.")
    secret = KEY_PREFIX + secrets.token_urlsafe(32)
    return secret, Key(secrets.token_hex(4), name, role, hashed(secret), time.time())
