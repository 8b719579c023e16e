"""Columns of Arrow, coded without a Python object per row."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from likeminds import Annotations
from likeminds.data.column_roles import dictionary_codes


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
