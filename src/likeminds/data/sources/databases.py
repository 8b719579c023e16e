"""Read-only queries on SQLite, DuckDB and PostgreSQL."""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from likeminds._util.lazy_imports import pa, require
from likeminds._util.text_format import mask

_SCHEME = re.compile(r"(sqlite|duckdb|postgresql|postgres):", re.IGNORECASE)
# The end of the address, before the query: file names may have spaces, too.
_QUERY = re.compile(r"\s+(?=(?:select|with|from|table|values)\b)", re.IGNORECASE)
_HOST = r"(?:\[[^\]\s@]*\]|[^:@/?,\s\[\]]*)(?::\d*)?"
# An address without ambiguous characters.
_SERVER = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^:@/?\s]*)(?::(?P<password>[^@/?\s]*))?@)?"
    rf"(?P<host>{_HOST}(?:,{_HOST})*)(?:/(?P<name>[^@?\s]*))?(?:\?(?P<options>[^@\s]*))?",
    re.IGNORECASE,
)
_SECRET_OPTION = re.compile(r"(?:^|&)[^=&]*pass[^=&]*=([^&]*)", re.IGNORECASE)


class Address(NamedTuple):
    """A database and a query."""

    scheme: str
    url: str
    query: str

    @property
    def file(self) -> str:
        """The file of SQLite or DuckDB: sqlite:///here.db or sqlite:////data/there.db."""
        rest = self.url.partition(":")[2]
        return unquote(rest[3:] if rest.startswith("///") else rest.removeprefix("//"))

    @property
    def secrets(self) -> list[str]:
        """Passwords of the address, which are never shown: percent-encoded and decoded."""
        parts = _SERVER.fullmatch(self.url)
        if parts is None:
            return []
        found = [parts["password"] or "", *_SECRET_OPTION.findall(parts["options"] or "")]
        return [form for secret in found if secret for form in (secret, unquote(secret))]

    def __str__(self) -> str:
        parts = _SERVER.fullmatch(self.url)
        if parts is None:
            return mask(self.url)
        user = parts["user"] or ""
        who = f"{user}:***@" if parts["password"] else f"{user}@" if user else ""
        return f"postgresql://{who}{parts['host']}/{parts['name'] or ''}"


def read_query(source: str) -> "pa.Table | None":
    """Return the result of a query; None if the source is not an address."""
    if _SCHEME.match(source):
        address = split(source)
        return _READERS[address.scheme](address)
    scheme = re.match(r"\s*(\w[\w+.-]+):/", source)
    foreign = f"{scheme[1]}://" if scheme else mask(source) if _QUERY.search(source) else None
    if foreign is not None and not Path(source).exists():
        raise ValueError(
            f"{foreign} is not a supported database. Use sqlite:///FILE, duckdb:///FILE or "
            "postgresql://USER@HOST/NAME, followed by a query."
        )
    return None


def split(source: str) -> Address:
    """Divide a source into address and query."""
    parts = _QUERY.split(source, maxsplit=1)
    scheme = parts[0].partition(":")[0].lower().replace("postgresql", "postgres")
    address = Address(scheme, parts[0], parts[1] if len(parts) > 1 else "")
    if scheme == "postgres" and not _SERVER.fullmatch(address.url):
        raise ValueError(
            "The address of the database is not of the form "
            "postgresql://USER:PASSWORD@HOST:PORT/NAME, followed by a query that starts with "
            "SELECT. It is not shown, as it may hold a password. In names and passwords, write @ "
            "as %40, a space as %20, / as %2F and ? as %3F."
        )
    if not address.query:
        raise ValueError(
            f"{address} is a database: add a query, in quotes, such as "
            f'"{address} SELECT * FROM labels".'
        )
    return address


def _read_sqlite(address: Address) -> "pa.Table":
    sqlite3 = require("sqlite3", "Reading an SQLite database")
    path = _existing(address)
    # The module runs one statement only. The authoriser denies actions on other files, which
    # would not be opened for reading only.
    allowed = {
        *(sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ),
        *(sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE),
    }

    def authorize(action: int, *about: object) -> int:
        allows = action in allowed and "load_extension" not in about
        return int(sqlite3.SQLITE_OK if allows else sqlite3.SQLITE_DENY)

    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.set_authorizer(authorize)
            cursor = connection.execute(address.query)
            return _as_table([column[0] for column in cursor.description or ()], cursor.fetchall())
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise _refused(address, error) from error


def _read_duckdb(address: Address) -> "pa.Table":
    duckdb = require("duckdb", "Reading a DuckDB database", "duckdb")
    path = _existing(address)
    # Deny access to other files and the network; no statement can change this.
    closed = {"enable_external_access": "false", "lock_configuration": "true"}
    closed |= {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    try:
        with duckdb.connect(str(path), read_only=True, config=closed) as connection:
            statements = connection.extract_statements(address.query)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise _more_than_a_question()
            return _plain(connection.sql(address.query).to_arrow_table())
    except duckdb.Error as error:
        raise _refused(address, error) from error


def _read_postgres(address: Address) -> "pa.Table":
    psycopg = require("psycopg", "Reading from PostgreSQL", "postgres")
    try:
        with closing(psycopg.connect(address.url)) as connection:
            connection.read_only = True
            # The query of a cursor is one statement that only reads, by the grammar of SQL: it
            # cannot end the transaction, copy to a program, or be followed by another.
            with connection.cursor("likeminds") as cursor:
                cursor.execute(address.query)
                names = [column.name for column in cursor.description or ()]
                return _as_table(names, cursor.fetchall() if names else [])
    except psycopg.Error as error:
        # Not "from error": chained errors are shown, too, and may hold the password.
        raise _refused(address, error) from None


_READERS: dict[str, Callable[[Address], Any]] = {
    "sqlite": _read_sqlite,
    "duckdb": _read_duckdb,
    "postgres": _read_postgres,
}


def _existing(address: Address) -> Path:
    path = Path(address.file)
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no database {mask(str(path))}. Check the name and the folder."
        )
    return path


def _refused(address: Address, error: Exception) -> ValueError:
    reason = " ".join(str(error).split()).rstrip(".")
    for secret in sorted(address.secrets, key=len, reverse=True):
        reason = reason.replace(secret, "***")
    return ValueError(f"The query on {address} failed: {mask(reason)}.")


def _more_than_a_question() -> ValueError:
    return ValueError("Databases are read only: write one statement that starts with SELECT.")


def _as_table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> "pa.Table":
    if not names:
        raise _more_than_a_question()
    if len(set(names)) < len(names):
        raise ValueError(f"The query repeats names of columns: {', '.join(names)}. Add AS.")
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    found = {}
    for name, values in zip(names, columns, strict=True):
        try:
            found[name] = pa.array([_value(value) for value in values])
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise ValueError(
                f"Column {name!r} of the query mixes types (use CAST): {error}"
            ) from error
    return pa.table(found)


def _value(value: object) -> object:
    """Return numbers as numbers; types that Arrow does not have become texts."""
    if isinstance(value, Decimal):
        return float(value)
    known = value is None or isinstance(value, bool | int | float | str | bytes | list | tuple)
    return value if known or isinstance(value, date | time) else str(value)


def _plain(table: "pa.Table") -> "pa.Table":
    """Return decimals as floating-point numbers."""
    fields = [
        field.with_type(pa.float64()) if pa.types.is_decimal(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))
