"""Labels of every convention."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likeminds.data.label_parsing import (
    LabelReading,
    block_medians,
    count_labels,
    join_readings,
    passes_among,
    read_labels,
)

YES_NO_YES = [True, False, True]


def as_binary(values, **options):
    return read_labels(values, **options)[0]


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
    assert as_binary(["no"]).tolist() == as_binary(["no"], positive="yes").tolist() == [False]


@pytest.mark.parametrize(
    "values",
    [
        ["yes", "no", "YES"],
        [" Agree", "disagree", "agree"],
        ["TRUE", "False", "true"],
        ["1", "0", "1"],
        ["+1", "-1", "+1"],
    ],
)
def test_words_for_yes_and_no_in_any_spelling(values):
    binary, reading = read_labels(values)
    assert binary.tolist() == YES_NO_YES
    assert reading.positive.lower() == values[-1].lower()
    again, _ = read_labels([value.upper() for value in values], known=reading)
    assert again.tolist() == YES_NO_YES


def test_the_positive_value_may_be_spelt_otherwise():
    assert as_binary(["Rude", "fine", "Rude"], positive="rude").tolist() == YES_NO_YES
    assert as_binary([3, 1, 3], positive="3").tolist() == YES_NO_YES
    assert as_binary(["no", "yes", "No"], positive="NO").tolist() == YES_NO_YES


def test_ratings():
    assert as_binary([1, 3, 5], threshold=3).tolist() == [False, False, True]
    assert as_binary([1.0, 3.0, 5.0], threshold=np.float32(2.5)).tolist() == [False, True, True]
    users = np.array([0, 0, 0, 1, 1])
    labels = as_binary([1, 2, 3, 9, 9], threshold="median", within=[users])
    assert labels.tolist() == [False, False, True, False, False]


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([1, 2, 3], {}, r"3 values \(1, 2, 3\).*positive=.*threshold="),
        ([1, 2], {}, r"2 values \(1, 2\)"),
        ([-1, 0, 1], {}, r"3 values \(-1, 0, 1\)"),
        (["bad"], {}, "the value 'bad'"),
        (["agree", "disagree", "pass"], {}, "3 values"),
        (["yes", "false"], {}, "2 values"),
        (["a", "b", "c"], {"positive": "a"}, "but positive= needs two"),
        (["a", "b"], {"positive": "yes"}, "positive='yes' does not occur"),
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
    users, attributes, ratings = (np.array(column) for column in zip(*rows, strict=True))
    for within in ([users], [users, attributes]):
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


@pytest.mark.parametrize(
    ("values", "options", "reading"),
    [
        ([1, 0], {}, LabelReading(1, 0)),
        ([1.0, -1.0], {}, LabelReading(1, -1)),
        ([1, 1], {}, LabelReading(1)),
        ([0, 0], {}, LabelReading(1, 0)),
        ([2, 1], {"positive": 2}, LabelReading(2, 1)),
        (["good", "bad"], {"positive": "good"}, LabelReading("good", "bad")),
        ([1, 5], {"threshold": 3}, LabelReading(threshold=3)),
        ([1, 5], {"threshold": "median"}, LabelReading(threshold="median")),
        ([True, False], {}, None),
    ],
)
def test_how_labels_were_read_is_known(values, options, reading):
    assert read_labels(values, **options)[1] == reading


@pytest.mark.parametrize(
    ("values", "known", "binary"),
    [
        ([1, 1], LabelReading(threshold=3.0), [False, False]),
        ([1, 1], LabelReading(2, 1), [False, False]),
        (["2", "1"], LabelReading(2, 1), [True, False]),
        ([2.0, 1.0], LabelReading("2", "1"), [True, False]),
        ([True, False], LabelReading(1, 0), [True, False]),
        ([1, -1], LabelReading(1), [True, False]),
        (["good", "poor"], LabelReading("good"), [True, False]),
        (["bad"], LabelReading("good", "bad"), [False]),
    ],
)
def test_labels_are_read_as_before(values, known, binary):
    found, reading = read_labels(values, known=known)
    assert found.tolist() == binary
    assert join_readings(known, reading) == reading


@pytest.mark.parametrize(
    ("values", "known", "options", "message"),
    [
        ([3, 1], LabelReading(2, 1), {}, "labels has 2 values .1, 3., which does not fit"),
        ([1, -1], LabelReading(1, 0), {}, "does not fit the reading of earlier labels: 1 is posi"),
        ([1, 2], LabelReading(1), {}, "does not fit"),
        (["a", "b"], LabelReading("good"), {}, "does not fit"),
        ([True, False], LabelReading(threshold=3.0), {}, "true and false, which are not ratings"),
        (["x"], LabelReading(threshold=3.0), {}, "labels must be numbers"),
        ([1, 5], LabelReading(threshold=3.0), {"threshold": 4}, "threshold=4 contradicts"),
        ([1, 5], LabelReading(threshold=3.0), {"positive": 5}, "positive=5 contradicts"),
        ([1, 5], LabelReading(1, 0), {"threshold": 4}, "earlier labels: 1 is positive"),
        (["a", "b"], LabelReading("a", "b"), {"positive": "b"}, "positive='b' contradicts"),
    ],
)
def test_labels_that_do_not_fit_are_refused(values, known, options, message):
    with pytest.raises(ValueError, match=message):
        read_labels(values, known=known, **options)


def test_two_ways_of_reading_do_not_go_together():
    assert join_readings(None, LabelReading(1, 0)) == LabelReading(1, 0)
    assert join_readings(LabelReading("2", "1"), LabelReading(2)) == LabelReading("2", "1")
    for other in (LabelReading(1, -1), LabelReading(threshold=3.0), LabelReading("yes", "no")):
        with pytest.raises(ValueError):
            join_readings(LabelReading(1, 0), other)


@pytest.mark.parametrize(
    ("labels", "votes", "passes"),
    [
        (["Agree", "Pass", "Disagree"], False, ["Pass"]),
        (["pass", "fail"], False, []),
        ([-1, 0, 1], False, []),
        ([-1, 0, 1], True, [0]),
    ],
)
def test_passes_are_told_from_answers(labels, votes, passes):
    assert passes_among(labels, votes=votes) == passes
