"""Bad input is refused in one voice."""

import numpy as np
import pytest

from likeminds import Annotations, HierarchicalRanker, ThreeLevelRanker
from likeminds._util.checks import (
    as_matrix,
    as_names,
    as_rows,
    as_vector,
    as_weights,
    both_or_neither,
    close_matches,
    did_you_mean,
    listing,
    read_only,
    same_length,
)


def test_listing_counts_the_rest():
    assert listing([1, 2]) == "1, 2"
    assert listing(np.arange(5)) == "0, 1, 2, 3, 4"
    assert listing(range(6)) == "0, 1, 2, 3, 4 and 1 more"


def test_matrix_keeps_single_precision_and_does_not_copy():
    for dtype in (np.float32, np.float64):
        matrix = np.ones((2, 3), dtype=dtype)
        assert as_matrix(matrix, "X") is matrix
    for other in (np.ones((2, 2), int), np.ones((2, 2), bool), [[1, 2], [3, 4.5]]):
        assert as_matrix(other, "X").dtype == np.float64


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 2.0], "X must be two-dimensional.*1 dimension"),
        (np.ones((0, 2)), r"X is empty: it has shape \(0, 2\)"),
        (np.ones((2, 0)), r"X is empty: it has shape \(2, 0\)"),
        ([[1.0, np.nan], [1.0, 1.0], [np.inf, 0.0]], r"NaN or infinity in row\(s\) 0, 2"),
        ([[np.inf, -np.inf]], r"NaN or infinity in row\(s\) 0"),
        ([[1.0], [1.0, 2.0]], "X must be numbers"),
        ([["a"]], "X must be numbers"),
        ([[None]], r"NaN or infinity in row|must be numbers"),
        ([[1j]], "Complex data not supported: X"),
    ],
)
def test_bad_matrices(values, message):
    with pytest.raises(ValueError, match=message):
        as_matrix(values, "X")


def test_huge_numbers_are_finite():
    for huge in (np.full((3, 2), np.finfo(np.float32).max), np.full((3, 2), 1e100)):
        assert as_matrix(huge, "X") is huge


def test_vectors():
    assert as_vector([1, 2], "v", length=2).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError):
        as_vector([1, 2], "v", length=3)
    with pytest.raises(ValueError):
        as_vector([[1, 2]], "v")
    with pytest.raises(ValueError):
        as_vector([1, np.nan], "v")


def test_weights():
    assert as_weights(None, 3) is None
    assert as_weights([0, 1], 2).tolist() == [0.0, 1.0]
    with pytest.raises(ValueError):
        as_weights([1, -1], 2)
    with pytest.raises(ValueError):
        as_weights([0, 0], 2)


def test_same_length():
    same_length(a=[1], b=[2])
    with pytest.raises(ValueError):
        same_length(a=[1], b=[1, 2])


def test_names():
    assert as_names(None, 2) == ("x0", "x1")
    assert as_names([0, "b"], 2) == ("0", "b")
    with pytest.raises(ValueError):
        as_names(["a", "b"], 3)
    with pytest.raises(ValueError):
        as_names(["a", "b", "a"], 3)


def test_rows():
    for rows in (np.array([True, False, True]), [0, 2], slice(0, 3, 2), np.array([0, 2], np.uint8)):
        assert as_rows(rows, 3).tolist() == [0, 2]
    assert as_rows([], 3).tolist() == []
    with pytest.raises(IndexError):
        as_rows([3], 3)


def test_small_helpers():
    assert both_or_neither([], [], "groups")
    assert not both_or_neither(None, None, "groups")
    with pytest.raises(ValueError):
        both_or_neither([], None, "groups")


def test_read_only_leaves_the_owner_alone():
    mine = np.zeros(2)
    locked = read_only(mine)
    assert not locked.flags.writeable
    assert mine.flags.writeable
    assert read_only(locked) is locked
    assert read_only("text") == "text"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_turned", [False, True])
def test_large_matrices_are_looked_at_everywhere(dtype, is_turned):
    shape = (4, 300_000)
    matrix = np.ones(shape[::-1], dtype=dtype).T if is_turned else np.ones(shape, dtype=dtype)
    matrix[1, 7] = 1e30  # its square is beyond single precision
    assert as_matrix(matrix, "X") is matrix
    for bad in (np.nan, np.inf, -np.inf):
        matrix[3, -1] = bad
        with pytest.raises(ValueError):
            as_matrix(matrix, "X")


class TestRange:
    def test_among_many(self):
        matrix = np.ones((4, 300_000))
        matrix[2, 5] = -1e101
        with pytest.raises(ValueError):
            as_matrix(matrix, "X")

    @pytest.mark.parametrize("value", [1e101, -1e160, 1e308])
    def test_numbers_without_room_for_squares(self, value):
        with pytest.raises(ValueError):
            as_matrix([[1.0], [value]], "X")
        with pytest.raises(ValueError):
            as_vector([value], "y")

    def test_the_largest_numbers_there_are_room_for(self):
        assert as_matrix([[1e100, -1e100]], "X").shape == (1, 2)
        assert as_matrix(np.full((1, 1), 3e38, np.float32), "X").dtype == np.float32

    def test_whole_numbers_that_are_no_doubles(self):
        with pytest.raises(ValueError):
            as_matrix([[10**400]], "X")

    @pytest.mark.parametrize("value", [1e300, 2e12, 1e-300])
    def test_weights_that_drown_the_others(self, value):
        with pytest.raises(ValueError):
            as_weights([1.0, value], 2)
        assert as_weights([0.0, 1e12, 1e-100], 3) is not None

    def test_every_way_in_says_the_same(self):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
        users = np.repeat([0, 1], 20)
        ranker = HierarchicalRanker().fit(X, y, users)
        large = X.copy()
        large[3] = 1e200
        for refused in (
            lambda: HierarchicalRanker().fit(large, y, users),
            lambda: ThreeLevelRanker().fit(large, y, users),
            lambda: Annotations(users=users, items=np.arange(40), labels=y, features=large),
            lambda: ranker.decision_function(large),
            lambda: ranker.newcomer(large, y, users),
            lambda: ranker.newcomer(X, y, users).decision_function(large, users),
        ):
            with pytest.raises(ValueError, match=r"1e\+100"):
                refused()


def test_similar_names_are_suggested():
    assert close_matches("Matrix (1999)", ["Heat (1995)", "Matrix, The (1999)"]) == [
        "Matrix, The (1999)"
    ]
    assert close_matches("anne", ["Ann", "bob"]) == ["Ann"]
    assert did_you_mean("prize", ["price", "local company"]) == " Did you mean price?"
    assert did_you_mean("prize", ["bob"]) == ""
