"""Secrets that callers show: API keys and the tokens of users, stored as hashes only."""

import hashlib
import secrets
import time
from contextlib import closing
from enum import IntEnum

from likeminds.service.store import Key, open_store

KEY_PREFIX, TOKEN_PREFIX = "lmk_", "lmp_"


class Role(IntEnum):
    """Permissions of a caller; each role includes those before it.

    USER sees facts about all users, and their own labels; READ ranks for any user; WRITE sees and
    changes any user's labels; ADMIN exports and deletes users, and refits the model.
    """

    USER = 0
    READ = 1
    WRITE = 2
    ADMIN = 3


def hashed(secret: str) -> str:
    """Return the hash under which a secret, or an id, is stored.

    Secrets are 256 random bits, too many to try, so a fast hash is enough.

    Examples
    --------
    >>> hashed("lmk_x")[:8]
    '7d376474'
    """
    return hashlib.sha256(secret.encode()).hexdigest()


def new_token() -> str:
    """Return the token of a new user."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def new_key(name: str, role: str) -> tuple[str, Key]:
    """Return a new API key, and its row of the store."""
    if role not in {"read", "write", "admin"}:
        raise ValueError(f"A key's role is read, write or admin, not {role!r}.")
    secret = KEY_PREFIX + secrets.token_urlsafe(32)
    return secret, Key(secrets.token_hex(4), name, role, hashed(secret), time.time())


def add_key(database: str, name: str, role: str) -> str:
    """Make a key, and return it: it is shown once, and stored as a hash."""
    with closing(open_store(database)) as store:
        secret, row = new_key(name, role)
        store.add_key(row)
    return secret
