"""The store: people, labels, keys and answers, with the same meaning on every database."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from likeminds.service.store.connections import Database, Row, Session, open_database
from likeminds.service.store.schema import STEPS, Answer, Key, Label, Person, Version

# Seconds for which an answer is repeated when its write is.
_REMEMBERED = 7 * 24 * 3600.0


class KeyReusedError(ValueError):
    """One key for two different writes."""


def open_store(address: str) -> "LabelStore":
    """Connect to a database, and bring its tables up to date.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = open_store(f"sqlite:///{folder.name}/crowd.db")
    >>> store.add_person("zoe", "hash of a token")
    True
    >>> store.put_labels("zoe", [("open", "boot", True), ("open", "clog", None)])
    >>> [(label.item, label.label) for label in store.labels_of("zoe")]
    [('boot', 1.0), ('clog', None)]
    >>> store.close(); folder.cleanup()
    """
    store = LabelStore(open_database(address))
    store.migrate()
    return store


@dataclass(frozen=True)
class LabelStore:
    """All that the service remembers of people.

    A label that was taken back stays as a row without a label: it says that the model must
    not have it either, where the model has learned from it.
    """

    database: Database

    def close(self) -> None:
        """Close the connections."""
        self.database.close()

    def migrate(self) -> int:
        """Bring the tables up to date; return how many steps that took."""
        with self.database.transaction(writing=True) as session:
            session.run("CREATE TABLE IF NOT EXISTS schema_steps (step INTEGER PRIMARY KEY)")
        with self.database.transaction(writing=True) as session:
            if self.database.mark != "?":  # two workers start at the same time
                session.run("LOCK TABLE schema_steps IN EXCLUSIVE MODE")
            done = int(session.run("SELECT COUNT(*) FROM schema_steps")[0][0])
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

    def ping(self) -> None:
        """Raise StoreDownError unless the database answers."""
        with self.database.transaction() as session:
            session.run("SELECT 1")

    # People

    def add_person(self, person: str, token_hash: str) -> bool:
        """Add somebody; False if they are there already."""
        with self.database.transaction(writing=True) as session:
            return insert_user(session, person, token_hash)

    def person(self, person: str) -> Person | None:
        """Return somebody, if they are there."""
        with self.database.transaction() as session:
            rows = session.run(
                "SELECT person, token_hash, created FROM people WHERE person = ?", [person]
            )
        return Person(*rows[0]) if rows else None

    def has_token(self, token_hash: str) -> bool:
        """Say whether a token is that of a person."""
        with self.database.transaction() as session:
            return bool(session.run("SELECT 1 FROM people WHERE token_hash = ?", [token_hash]))

    def set_token(self, person: str, token_hash: str) -> None:
        """Give somebody another token."""
        with self.database.transaction(writing=True) as session:
            session.run("UPDATE people SET token_hash = ? WHERE person = ?", [token_hash, person])

    def forget(self, person: str, user_hash: str) -> int:
        """Delete all there is about somebody; return how many labels that were.

        What remains is a hash of the id, so that the model forgets them, too.
        """
        with self.database.transaction(writing=True) as session:
            gone = session.count("DELETE FROM labels WHERE person = ?", [person])
            session.run("DELETE FROM people WHERE person = ?", [person])
            session.run("DELETE FROM answers WHERE person = ?", [person])
            session.run(
                "INSERT INTO forgotten VALUES (?, ?) ON CONFLICT (user_hash) DO NOTHING",
                [user_hash, time.time()],
            )
        return gone

    def forgotten(self) -> frozenset[str]:
        """Return the hashes of the ids of people who were deleted."""
        with self.database.transaction() as session:
            return frozenset(row[0] for row in session.run("SELECT user_hash FROM forgotten"))

    # Labels

    def put_labels(self, person: str, labels: Iterable[tuple[str, str, float | None]]) -> None:
        """Store labels: attribute, item, and the label, or None to take it back."""
        with self.database.transaction(writing=True) as session:
            write_labels(session, person, labels)

    def labels_of(self, person: str) -> list[Label]:
        """Return what somebody has said, and what they took back, the oldest first."""
        return self._labels("WHERE person = ? ORDER BY at, item", [person])

    def told_by(self, person: str) -> list[Label] | None:
        """Return what somebody has said; None if they never came."""
        with self.database.transaction() as session:
            rows = session.run(f"{_LABELS} WHERE person = ? ORDER BY at, item", [person])
            if not rows and not session.run("SELECT 1 FROM people WHERE person = ?", [person]):
                return None
        return _as_labels(rows)

    def all_labels(self) -> list[Label]:
        """Return what everybody has said, and what they took back."""
        return self._labels("ORDER BY person, attribute, item", [])

    def _labels(self, which: str, values: Sequence[str]) -> list[Label]:
        with self.database.transaction() as session:
            return _as_labels(session.run(f"{_LABELS} {which}", values))

    def version(self) -> Version:
        """Return a mark that changes with every write that a model would notice."""
        with self.database.transaction() as session:
            count, last = session.run("SELECT COUNT(*), COALESCE(MAX(at), 0) FROM labels")[0]
            gone = session.run("SELECT COUNT(*) FROM forgotten")[0][0]
        return Version(int(count), float(last), int(gone))

    # Writes that are repeated

    def once(
        self,
        caller: str,
        key: str,
        digest: str,
        work: Callable[[Session], Answer],
        *,
        person: str = "",
    ) -> tuple[Answer, bool]:
        """Do a write once, however often it is asked for: what is written goes with the answer.

        Parameters
        ----------
        caller, key : str
            Whose write, and which: the caller chooses the key.
        digest : str
            Of what is to be written: another one with the same key is an error.
        work : callable
            The write; it returns the answer.
        person : str
            Whom it is about, so that the answer is deleted with them.

        Returns
        -------
        answer : Answer
        repeated : bool
            Whether it is the answer of an earlier call.
        """
        with self.database.transaction(writing=True) as session:
            now = time.time()
            session.run("DELETE FROM answers WHERE at < ?", [now - _REMEMBERED])
            new = session.count(
                "INSERT INTO answers VALUES (?, ?, ?, ?, 0, '', ?) "
                "ON CONFLICT (caller, write_key) DO NOTHING",
                [caller, key, person, digest, now],
            )
            if not new:
                return _repeated(session, caller, key, digest), True
            answer = work(session)
            session.run(
                "UPDATE answers SET status = ?, body = ? WHERE caller = ? AND write_key = ?",
                [answer.status, answer.body, caller, key],
            )
        return answer, False

    # Keys and state

    def add_key(self, key: Key) -> None:
        """Store a key's hash."""
        with self.database.transaction(writing=True) as session:
            session.run("INSERT INTO api_keys VALUES (?, ?, ?, ?, ?)", key)

    def api_keys(self) -> list[Key]:
        """Return all keys, the oldest first."""
        with self.database.transaction() as session:
            rows = session.run(
                "SELECT key_id, name, role, key_hash, created FROM api_keys ORDER BY created"
            )
        return [Key(*row) for row in rows]

    def drop_key(self, key_id: str) -> bool:
        """Revoke a key; False if there is none."""
        with self.database.transaction(writing=True) as session:
            return session.count("DELETE FROM api_keys WHERE key_id = ?", [key_id]) > 0

    def state(self, name: str) -> str | None:
        """Return something that the service noted for itself."""
        with self.database.transaction() as session:
            rows = session.run("SELECT value FROM state WHERE name = ?", [name])
        return str(rows[0][0]) if rows else None

    def set_state(self, name: str, value: str) -> None:
        """Note something."""
        with self.database.transaction(writing=True) as session:
            session.run(
                "INSERT INTO state VALUES (?, ?) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                [name, value],
            )


