"""The store: users, labels and answers, and hashes of keys and tokens, in SQLite or PostgreSQL."""

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from likeminds.service.database import Database, Session, Value, open_database

KEY_PREFIX, TOKEN_PREFIX = "lmk_", "lmp_"
# Seconds for which a repeated write returns the stored answer.
_REMEMBERED = 7 * 24 * 3600.0
_LABELS = "SELECT user_id, attribute, item, label, at FROM labels"

# Statements of each step that migrates a database by one version.
_STEPS = (Path(__file__).parent / "migrations.sql").read_text().split("\n--------\n")
STEPS = [[one for one in step.split(";") if one.strip()] for step in _STEPS]


class StoredUser(NamedTuple):
    """A user of the service: the id, the hash of their token, and the time of creation."""

    user: str
    token_hash: str
    created: float


class Label(NamedTuple):
    """A user's label of an item; ``label`` is None after its deletion.

    The label is 0 for no and 1 for yes, or a grade: see `rankers.answer_scales.AnswerScale`.
    """

    user: str
    attribute: str
    item: str
    label: float | None
    at: float


class Key(NamedTuple):
    """An API key: its name, its role, and its hash; the key itself is not stored."""

    key_id: str
    name: str
    role: str
    key_hash: str
    created: float


class KeyReusedError(ValueError):
    """An idempotency key that was used for two different writes."""


@dataclass(frozen=True)
class LabelStore:
    """The users and labels that the service stores.

    A deleted label leaves a row without a label, so a refit also deletes it from the model.
    """

    database: Database

    def close(self) -> None:
        """Close the connections."""
        self.database.close()

    def migrate(self) -> int:
        """Migrate the tables; return the number of steps."""
        self.database.write("CREATE TABLE IF NOT EXISTS schema_steps (step INTEGER PRIMARY KEY)")
        with self.database.transaction(writing=True) as session:
            if self.database.mark != "?":  # two workers start at the same time
                session.run("LOCK TABLE schema_steps IN EXCLUSIVE MODE")
            done = int(session.run("SELECT COUNT(*) FROM schema_steps").fetchone()[0])
            if done > len(STEPS):
                raise ValueError(
                    f"The database was made by a newer likeminds (tables of version {done}; "
                    f"{len(STEPS)} is known here): upgrade likeminds."
                )
            for number, statements in enumerate(STEPS[done:], start=done + 1):
                for statement in statements:
                    session.run(statement)
                session.run("INSERT INTO schema_steps VALUES (?)", [number])
            return len(STEPS) - done

    # Users

    def add_user(self, user: str, token_hash: str) -> bool:
        """Add a user; return False if the id exists already."""
        with self.database.transaction(writing=True) as session:
            return insert_user(session, user, token_hash)

    def user(self, user: str) -> StoredUser | None:
        """Return a user; None if unknown."""
        rows = self.database.query(
            "SELECT user_id, token_hash, created FROM users WHERE user_id = ?", [user]
        )
        return StoredUser(*rows[0]) if rows else None

    def has_token(self, token_hash: str) -> bool:
        """Return whether a token belongs to a user."""
        return bool(self.database.query("SELECT 1 FROM users WHERE token_hash = ?", [token_hash]))

    def set_token(self, user: str, token_hash: str) -> None:
        """Give a user another token."""
        self.database.write("UPDATE users SET token_hash = ? WHERE user_id = ?", [token_hash, user])

    def forget(self, user: str, user_hash: str) -> int:
        """Delete all rows about a user; return the number of rows of labels.

        The hash of the id remains, so a refit also deletes the user from the model.
        """
        with self.database.transaction(writing=True) as session:
            gone = session.run("DELETE FROM labels WHERE user_id = ?", [user]).rowcount
            session.run("DELETE FROM users WHERE user_id = ?", [user])
            session.run("DELETE FROM answers WHERE user_id = ?", [user])
            session.run(
                "INSERT INTO forgotten VALUES (?, ?) ON CONFLICT (user_hash) DO NOTHING",
                [user_hash, time.time()],
            )
        return gone

    def forgotten(self) -> frozenset[str]:
        """Return the hashes of the ids of deleted users."""
        return frozenset(row[0] for row in self.database.query("SELECT user_hash FROM forgotten"))

    # Labels

    def put_labels(self, user: str, labels: Iterable[tuple[str, str, float | None]]) -> None:
        """Store labels: attribute, item, and the label, or None to delete it."""
        with self.database.transaction(writing=True) as session:
            write_labels(session, user, labels)

    def labels_of(self, user: str) -> list[Label]:
        """Return a user's labels, also deleted ones, the oldest first."""
        return self._labels("WHERE user_id = ? ORDER BY at, item", [user])

    def all_labels(self) -> list[Label]:
        """Return the labels of all users, also deleted ones."""
        return self._labels("ORDER BY user_id, attribute, item")

    def _labels(self, which: str, values: Sequence[Value] = ()) -> list[Label]:
        return [Label(*row) for row in self.database.query(f"{_LABELS} {which}", values)]

    def version(self) -> tuple[int, float, int]:
        """Return the number and last time of labels, and the number of deleted users."""
        gone = "(SELECT COUNT(*) FROM forgotten)"
        rows = self.database.query(f"SELECT COUNT(*), COALESCE(MAX(at), 0), {gone} FROM labels")
        return int(rows[0][0]), float(rows[0][1]), int(rows[0][2])

    # Repeated writes

    def once(
        self,
        caller: str,
        key: str | None,
        request: object,
        work: Callable[[Session], dict[str, Any]],
        *,
        user: str = "",
    ) -> tuple[dict[str, Any], bool]:
        """Write once per ``caller`` and ``key``; return the answer, and whether it is a repetition.

        Without a key, the answer is not stored. Another ``request`` with the same key raises
        `KeyReusedError`. Deleting ``user`` deletes the answer, too.
        """
        digest, now = hashed(json.dumps(request)), time.time()
        with self.database.transaction(writing=True) as session:
            if key is None:
                return work(session), False
            session.run("DELETE FROM answers WHERE at < ?", [now - _REMEMBERED])
            new = session.run(
                "INSERT INTO answers VALUES (?, ?, ?, ?, 200, '', ?) "
                "ON CONFLICT (caller, write_key) DO NOTHING",
                [caller, key, user, digest, now],
            )
            if not new.rowcount:
                before, body = session.run(
                    "SELECT digest, body FROM answers WHERE caller = ? AND write_key = ?",
                    [caller, key],
                ).fetchone()
                if before != digest:
                    raise KeyReusedError(
                        "This Idempotency-Key was used for another write before: use a new one "
                        "for each write."
                    )
                return dict(json.loads(body)), True
            answer = work(session)
            session.run(
                "UPDATE answers SET body = ? WHERE caller = ? AND write_key = ?",
                [json.dumps(answer), caller, key],
            )
        return answer, False

    # Keys and state

    def api_keys(self) -> list[Key]:
        """Return all keys, the oldest first."""
        rows = self.database.query(
            "SELECT key_id, name, role, key_hash, created FROM api_keys ORDER BY created"
        )
        return [Key(*row) for row in rows]

    def drop_key(self, key_id: str) -> bool:
        """Revoke a key; return False if there is none."""
        return self.database.write("DELETE FROM api_keys WHERE key_id = ?", [key_id]) > 0

    def state(self, name: str) -> str | None:
        """Return a stored value of the service's own state."""
        rows = self.database.query("SELECT value FROM state WHERE name = ?", [name])
        return str(rows[0][0]) if rows else None

    def set_state(self, name: str, value: str) -> None:
        """Store a value of the service's own state."""
        self.database.write(
            "INSERT INTO state VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            [name, value],
        )


