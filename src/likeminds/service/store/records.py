"""Rows of the database, as the service sees them."""

from typing import NamedTuple


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
