"""The tables of the database, and their rows."""

from typing import NamedTuple

# Each step migrates a database by one version, in SQL that SQLite and PostgreSQL read alike.
# A released step never changes.
STEPS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE people (
            person TEXT PRIMARY KEY,
            token_hash TEXT NOT NULL,
            created DOUBLE PRECISION NOT NULL
        )""",
        """CREATE TABLE labels (
            person TEXT NOT NULL,
            attribute TEXT NOT NULL,
            item TEXT NOT NULL,
            label INTEGER,
            at DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (person, attribute, item)
        )""",
        """CREATE TABLE forgotten (
            user_hash TEXT PRIMARY KEY,
            at DOUBLE PRECISION NOT NULL
        )""",
        """CREATE TABLE api_keys (
            key_id TEXT PRIMARY KEY,
            name TEXT NOT NULL,
            role TEXT NOT NULL,
            key_hash TEXT NOT NULL UNIQUE,
            created DOUBLE PRECISION NOT NULL
        )""",
        """CREATE TABLE answers (
            caller TEXT NOT NULL,
            write_key TEXT NOT NULL,
            person TEXT NOT NULL,
            digest TEXT NOT NULL,
            status INTEGER NOT NULL,
            body TEXT NOT NULL,
            at DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (caller, write_key)
        )""",
    ),
    (
        "CREATE INDEX labels_by_time ON labels (at)",
        "CREATE INDEX answers_by_time ON answers (at)",
        "CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    ),
    (  # grades are labels, too
        "ALTER TABLE labels ADD COLUMN answer DOUBLE PRECISION",
        "UPDATE labels SET answer = label",
        "ALTER TABLE labels DROP COLUMN label",
        "ALTER TABLE labels RENAME COLUMN answer TO label",
    ),
    ("CREATE INDEX people_by_token ON people (token_hash)",),
)


class Person(NamedTuple):
    """Somebody who came to the service.

    Attributes
    ----------
    person : str
        The id.
    token_hash : str
        Of the token with which they, and nobody else, see and change their labels.
    created : float
        When, in seconds since 1970.
    """

    person: str
    token_hash: str
    created: float


class Label(NamedTuple):
    """A user's answer about an item; ``label`` is None once it was deleted.

    The label is 0 for no and 1 for yes, or a grade: see `rankers.answer_scales.AnswerScale`.
    """

    person: str
    attribute: str
    item: str
    label: float | None
    at: float


class Key(NamedTuple):
    """An API key: its name, what it may do, and its hash; the key itself is kept nowhere."""

    key_id: str
    name: str
    role: str
    key_hash: str
    created: float


class Answer(NamedTuple):
    """What a write was answered with, to be repeated when the write is."""

    status: int
    body: str


class Version(NamedTuple):
    """A mark of all that is stored, which changes with every write that a model would notice."""

    labels: int
    last: float
    forgotten: int
