"""Whom and what somebody means: ids as they are known, and what items are called."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likeminds._util.array_types import IdArray

# Columns of texts that are names of items, where nobody says which one is.
_USUAL = ("title", "name")
# What the index of a data frame is called in a file.
_INDEX = ("", "Unnamed: 0", "index")
# Which of several columns of texts says what items are.
_NAMES_OF_TEXTS = ("text", "title", "name", "statement", "comment-body")

# Names that a mistaken one is compared with.
_COMPARED = 100_000


def is_name(column: str) -> bool:
    """Say whether a column has a usual name for the names of items."""
    return column.lower() in _USUAL


def find_names(table: Any, key: str, column: str | None) -> str | None:
    """Return the column of a table that has the names of its items; None where there is none.

    By default it is the only one that is called title or name.
    """
    from likeminds._util.checks import did_you_mean, listing

    columns = [name for name in table.column_names if name != key]
    if column is None:
        usual = [name for name in columns if is_name(name)]
        return str(usual[0]) if len(usual) == 1 else None
    if column not in columns:
        raise ValueError(
            f"--item-name: there is no column {column!r}.{did_you_mean(column, columns)} "
            f"There are {listing(columns)}."
        )
    return column


def names_in(table: Any, key: str, column: str | None) -> dict[Any, str] | None:
    """Return what a column of a table calls its items, by their ids; None without a column."""
    if column is None:
        return None
    both = zip(table[key].to_pylist(), table[column].to_pylist(), strict=True)
    return {item: str(name) for item, name in both if name is not None}


def find_item(text: str, ids: "IdArray", names: dict[Any, str]) -> Any:
    """Return the item of an id or a name; suggest others if there is none."""
    from likeminds.rankers.item_table import places_of_items

    place = int(places_of_items([text], ids, names)[0])
    return ids[place : place + 1].tolist()[0]


def read_texts(source: str, column: str = "item") -> dict[Any, str]:
    """Read what items say, by their ids, as they are and as texts."""
    import pyarrow as pa

    from likeminds._util.checks import listing
    from likeminds.data.column_roles import item_texts
    from likeminds.data.sources import read_table

    table = read_table(source, item_texts(column))
    key = item_key(table, column)
    texts = [
        field.name
        for field in table.schema
        if field.name != key
        and (pa.types.is_string(field.type) or pa.types.is_large_string(field.type))
    ]
    named = [name for name in texts if name.lower() in _NAMES_OF_TEXTS]
    if len(texts) > 1 and len(named) == 1:
        texts = named
    if len(texts) != 1:
        found = f"there are {listing(texts)}" if texts else "there is none"
        raise ValueError(f"{source} needs one column of texts beside {key}, but {found}.")
    both = zip(table[key].to_pylist(), table[texts[0]].to_pylist(), strict=True)
    said = {item: text for item, text in both if text}
    return {str(item): text for item, text in said.items()} | said


def as_known(text: str, known: "IdArray", what: str) -> Any:
    """Return the id that somebody means, who can write nothing but text."""
    from likeminds._util.checks import did_you_mean, listing
    from likeminds.data.id_coercion import write_as_known
    from likeminds.data.identifiers import lookup

    place = lookup(write_as_known([text], known, what), known, what)[0]
    if place < 0:
        hint = did_you_mean(text, known[:_COMPARED].tolist())
        raise ValueError(f"There is no {what} {text!r}; there are {listing(known)}.{hint}")
    return known[place : place + 1].tolist()[0]


def item_key(features: Any, column: str = "item", what: str = "features") -> str:
    """Return the column of a table (``what`` it holds) that names the items."""
    from likeminds._util.checks import did_you_mean, listing
    from likeminds.data.column_roles import COLUMN_NAMES, usual_columns

    matches = usual_columns("item", features.column_names)
    by_name = is_name(column) and len(matches) == 1  # ids come before names
    if column in features.column_names and not by_name:
        return column
    if not matches and features.column_names[0] in _INDEX:
        matches = [features.column_names[0]]  # a data frame that was written with its index
    if len(matches) != 1:
        called = " or ".join(dict.fromkeys([column, *COLUMN_NAMES["item"][:2]]))
        raise ValueError(
            f"The table of {what} needs one column with the ids of the items, called {called}; it "
            f"has {listing(features.column_names)}.{did_you_mean(column, features.column_names)}"
        )
    return str(matches[0])