def open_store(address: str) -> LabelStore:
    """Connect to a database, and migrate its tables.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = open_store(f"sqlite:///{folder.name}/labels.db")
    >>> store.add_user("zoe", "hash of a token")
    True
    >>> store.put_labels("zoe", [("open", "boot", True), ("open", "clog", None)])
    >>> [(label.item, label.label) for label in store.labels_of("zoe")]
    [('boot', 1.0), ('clog', None)]
    >>> store.close(); folder.cleanup()
    """
    store = LabelStore(open_database(address))
    store.migrate()
    return store


def insert_user(session: Session, user: str, token_hash: str) -> bool:
    """Add a user, inside a transaction; return False if the id exists already."""
    statement = "INSERT INTO users VALUES (?, ?, ?) ON CONFLICT (user_id) DO NOTHING"
    return session.run(statement, [user, token_hash, time.time()]).rowcount > 0


def write_labels(
    session: Session, user: str, labels: Iterable[tuple[str, str, float | None]]
) -> None:
    """Store labels, inside a transaction; the last label of an item counts."""
    for attribute, item, label in labels:
        session.run(
            "INSERT INTO labels (user_id, attribute, item, label, at) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (user_id, attribute, item) "
            "DO UPDATE SET label = excluded.label, at = excluded.at",
            [user, attribute, item, None if label is None else float(label), time.time()],
        )


class Role(IntEnum):
    """Permissions of a caller; each role includes those before it.

    USER sees facts about all users, and handles their own data. READ ranks for any user. WRITE
    sees and changes any user's labels. ADMIN exports and deletes users, and refits the model.
    """

    USER = 0
    READ = 1
    WRITE = 2
    ADMIN = 3


def hashed(secret: str) -> str:
    """Return the hash of a secret, or of an id, for the store.

    A fast hash is enough, since secrets are 256 random bits, too many to try.

    Examples
    --------
    >>> hashed("lmk_x")[:8]
    '7d376474'
    """
    return hashlib.sha256(secret.encode()).hexdigest()


def add_key(database: str, name: str, role: str) -> str:
    """Create a key, store its hash, and return it; it cannot be shown again."""
    if role not in {"read", "write", "admin"}:
        raise ValueError(f"A key's role is read, write or admin, not {role!r}.")
    secret = KEY_PREFIX + secrets.token_urlsafe(32)
    key = Key(secrets.token_hex(4), name, role, hashed(secret), time.time())
    with closing(open_store(database)) as store:
        store.database.write("INSERT INTO api_keys VALUES (?, ?, ?, ?, ?)", key)
    return secret
