"""Labels of every convention."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likeminds.data.labels import as_binary, block_medians, count_labels

YES_NO_YES = [True, False, True]


@pytest.mark.parametrize(
    "values",
    [
        [True, False, True],
        [1, 0, 1],
        [1.0, 0.0, 1.0],
        [1, -1, 1],
        np.array([1, 0, 1], dtype=np.uint8),
        np.array([1, -1, 1], dtype=np.float32),
        np.array([True, False, 1], dtype=object),
    ],
)
def test_usual_conventions(values):
    assert as_binary(values).tolist() == YES_NO_YES


@pytest.mark.parametrize(
    ("values", "positive"),
    [
        (["yes", "no", "yes"], "yes"),
        (np.array(["yes", "no", "yes"]), "yes"),
        ([2, 1, 2], 2),
        ([0, 1, 0], 0),
        ([(1, 2), (3, 4), (1, 2)], (1, 2)),
        (["good", 0, "good"], "good"),
    ],
)
def test_two_values_with_the_positive_one(values, positive):
    assert as_binary(values, positive=positive).tolist() == YES_NO_YES


def test_one_value_is_enough_in_a_known_convention():
    assert as_binary([0, 0]).tolist() == [False, False]
    assert as_binary([-1, -1]).tolist() == [False, False]
    assert as_binary([1, 1]).tolist() == [True, True]
    assert as_binary([0, 0], positive=1).tolist() == [False, False]
    assert as_binary([False], positive=True).tolist() == [False]
    assert as_binary(["yes"], positive="yes").tolist() == [True]


def test_ratings():
    assert as_binary([1, 3, 5], threshold=3).tolist() == [False, False, True]
    assert as_binary([1.0, 3.0, 5.0], threshold=np.float32(2.5)).tolist() == [False, True, True]
    people = np.array([0, 0, 0, 1, 1])
    labels = as_binary([1, 2, 3, 9, 9], threshold="median", within=[people])
    assert labels.tolist() == [False, False, True, False, False]


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([1, 2, 3], {}, r"3 values \(1, 2, 3\).*positive=.*threshold="),
        ([1, 2], {}, r"2 values \(1, 2\)"),
        ([-1, 0, 1], {}, r"3 values \(-1, 0, 1\)"),
        (["1", "0"], {}, r"2 values \('0', '1'\)"),
        (["no"], {}, "the value 'no'"),
        (["a", "b", "c"], {"positive": "a"}, "but positive= needs two"),
        (["a", "b"], {"positive": "yes"}, "positive='yes' does not occur"),
        (["no"], {"positive": "yes"}, "positive='yes' does not occur"),
        ([0, 1], {"positive": "yes"}, "positive='yes' does not occur"),
        ([0, 1], {"positive": 1, "threshold": 0}, "not both"),
        ([0, 1], {"threshold": "mean"}, "a number or \"median\", not 'mean'"),
        ([0, 1], {"threshold": np.nan}, 'a number or "median", not nan'),
        ([0, 1], {"threshold": True}, 'a number or "median", not True'),
        (["low", "high"], {"threshold": 3}, "labels must be numbers"),
        ([1.0, np.nan], {"threshold": 3}, r"missing.*row\(s\) 1"),
        ([1.0, np.inf], {"threshold": 3}, r"infinity in row\(s\) 1"),
        ([1.0, np.nan], {}, r"missing.*row\(s\) 1"),
        ([1, None], {}, r"missing.*row\(s\) 1"),
        ([[0, 1]], {}, "labels"),
    ],
)
def test_what_is_no_label_is_refused(values, options, message):
    with pytest.raises(ValueError, match=message):
        as_binary(values, **options)


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 1), st.floats(-100, 100)),
        min_size=1,
        max_size=50,
    )
)
def test_medians_are_what_a_loop_gives(rows):
    people, attributes, ratings = (np.array(column) for column in zip(*rows, strict=True))
    for within in ([people], [people, attributes]):
        keys = np.stack(within, axis=1)
        expected = [
            rating > np.median(ratings[(keys == key).all(axis=1)])
            for rating, key in zip(ratings, keys, strict=True)
        ]
        assert as_binary(ratings, threshold="median", within=within).tolist() == expected


def test_medians_of_blocks_with_gaps_in_their_numbers():
    medians = block_medians(np.array([1.0, 2.0, 7.0]), np.array([900, 900, 4]))
    assert medians.tolist() == [1.5, 1.5, 7.0]


def test_counts():
    assert count_labels(np.array([1, 1, 0]), np.array([True, True, False])).tolist() == [
        [1, 0],
        [0, 2],
    ]
