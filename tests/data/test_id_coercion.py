"""The same id, written in two ways."""

import numpy as np
import pytest

from likeminds.data.identifiers import coerce_ids


def texts(*values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@pytest.mark.parametrize(
    ("ids", "known", "found"),
    [
        (texts("7", "9"), np.array([7, 8]), [7, 9]),
        (np.array([7, 9]), texts("7", "8"), ["7", "9"]),
        (np.array([7.0, 9.5]), texts("7", "8"), ["7", "9.5"]),
        (texts("7.0", "7.5"), np.array([7.0, 7.5]), [7.0, 7.5]),
        (texts("7"), np.array([7.0]), [7.0]),
        (texts("zoe", "7"), np.array([7, 8]), ["zoe", 7]),
        (texts("007", "7"), texts("7", "8"), ["007", "7"]),
        (np.array([70]), np.array([7]), [70]),
        (texts("-3", "-03x"), np.array([-3]), [-3, "-03x"]),
        (texts(10**20, 10**20 + 1), texts(str(10**20)), [str(10**20), str(10**20 + 1)]),
        (texts("7"), texts(("a", 1), ("b", 2)), ["7"]),
        (texts("7", 7), texts("7", 7), ["7", 7]),
        (texts("7"), texts(), ["7"]),
    ],
)
def test_ids_are_written_as_those_that_are_known(ids, known, found):
    assert coerce_ids(ids, known, "users").tolist() == found


@pytest.mark.parametrize(
    ("ids", "known"),
    [
        (texts("007"), np.array([7])),
        (texts("7", "007"), np.array([7])),
        (texts("1e3"), np.array([1000])),
        (texts("7.0"), np.array([7])),
        (np.array([7]), texts("007")),
        (np.array([7]), texts("7", "007")),
        (texts("7.0", "7"), np.array([7.0])),
    ],
)
def test_what_may_be_somebody_known_is_refused(ids, known):
    with pytest.raises(ValueError):
        coerce_ids(ids, known, "users")


def test_integers_stay_an_array_of_integers():
    assert coerce_ids(texts("7", "9"), np.array([7, 8]), "users").dtype.kind == "i"
