"""Which rows were shown together: their groups, and what these are called."""

from typing import Any

import numpy as np

from likeminds._util.array_types import IdArray, Index
from likeminds._util.checks import both_or_neither
from likeminds.data.id_coercion import write_as_known
from likeminds.data.identifiers import encode, encode_pairs, join_codes
from likeminds.data.integer_coding import CodedLabels


def named_choice_sets(people: Index, codes: Index | None, ids: IdArray | None) -> dict[str, Any]:
    """Return the group of each row and what it is called; one id is a group of each person."""
    if codes is None or ids is None:
        return {"choice_set_codes": None, "choice_set_ids": None}
    groups = encode_pairs(people, codes)
    called = np.zeros(int(groups.max()) + 1, dtype=np.intp)
    called[groups] = codes
    return {"choice_set_codes": groups, "choice_set_ids": ids[called]}


def have_choice_sets(first: CodedLabels, second: CodedLabels) -> bool:
    """Say whether there are groups; refuse them on one side only, unless they have no names.

    Those are comparisons and choices; a column of groups may have been forgotten.
    """
    if first.choice_set_ids is None and second.choice_set_ids is None:
        return first.choice_set_codes is not None or second.choice_set_codes is not None
    return both_or_neither(first.choice_set_codes, second.choice_set_codes, "choice_sets")


def join_choice_sets(people: Index, first: CodedLabels, second: CodedLabels) -> dict[str, Any]:
    """Return the groups of the rows of both; where it is not known what they are called, apart.

    Rows without a group are a group each.
    """
    if first.choice_set_ids is None or second.choice_set_ids is None:
        ours, theirs = (
            np.arange(len(part)) if part.choice_set_codes is None else part.choice_set_codes
            for part in (first, second)
        )
        apart = np.concatenate([ours, theirs + int(ours.max()) + 1])
        return {"choice_set_codes": apart, "choice_set_ids": None}
    assert first.choice_set_codes is not None
    assert second.choice_set_codes is not None
    codes, called = encode(second.choice_set_ids, "choice_sets")
    known = encode(first.choice_set_ids, "choice_sets")[1]
    there = codes[second.choice_set_codes], write_as_known(called, known, "choice_sets")
    codes, ids = join_codes((first.choice_set_codes, first.choice_set_ids), there)
    return named_choice_sets(people, codes, ids)
