"""Which rows were shown together: their groups, and what these are called."""

from typing import Any

import numpy as np

from likeminds._util.array_types import IdArray, Index
from likeminds._util.checks import both_or_neither
from likeminds.data.id_coercion import write_as_known
from likeminds.data.identifiers import encode, encode_pairs, join_codes
from likeminds.data.integer_coding import CodedLabels


def named_groups(people: Index, codes: Index | None, ids: IdArray | None) -> dict[str, Any]:
    """Return the group of each row and what it is called; one id is a group of each person."""
    if codes is None or ids is None:
        return {"group_codes": None, "group_ids": None}
    groups = encode_pairs(people, codes)
    called = np.zeros(int(groups.max()) + 1, dtype=np.intp)
    called[groups] = codes
    return {"group_codes": groups, "group_ids": ids[called]}


def have_groups(first: CodedLabels, second: CodedLabels) -> bool:
    """Say whether there are groups; refuse them on one side only, unless they have no names.

    Those are comparisons and choices; a column of groups may have been forgotten.
    """
    if first.group_ids is None and second.group_ids is None:
        return first.group_codes is not None or second.group_codes is not None
    return both_or_neither(first.group_codes, second.group_codes, "groups")


def join_groups(people: Index, first: CodedLabels, second: CodedLabels) -> dict[str, Any]:
    """Return the groups of the rows of both; where it is not known what they are called, apart.

    Rows without a group are a group each.
    """
    if first.group_ids is None or second.group_ids is None:
        ours, theirs = (
            np.arange(len(part)) if part.group_codes is None else part.group_codes
            for part in (first, second)
        )
        apart = np.concatenate([ours, theirs + int(ours.max()) + 1])
        return {"group_codes": apart, "group_ids": None}
    assert first.group_codes is not None
    assert second.group_codes is not None
    codes, called = encode(second.group_ids, "groups")
    known = encode(first.group_ids, "groups")[1]
    there = codes[second.group_codes], write_as_known(called, known, "groups")
    codes, ids = join_codes((first.group_codes, first.group_ids), there)
    return named_groups(people, codes, ids)
