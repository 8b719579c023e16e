"""Columns of Arrow, coded without a Python object per row."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likeminds import Annotations
from likeminds.data.column_roles import default_verb, dictionary_codes, usual_columns


@given(st.lists(st.text(max_size=2).filter(bool), min_size=1), st.integers(1, 3))
def test_codes_of_arrow_are_those_of_objects(ids, n_chunks):
    column = pa.chunked_array([ids[k::n_chunks] for k in range(n_chunks)], type=pa.string())
    coded = dictionary_codes(column)
    assert list(coded) == column.to_pylist()
    ours, plain = (
        Annotations(users, None, [True] * len(ids), [[1.0]] * len(ids))
        for users in (coded, list(coded))
    )
    assert ours.user_ids.tolist() == plain.user_ids.tolist()
    assert ours.user_codes.tolist() == plain.user_codes.tolist()


def test_texts_with_gaps_are_left_to_who_says_where_they_are():
    assert dictionary_codes(pa.chunked_array([["a", None]])) is None
    assert dictionary_codes(pa.chunked_array([["a", ""]])) is None


@pytest.mark.parametrize(
    ("role", "columns", "found"),
    [
        ("item", ["comment", "vote"], ["comment"]),
        ("item", ["item", "comment"], ["item"]),
        ("user", ["userId"], ["userId"]),
        ("item", ["Movie-ID", "genre"], ["Movie-ID"]),
    ],
)
def test_usual_names_come_before_less_usual_ones(role, columns, found):
    assert usual_columns(role, columns) == found


def test_verbs_follow_from_names_of_labels():
    assert default_verb("Vote") == "agree with"
    assert default_verb(None, "chosen") == "choose"
    assert default_verb("rating") is None
