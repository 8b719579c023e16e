"""Ids of any kind."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likeminds.data.identifiers import (
    as_distinct,
    as_id_array,
    compact,
    encode,
    encode_pairs,
    join_codes,
    join_ids,
    lookup,
)

any_ids = st.one_of(
    st.lists(st.integers(-5, 5)),
    st.lists(st.integers(-(2**70), 2**70)),
    st.lists(st.text(max_size=2)),
    st.lists(st.tuples(st.integers(0, 3), st.text(max_size=1))),
    st.lists(st.one_of(st.integers(0, 3), st.text(max_size=1), st.tuples(st.booleans()))),
    st.lists(st.floats(-2, 2)),
)


@given(any_ids)
def test_codes_lead_back_to_the_ids(ids):
    codes, distinct = encode(ids, "users")
    assert [distinct.tolist()[code] for code in codes] == ids
    assert len(distinct) == len(set(ids))
    assert lookup(ids, distinct, "users").tolist() == codes.tolist()


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_integers_are_sorted(ids):
    codes, distinct = encode(np.array(ids), "users")
    expected, inverse = np.unique(ids, return_inverse=True)
    np.testing.assert_array_equal(distinct, expected)
    np.testing.assert_array_equal(codes, inverse)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.uint64])
def test_every_integer_type_keeps_its_values(dtype):
    ends = np.iinfo(dtype)
    for values in ([ends.min, ends.max], [ends.max - 1, ends.max]):
        ids = np.tile(np.array(values, dtype=dtype), 100)
        codes, distinct = encode(ids, "users")
        assert distinct.tolist() == values
        assert distinct.dtype == dtype
        np.testing.assert_array_equal(distinct[codes], ids)


@pytest.mark.parametrize("ids", [[True, False, True], [True, True], [False]])
def test_true_and_false_are_coded_as_any_others(ids):
    codes, distinct = encode(np.array(ids)[::-1], "labels")
    expected = np.unique(np.array(ids)[::-1], return_inverse=True)
    assert distinct.dtype == np.bool_
    np.testing.assert_array_equal(distinct, expected[0])
    np.testing.assert_array_equal(codes, expected[1])


def test_ids_that_cannot_be_compared_stay_in_order():
    ids = [1, -1, 0, "", (2,), 1]
    codes, distinct = encode(ids, "users")
    assert distinct.tolist() == [1, -1, 0, "", (2,)]
    assert codes.tolist() == [0, 1, 2, 3, 4, 0]


def test_whole_numbers_are_not_rounded():
    ids = [2**63 + 1, -1]
    assert encode(ids, "users")[1].tolist() == [-1, 2**63 + 1]


@pytest.mark.parametrize(
    "column",
    [
        np.array(["b", "a"]),
        np.array(["b", "a"], dtype=np.dtypes.StringDType()),
        pd.Series(["b", "a"]),
        pd.Series(["b", "a"], dtype="category"),
        pl.Series(["b", "a"]),
        pa.chunked_array([["b", "a"]]),
        iter(["b", "a"]),
    ],
)
def test_columns_of_text(column):
    codes, distinct = encode(column, "users")
    assert codes.tolist() == [1, 0]
    assert distinct.tolist() == ["a", "b"]
    assert all(type(text) is str for text in distinct)


@pytest.mark.parametrize(
    "ids",
    [
        ["a", None],
        [1.0, float("nan")],
        ["a", np.float32("nan")],
        pd.Series([1, pd.NA], dtype="Int64"),
        pd.Series(["a", pd.NA], dtype=object),
        pl.Series([1, None]),
        np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
    ],
)
def test_missing_ids_are_refused(ids):
    with pytest.raises(ValueError):
        as_id_array(ids, "users")


def test_what_is_no_list_of_ids_is_refused():
    for ids in ("ann", b"ann", None, 3):
        with pytest.raises(TypeError):
            as_id_array(ids, "users")
    with pytest.raises(ValueError):
        as_id_array(np.ones((2, 2)), "users")
    with pytest.raises(ValueError):
        encode([[1], [2, 3]], "users")


def test_no_ids():
    for ids in ([], np.array([], dtype=int), np.array([])):
        codes, distinct = encode(ids, "users")
        assert len(codes) == len(distinct) == 0


def test_distinct_ids():
    assert as_distinct(["b", "a"], "item_ids").tolist() == ["b", "a"]
    with pytest.raises(ValueError):
        as_distinct([3, 1, 2, 1, 3], "item_ids")


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9))))
def test_pairs(pairs):
    columns = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    codes = encode_pairs(columns[:, 0], columns[:, 1])
    distinct = sorted(set(pairs))
    assert [distinct[code] for code in codes] == pairs


@given(st.lists(st.integers(0, 20), min_size=1), st.sampled_from([21, 10_000]))
def test_compact(codes, size):
    renumbered, kept = compact(np.array(codes), size)
    assert kept[renumbered].tolist() == codes
    assert kept.tolist() == sorted(set(codes))


@given(any_ids, any_ids)
def test_join(first, second):
    codes, distinct = join_codes(encode(first, "users"), encode(second, "users"))
    assert [distinct.tolist()[code] for code in codes] == first + second


def test_join_keeps_kinds():
    joined = join_ids(np.array([1, 2]), np.array(["a"], dtype=object))
    assert joined.tolist() == [1, 2, "a"]
    assert join_ids(np.array([1], np.int8), np.array([300])).dtype == np.int64
    large = join_ids(np.array([2**63 + 1], np.uint64), np.array([-1]))
    assert large.tolist() == [2**63 + 1, -1]


@given(st.lists(st.floats(-9, 9).map(round).map(float), min_size=1))
def test_whole_decimals_are_coded_as_any_others(ids):
    array = np.array(ids)
    codes, distinct = encode(array, "labels")
    assert distinct.dtype == array.dtype
    assert distinct.tolist() == np.unique(array).tolist()
    assert (distinct[codes] == array).all()
