"""Find the columns of a table by role (user, item, label, ...), and read their values."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from likeminds._util.array_types import Bool, IdArray
from likeminds._util.checks import close_matches, did_you_mean, listing
from likeminds._util.lazy_imports import nw, pa
from likeminds._util.text_format import visible
from likeminds.data.identifiers import IntegerCodes, as_objects
from likeminds.data.sources import Texts, read_table

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

# A frame of any library, as narwhals sees it.
Frame: TypeAlias = "nw.DataFrame[Any]"

# The usual names of the columns of each role. Case, spaces, hyphens and underscores are ignored:
# userId, user_id and "User ID" are one name.
COLUMN_NAMES: Mapping[str, tuple[str, ...]] = {
    "user": (
        *("user", "person", "annotator", "worker", "rater", "judge", "household", "respondent"),
        *("person_id", "user_id", "annotator_id", "worker_id", "rater_id", "judge_id"),
        *("household_id", "respondent_id", "voter", "voter_id", "participant", "participant_id"),
    ),
    "item": (
        *("item", "image", "object", "document", "item_id", "image_id", "object_id", "doc_id"),
        *("movie", "movie_id", "film", "film_id", "task", "task_id", "instance", "instance_id"),
        *("statement", "statement_id", "comment_id", "document_id", "product", "product_id"),
    ),
    "label": ("label", "rating", "y", "answer", "response", "vote", "votes"),
    "attribute": ("attribute",),
    "weight": ("weight", "sample_weight"),
    "choice_set": (
        *("group", "choice_set", "chid", "choice_id", "choice_situation", "obs_id", "case_id"),
    ),
    "alternative": ("alternative", "alt", "alternative_id", "alt_id"),
    "availability": ("availability", "available", "avail", "av"),
    "winner": ("winner", "chosen", "preferred", "winner_id", "chosen_id"),
    "loser": ("loser", "rejected", "loser_id", "rejected_id"),
    "tie": ("tie", "ties", "tied", "draw"),
    "strength": ("strength", "weight"),
    "seconds": ("seconds", "lead_time", "response_time"),
}
# Ambiguous names, which are used only if no column has a usual name.
_LESS_USUAL: Mapping[str, tuple[str, ...]] = {
    "item": ("comment",),
    "label": ("chosen", "choice"),
}
# Numbers that identify or date rows: features only if they are named.
_NO_FEATURES = (
    *("timestamp", "date", "datetime", "created", "created_at", "updated_at"),
    *("lead_time", "response_time", "index", "level_0", "row", "row_id", "unnamed: 0"),
)

# The verbs of labels, and of columns of labels, with these names; others have "rate high".
_VERBS = {
    **dict.fromkeys(("agree", "vote", "votes"), "agree with"),
    **dict.fromkeys(("choice", "chosen"), "choose"),
    **dict.fromkeys(("like", "likes", "liked"), "like"),
}

# The roles of a table with one row per label.
LABEL_ROLES = (
    *("user", "item", "label", "attribute", "weight", "choice_set"),
    *("alternative", "availability"),
)
# Columns that mark rows of choice sets, as attributes of `Annotations`.
MARKS = ("picks_worst", "tied")
# Features for position effects: whether the item of a row was shown first, or last, in its set.
POSITIONS = ("shown_first", "shown_last")
# The roles whose columns hold ids. In CSV, ids are texts, even if they look like numbers.
ID_ROLES = ("user", "item", "attribute", "choice_set", "winner", "loser")


def default_verb(*names: object) -> str | None:
    """Return the verb for the first known of some names of labels and their columns."""
    known = (_VERBS.get(name.strip().lower()) for name in names if isinstance(name, str))
    return next(filter(None, known), None)


def as_frame(frame: object) -> Frame:
    """Return any data frame as one of narwhals; lazy ones are collected."""
    try:
        table = nw.from_native(cast("IntoFrame", frame))
    except TypeError as error:
        raise TypeError(
            "Expected a data frame (pandas, polars, pyarrow or another that narwhals reads), "
            f"but got {type(frame).__name__}. Files are read by from_csv and from_parquet, "
            "matrices of users by items by from_matrix."
        ) from error
    return table.collect() if isinstance(table, nw.LazyFrame) else table


def with_index(frame: object, name: str | None = None) -> Frame:
    """Return a frame with its pandas index as a column, called as the index or ``name``."""
    table = as_frame(frame)
    index = nw.maybe_get_index(table)
    if index is None or (index.name is None and type(index).__name__ == "RangeIndex"):
        return table
    column = name if index.name is None else index.name
    return table if column is None else as_frame(table.to_native().reset_index(names=column))


def find_columns(
    table: Frame,
    names: Mapping[str, str | None],
    listed: Sequence[str],
    arguments: Mapping[str, str] | None = None,
) -> dict[str, str | None]:
    """Return the column of each role: the one named, or one with a usual name, or None.

    If one column is left besides user and item, it is the label, whatever its name. ``arguments``
    has the names of arguments that differ from the name of their role.
    """
    argument_of = {role: role for role in names} | dict(arguments or {})
    for role, name in names.items():
        if name is not None:
            refuse_unknown(table, [name], argument_of[role])
    excluded = {*names.values(), *listed}
    free = [column for column in table.columns if column not in excluded]
    found = {role: name or find_column(role, free) for role, name in names.items()}
    if found.get("user", "") is None:
        found["user"] = id_of_choosers(free, found.get("alternative"))
    if "label" in found and found["label"] is None:
        found["label"] = _left_for_label(found, free)
    _refuse_wide(table, names, found)
    for role in ("user", "label", "winner", "loser"):
        if role in found and found[role] is None:
            raise not_found(role, table, argument_of[role])
    return _with_alternatives(table, found, names) if "alternative" in found else found


def _with_alternatives(
    table: Frame, found: dict[str, str | None], names: Mapping[str, str | None]
) -> dict[str, str | None]:
    """Return the columns of roles; those of choice experiments only if there are choice sets.

    If each user has one row per alternative, a user is a choice set.
    """
    column = found["alternative"]
    if found["choice_set"] is not None:
        return found
    if column is not None:
        rows = table.select([str(found["user"]), column])
        if len(rows) == len(rows.unique()):
            return found | {"choice_set": found["user"]}
        if names["alternative"] or names_a_choice(str(found["label"])):
            raise ValueError(
                f"Column {column!r} holds alternatives, but no column identifies the rows of a "
                "choice set (usual names: choice_set, chid, obs_id). Pass choice_set= to name it."
            )
    return found | {role: names[role] for role in ("alternative", "availability")}


def id_of_choosers(columns: Iterable[str], alternative: str | None) -> str | None:
    """Return the column id, which names the users of a table of alternatives."""
    if alternative is None:
        return None
    return next((column for column in columns if _letters(column) == "id"), None)


def _refuse_wide(
    table: Frame, names: Mapping[str, str | None], found: Mapping[str, str | None]
) -> None:
    """Raise ValueError for one row per choice, with the chosen alternative as the label."""
    label = found.get("label")
    if names.get("label") is not None or found.get("item") is not None:
        return
    if label is None or not names_a_choice(label):
        return
    values = table[label].drop_nulls().unique().to_list()
    if len(values) > 2:
        raise ValueError(
            f"Column {label!r} has {len(values):,} values, not two: each row seems to be a choice. "
            "Give each alternative a row, with likeminds.wide_to_long, or pass label= if these "
            "are grades."
        )


def names_a_choice(column: str) -> bool:
    """Return whether a column is called chosen or choice."""
    return _letters(column) in _LESS_USUAL["label"]


def _left_for_label(found: Mapping[str, str | None], free: Sequence[str]) -> str | None:
    """Return the only column besides those of user and item, or None."""
    if found.get("item") is None or found.get("user", "") is None:
        return None
    remaining = [c for c in free if c not in found.values() and may_be_feature(c)]
    return remaining[0] if len(remaining) == 1 else None


def find_column(role: str, columns: Iterable[str]) -> str | None:
    """Return the column with a usual name for a role, or None; raise ValueError for several."""
    matches = usual_columns(role, columns)
    if len(matches) > 1:
        raise ValueError(
            f"More than one column could be the {role}: {listing(matches)}. "
            f"Pass {role}= to choose one."
        )
    return matches[0] if matches else None


def usual_columns(role: str, columns: Iterable[str]) -> list[str]:
    """Return the columns with a usual name for a role; else those with a less usual one."""
    columns = list(columns)
    less = {_letters(name) for name in _LESS_USUAL.get(role, ())}
    usual = [column for column in columns if is_usual(role, column)]
    return usual or [column for column in columns if _letters(column) in less]


def is_usual(role: str, column: str) -> bool:
    """Return whether a column has a usual name for a role."""
    return _letters(column) in {_letters(name) for name in COLUMN_NAMES[role]}


def may_be_feature(column: str) -> bool:
    """Return whether a column of numbers may be taken as a feature without being named."""
    return _letters(column) not in {_letters(name) for name in _NO_FEATURES}


def _letters(name: object) -> str:
    return "".join(character for character in str(name).lower() if character not in "_- ")


def not_found(role: str, table: Frame, argument: str | None = None) -> ValueError:
    """Return the error for a role without a column."""
    alike = [column for column in table.columns if close_matches(column, COLUMN_NAMES[role])]
    hint = f" Is it {' or '.join(map(visible, alike))}?" if len(alike) in (1, 2) else ""
    return ValueError(
        f"No column is called {' or '.join(COLUMN_NAMES[role][:3])}. Pass {argument or role}= to "
        f"name the column of the {role}; the columns are {listing(table.columns)}.{hint}"
    )


def refuse_unknown(table: Frame, names: Iterable[str], argument: str) -> None:
    """Raise KeyError for names that are not columns."""
    known = set(table.columns)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise KeyError(
            f"{argument}: no such column(s) {listing(unknown)}; the columns are "
            f"{listing(table.columns)}.{did_you_mean(unknown[0], table.columns)}"
        )


def id_texts(names: Mapping[str, str | None], listed: Iterable[str] = ()) -> Texts:
    """Return a function that finds columns of ids: those named, or else those with usual names."""
    excluded = {*names.values(), *listed}

    def texts(columns: Sequence[str]) -> set[str]:
        free = [column for column in columns if column not in excluded]
        found = {name for role in ID_ROLES if (name := names.get(role)) in columns and name}
        unnamed = [role for role in ID_ROLES if role in names and names[role] not in columns]
        return found.union(*(usual_columns(role, free) for role in unnamed))

    return texts


def split_keys(
    source: object,
    role: str,
    usual: str | None = None,
    named: str | None = None,
    argument: str | None = None,
) -> tuple[IdArray, Frame]:
    """Return the ids of a table or file with a row per user or item, and its other columns.

    The ids are in the column ``named`` by an argument; else in the column called ``usual``, or with
    a usual name. They may be the index of pandas.
    """
    first = named or usual
    if isinstance(source, str | PathLike):
        source = read_table(source, id_texts({role: first}))

    def find_key(columns: Sequence[str]) -> str | None:
        return first if first in columns or named else find_column(role, columns)

    table = as_frame(source)
    key = find_key(table.columns)
    if key not in table.columns:
        table = with_index(source, first)
        key = find_key(table.columns)
    if key is None:
        raise not_found(role, table, argument)
    refuse_unknown(table, [key], argument or role)
    return read_values(table, key, as_ids=True), table.drop(key)


def read_role(table: Frame, role: str, name: str) -> dict[str, Any]:
    """Return a column as an argument of `Annotations`; marks as the attribute."""
    if role in MARKS:
        return {role: read_marks(table, name)}
    return {f"{role}s": read_coded(table, name, as_ids=role in ID_ROLES)}


def read_marks(table: Frame, name: str) -> Bool:
    """Return a column of marks, which are true or false, or 1 and 0."""
    values = read_values(table, name)
    if not np.isin(values, [0, 1]).all():
        raise ValueError(f"Column {name!r} marks rows of choice sets: true or false, or 1 and 0.")
    return values.astype(np.bool_)


def read_coded(table: Frame, name: str, *, as_ids: bool = False) -> IdArray | IntegerCodes:
    """Return a column as `read_values` does, but texts as codes, without an object per row."""
    if table.schema[name] != nw.String:
        return read_values(table, name, as_ids=as_ids)
    coded = dictionary_codes(table.get_column(name).to_arrow())
    return read_values(table, name, as_ids=as_ids) if coded is None else coded


def dictionary_codes(column: "pa.ChunkedArray | pa.Array") -> IntegerCodes | None:
    """Return the codes of an Arrow column of texts; None if some are missing or empty."""
    if column.null_count or not len(column):
        return None
    encoded = column.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        chunks = encoded.unify_dictionaries().chunks
    else:
        chunks = [encoded]
    distinct = np.array(chunks[0].dictionary.to_pylist(), dtype=object)
    if (distinct == "").any():
        return None
    return IntegerCodes(np.concatenate([chunk.indices.to_numpy() for chunk in chunks]), distinct)


def read_values(table: Frame, name: str, *, as_ids: bool = False) -> IdArray:
    """Return a column without missing values; whole decimals as integers if they are ids."""
    column = table.get_column(name)
    kind = column.dtype
    missing = column.is_null()
    if kind == nw.String:
        missing |= column == ""
    empty = np.flatnonzero(missing.fill_null(value=True).to_numpy())
    if empty.size:
        raise ValueError(
            f"Column {name!r} has no value in row(s) {listing(empty)}. Fill in or drop these rows."
        )
    if kind == nw.Decimal:
        decimals = column.to_list()
        if not as_ids:
            return np.array([float(value) for value in decimals])
        whole = all(value == value.to_integral_value() for value in decimals)
        return as_objects([int(value) if whole else str(value) for value in decimals])
    if kind == nw.Binary:
        try:
            return as_objects([value.decode() for value in column.to_list()])
        except UnicodeDecodeError as error:
            raise ValueError(f"Column {name!r} has bytes that are not UTF-8. Decode it.") from error
    values: IdArray = column.to_numpy()
    return values


def as_arrow(ids: Sequence[Any]) -> Any:
    """Return ids as an Arrow array; ids of mixed types become texts."""
    try:
        return pa.array(ids)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if value is None else str(value) for value in ids])
