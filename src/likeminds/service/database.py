"""Transactions of SQLite and PostgreSQL, with the few methods that the store needs."""

import queue
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from likeminds._util.lazy_imports import require
from likeminds._util.text_format import mask

Row = tuple[Any, ...]
# Connections of psycopg have the same methods.
Connection = sqlite3.Connection
Value = str | float | None

# Connections that are kept open for the next request.
_POOLED = 8
# Seconds to wait for another writer (SQLite), or for the server (PostgreSQL).
_PATIENCE = 5


class StoreDownError(Exception):
    """The database cannot be reached, or cannot be written to."""


class Session:
    """A transaction: all of its statements take effect, or none."""

    def __init__(self, connection: Connection, mark: str) -> None:
        self._connection, self._mark = connection, mark

    def run(self, statement: str, values: Sequence[Value] = ()) -> sqlite3.Cursor:
        """Run a statement, with ``?`` for its values."""
        return self._connection.execute(statement.replace("?", self._mark), tuple(values))


class Database:
    """A pool of connections of one kind."""

    mark = "?"
    errors: tuple[type[Exception], ...] = ()

    def __init__(self) -> None:
        self._idle: queue.LifoQueue[Connection] = queue.LifoQueue(_POOLED)

    @contextmanager
    def transaction(self, *, writing: bool = False) -> Iterator[Session]:
        """Yield a transaction, committed at the end, or rolled back after an error.

        With ``writing``, other writers wait until it ends.
        """
        connection = None
        try:
            with suppress(queue.Empty):
                connection = self._idle.get_nowait()
            if connection is None:
                connection = self._connect()
            self._begin(connection, writing)
            yield Session(connection, self.mark)
            connection.commit()
        except BaseException as error:
            # A broken connection may stay broken: the next request gets another.
            if connection is not None:
                with suppress(Exception):
                    connection.rollback()
                with suppress(Exception):
                    connection.close()
            if isinstance(error, self.errors):
                reason = " ".join(mask(str(error)).split()) or type(error).__name__
                raise StoreDownError(reason) from error
            raise
        try:
            self._idle.put_nowait(connection)
        except queue.Full:
            connection.close()

    def query(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Run a reading statement, and return its rows."""
        with self.transaction() as session:
            return list(session.run(statement, values).fetchall())

    def write(self, statement: str, values: Sequence[Value] = ()) -> int:
        """Run a writing statement, and return the number of rows that it changed."""
        with self.transaction(writing=True) as session:
            return session.run(statement, values).rowcount

    def close(self) -> None:
        """Close the connections that are not in use."""
        with suppress(queue.Empty):
            while True:
                self._idle.get_nowait().close()

    def _connect(self) -> Connection:
        raise NotImplementedError

    def _begin(self, connection: Connection, writing: bool) -> None:
        """Begin a transaction; psycopg does so with its first statement."""


class SqliteDatabase(Database):
    """An SQLite file with a write-ahead log: readers and one writer do not wait for each other."""

    errors = (sqlite3.Error,)

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def _connect(self) -> Connection:
        connection = sqlite3.connect(
            self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode = WAL")
        # Acknowledged writes survive a power failure.
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _begin(self, connection: Connection, writing: bool) -> None:
        connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")


class PostgresDatabase(Database):
    """A PostgreSQL server, by its address."""

    mark = "%s"

    def __init__(self, address: str) -> None:
        super().__init__()
        self._psycopg = require("psycopg", "A PostgreSQL database", "postgres")
        self.errors = (self._psycopg.Error,)
        self._address = address

    def _connect(self) -> Connection:
        connection: Connection = self._psycopg.connect(self._address, connect_timeout=_PATIENCE)
        return connection


def open_database(address: str) -> Database:
    """Return the database of an address: sqlite:///FILE, or postgresql://USER@HOST/NAME."""
    scheme, _, rest = address.partition(":")
    if scheme.lower() in {"postgres", "postgresql"}:
        return PostgresDatabase(address)
    if scheme.lower() == "sqlite" and rest.startswith("///"):
        return SqliteDatabase(Path(unquote(rest[3:])))
    raise ValueError(
        f"The service cannot write to {mask(address)}: name a database sqlite:///FILE or "
        "postgresql://USER@HOST/NAME."
    )
