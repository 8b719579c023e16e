"""A data frame as the arguments of Annotations, so that it can go before these are made of them."""

from typing import Any

from likeminds._util.frame_backend import kind_of
from likeminds.data.column_roles import LABEL_ROLES, default_verb
from likeminds.data.covariates import Covariates
from likeminds.data.tables import FrameOptions, read_columns

# What the constructor takes as it is.
_AS_GIVEN = ("positive", "threshold", "reading")


def arguments_of(frame: Any, options: FrameOptions) -> tuple[dict[str, Any], Any]:
    """Return the arguments of the constructor, and the kind of the frame.

    They have copies of all but a few columns: whoever holds no other reference to a large frame
    gets its memory back, column by column.
    """
    kind, held = kind_of(frame), [frame]
    del frame
    given: dict[str, Any] = dict(options)
    names = {role: given.get(role) for role in LABEL_ROLES}
    columns = read_columns(held.pop(), names, given)
    columns |= {name: given.get(name) for name in _AS_GIVEN}
    if any(given.get(name) is not None for name in ("grades", "positive", "threshold")):
        columns["grades"] = given.get("grades")
    known = given.get("user_features")
    columns["user_features"] = None if known is None else Covariates.read(known, given.get("user"))
    columns["verb"] = given.get("verb") or default_verb(given.get("positive")) or columns["verb"]
    columns["duplicates"] = given.get("duplicates", "keep")
    return columns, kind