_LABELS = "SELECT person, attribute, item, label, at FROM labels"


def _as_labels(rows: Iterable[Row]) -> list[Label]:
    return [
        Label(person, attribute, item, None if label is None else float(label), at)
        for person, attribute, item, label, at in rows
    ]


def insert_user(session: Session, person: str, token_hash: str) -> bool:
    """Add somebody, inside a transaction; False if they are there already."""
    return (
        session.count(
            "INSERT INTO people VALUES (?, ?, ?) ON CONFLICT (person) DO NOTHING",
            [person, token_hash, time.time()],
        )
        > 0
    )


def write_labels(
    session: Session, person: str, labels: Iterable[tuple[str, str, float | None]]
) -> None:
    """Store labels, inside a transaction; the last word about an item counts."""
    for attribute, item, label in labels:
        session.run(
            "INSERT INTO labels (person, attribute, item, label, at) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (person, attribute, item) "
            "DO UPDATE SET label = excluded.label, at = excluded.at",
            [person, attribute, item, None if label is None else float(label), time.time()],
        )


def _repeated(session: Session, caller: str, key: str, digest: str) -> Answer:
    found = session.run(
        "SELECT digest, status, body FROM answers WHERE caller = ? AND write_key = ?",
        [caller, key],
    )
    before, status, body = found[0]
    if before != digest:
        raise KeyReusedError(
            "This Idempotency-Key was used for another write before: take a new one for each write."
        )
    return Answer(int(status), str(body))
