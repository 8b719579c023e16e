"""Connections to SQLite and PostgreSQL: the little of them that the store needs."""

import queue
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

from likeminds._util.lazy_imports import require
from likeminds._util.text_format import mask

Row = tuple[Any, ...]

# Connections that are kept open for the next request.
_POOLED = 8
# Seconds to wait for another writer (SQLite), or for the server (PostgreSQL).
_PATIENCE = 5


class StoreDownError(Exception):
    """The database cannot be reached, or cannot be written to."""


class Session(Protocol):
    """A transaction: all of it is kept, or nothing."""

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a statement, with ``?`` for its values."""
        ...

    def count(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Return how many rows a statement changed."""
        ...


class Database:
    """A pool of connections of one kind."""

    mark = "?"
    errors: tuple[type[Exception], ...] = ()

    def __init__(self) -> None:
        self._idle: queue.LifoQueue[Any] = queue.LifoQueue(_POOLED)

    @contextmanager
    def transaction(self, *, writing: bool = False) -> Iterator[Session]:
        """Give a transaction, which is committed at the end, or undone at an error.

        Parameters
        ----------
        writing : bool
            Whether it will write, so that no other writer comes in between.
        """
        connection = self._taken()
        try:
            with self._down_told():
                self._begin(connection, writing)
                yield _Session(connection, self.mark)
                connection.commit()
        except BaseException:
            # What is wrong with a connection may stay wrong: the next request gets another.
            with suppress(Exception):
                connection.rollback()
            with suppress(Exception):
                connection.close()
            raise
        self._put_back(connection)

    def close(self) -> None:
        """Close the connections that nobody uses."""
        with suppress(queue.Empty):
            while True:
                self._idle.get_nowait().close()

    def _taken(self) -> Any:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            with self._down_told():
                return self._connect()

    def _put_back(self, connection: Any) -> None:
        try:
            self._idle.put_nowait(connection)
        except queue.Full:
            connection.close()

    @contextmanager
    def _down_told(self) -> Iterator[None]:
        try:
            yield
        except self.errors as error:
            reason = " ".join(mask(str(error)).split()) or type(error).__name__
            raise StoreDownError(reason) from error

    def _connect(self) -> Any:
        raise NotImplementedError

    def _begin(self, connection: Any, writing: bool) -> None:
        raise NotImplementedError


class _Session:
    def __init__(self, connection: Any, mark: str) -> None:
        self._connection, self._mark = connection, mark

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        cursor = self._connection.execute(self._marked(statement), tuple(values))
        return list(cursor.fetchall()) if cursor.description else []

    def count(self, statement: str, values: Sequence[Any] = ()) -> int:
        return int(self._connection.execute(self._marked(statement), tuple(values)).rowcount)

    def _marked(self, statement: str) -> str:
        return statement.replace("?", self._mark)


class SqliteDatabase(Database):
    """A file, with a write-ahead log: readers and one writer do not wait for each other."""

    errors = (sqlite3.Error,)

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def _connect(self) -> Any:
        connection = sqlite3.connect(
            self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode = WAL")
        # What is acknowledged is on the disk, even if the power fails the next moment.
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _begin(self, connection: Any, writing: bool) -> None:
        connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")


class PostgresDatabase(Database):
    """A server, by its address."""

    mark = "%s"

    def __init__(self, address: str) -> None:
        super().__init__()
        self._psycopg = require("psycopg", "A PostgreSQL database", "postgres")
        self.errors = (self._psycopg.Error,)
        self._address = address

    def _connect(self) -> Any:
        return self._psycopg.connect(self._address, connect_timeout=_PATIENCE)

    def _begin(self, connection: Any, writing: bool) -> None:
        """Psycopg begins a transaction with its first statement."""


def open_database(address: str) -> Database:
    """Return the database of an address: sqlite:///FILE, or postgresql://USER@HOST/NAME."""
    scheme, _, rest = address.partition(":")
    if scheme.lower() in {"postgres", "postgresql"}:
        return PostgresDatabase(address)
    if scheme.lower() == "sqlite" and rest.startswith("///"):
        return SqliteDatabase(Path(unquote(rest[3:])))
    raise ValueError(
        f"{mask(address)} is no database that the service can write to: it is sqlite:///FILE or "
        "postgresql://USER@HOST/NAME."
    )
