"""Queries on SQLite, DuckDB and PostgreSQL, opened for reading only."""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from likeminds._support.optional import require

_SCHEME = re.compile(r"(sqlite|duckdb|postgresql|postgres):", re.IGNORECASE)
# Where the address ends and the query begins: file names may have spaces, too.
_QUERY = re.compile(r"\s+(?=(?:select|with|from|table|values)\b)", re.IGNORECASE)
_PASSWORD = re.compile(r"(://[^:/@\s]*:)[^@\s]*@")


class Address(NamedTuple):
    """A database, and what to ask it."""

    scheme: str
    url: str
    query: str

    @property
    def file(self) -> str:
        """The file of SQLite or DuckDB: as usual, sqlite:///here.db and sqlite:////data/there.db."""
        rest = self.url.partition(":")[2]
        return unquote(rest[3:] if rest.startswith("///") else rest.removeprefix("//"))

    def __str__(self) -> str:
        return _PASSWORD.sub(r"\1***@", self.url)


def is_address(source: str) -> bool:
    """Say whether a source is a database.

    Examples
    --------
    >>> is_address("sqlite:///crowd.db SELECT * FROM labels"), is_address("crowd.csv")
    (True, False)
    """
    return _SCHEME.match(source) is not None


def read_query(source: str) -> Any:
    """Return what a query finds, as a pyarrow.Table."""
    address = split(source)
    return _READERS[address.scheme](address)


def split(source: str) -> Address:
    """Tell the address from the query.

    Examples
    --------
    >>> split("sqlite:///my crowd.db  SELECT * FROM labels").query
    'SELECT * FROM labels'
    >>> split("sqlite:///my crowd.db select 1").file
    'my crowd.db'
    """
    parts = _QUERY.split(source, maxsplit=1)
    scheme = parts[0].partition(":")[0].lower().replace("postgresql", "postgres")
    address = Address(scheme, parts[0], parts[1] if len(parts) > 1 else "")
    if not address.query:
        raise ValueError(
            f"{address} is a database: say what to read from it, in quotes, such as "
            f'"{address} SELECT * FROM labels".'
        )
    return address


def _read_sqlite(address: Address) -> Any:
    sqlite3 = require("sqlite3", "Reading an SQLite database", "sqlite")
    path = _existing(address)
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            cursor = connection.execute(address.query)
            return _as_table([column[0] for column in cursor.description or ()], cursor.fetchall())
    except sqlite3.Error as error:
        raise _refused(address, error) from error


def _read_duckdb(address: Address) -> Any:
    duckdb = require("duckdb", "Reading a DuckDB database", "duckdb")
    path = _existing(address)
    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            found = connection.sql(address.query)
            return _as_table([], []) if found is None else _plain(found.to_arrow_table())
    except duckdb.Error as error:
        raise _refused(address, error) from error


def _read_postgres(address: Address) -> Any:
    psycopg = require("psycopg", "Reading from PostgreSQL", "postgres")
    try:
        with psycopg.connect(address.url) as connection:
            connection.read_only = True
            cursor = connection.execute(address.query)
            names = [column.name for column in cursor.description or ()]
            return _as_table(names, cursor.fetchall() if names else [])
    except psycopg.Error as error:
        raise _refused(address, error) from error


_READERS: dict[str, Callable[[Address], Any]] = {
    "sqlite": _read_sqlite,
    "duckdb": _read_duckdb,
    "postgres": _read_postgres,
}


def _existing(address: Address) -> Path:
    path = Path(address.file)
    if not path.is_file():
        raise FileNotFoundError(f"There is no database {path}. Check the name and the folder.")
    return path


def _refused(address: Address, error: Exception) -> ValueError:
    said = _PASSWORD.sub(r"\1***@", " ".join(str(error).split())).rstrip(".")
    return ValueError(f"{address} could not answer the query: {said}.")


def _as_table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - keeps the import of likeminds light

    if not names:
        raise ValueError("The query returns no table. Write one that starts with SELECT.")
    if len(set(names)) < len(names):
        raise ValueError(f"The query returns two columns of one name: {', '.join(names)}.")
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    found = {}
    for name, values in zip(names, columns, strict=True):
        try:
            found[name] = pa.array([_value(value) for value in values])
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise ValueError(
                f"Column {name!r} of the query holds values of different kinds: {error}"
            ) from error
    return pa.table(found)


def _value(value: Any) -> Any:
    """Return numbers as numbers; what Arrow does not know (an id of its own kind) as text."""
    if isinstance(value, Decimal):
        return float(value)
    known = value is None or isinstance(value, bool | int | float | str | bytes | list | tuple)
    return value if known or hasattr(value, "isoformat") else str(value)


def _plain(table: Any) -> Any:
    """Return decimals as floating-point numbers."""
    import pyarrow as pa  # noqa: PLC0415 - keeps the import of likeminds light

    fields = [
        field.with_type(pa.float64()) if pa.types.is_decimal(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))
