"""Wide tables of labels and of choices become long ones."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from likeminds import Annotations, wide_to_long
from likeminds.data.wide import is_wide

WIDE = pd.DataFrame(
    {
        "id": [7, 7, 8],
        "TRAIN_AV": [1, 1, 1],
        "CAR_AV": [1, 0, 1],
        "TRAIN_TT": [30, 40, 20],
        "CAR_TT": [20, 0, 25],
        "TRAIN_WAIT": [5, 6, 7],
        "CHOICE": [2, 1, 1],
        "TRAIN_": [0, 0, 0],
    }
)
OPTIONS = {
    "alternatives": {1: "TRAIN", 2: "CAR"},
    "choice": "CHOICE",
    "columns": "{alternative}_{feature}",
    "user": "id",
}


def test_a_row_per_alternative_that_was_there():
    wide = WIDE.drop(columns=["TRAIN_"]).rename(columns=lambda c: c.replace("_AV", "AV"))
    long = wide_to_long(wide, availability="{alternative}AV", **OPTIONS)
    assert long.column_names == ["user", "choice_set", "alternative", "label", "TT", "WAIT"]
    assert long["user"].to_pylist() == [7, 7, 7, 8, 8]
    assert long["choice_set"].to_pylist() == [0, 0, 1, 2, 2]
    assert long["alternative"].to_pylist() == ["TRAIN", "CAR", "TRAIN", "TRAIN", "CAR"]
    assert long["label"].to_pylist() == [0, 1, 1, 1, 0]
    assert long["TT"].to_pylist() == [30, 20, 40, 20, 25]
    assert long["WAIT"].to_pylist() == [5, 0, 6, 7, 0]
    said = Annotations.from_frame(long)
    assert said.feature_names == ("TT", "WAIT", "alternative: TRAIN")
    assert said.X[:, 2].tolist() == [1, 0, 1, 1, 0]
    assert said.choice_set_codes.tolist() == [0, 0, 1, 2, 2]


def test_names_of_columns_are_found():
    wide = WIDE.drop(columns=["TRAIN_"])
    named = wide.assign(CHOICE=["CAR", "TRAIN", "TRAIN"])
    expected = wide_to_long(wide, **OPTIONS)
    assert wide_to_long(wide, alternatives={1: "TRAIN", 2: "CAR"}) == expected
    found = wide_to_long(named.rename(columns={"CHOICE": "mode"}))
    assert found.sort_by([("choice_set", "ascending"), ("alternative", "descending")]) == expected


@pytest.mark.parametrize(
    ("columns", "wide"),
    [
        ({"choice": ["a", "b"], "price.a": [1, 2], "price.b": [2, 1]}, True),
        ({"choice": [1, 2], "p1": [1, 2], "p2": [2, 1]}, True),
        ({"choice": [0, 1], "x0": [1, 2], "x1": [2, 1]}, False),
        ({"rating": [1, 2], "x1": [1, 2], "x2": [2, 1]}, False),
        ({"choice": ["a", "b"], "price.a": [1, 2], "item": [2, 1]}, False),
        ({"choice": ["a", "b"], "price.a": [1, 2], "cost.b": [2, 1]}, False),
    ],
)
def test_numbered_features_are_not_alternatives(columns, wide):
    assert is_wide(pd.DataFrame({"user": ["ann", "bob"], **columns})) == wide


def test_alternatives_that_nobody_chose_are_found():
    wide = pd.DataFrame(
        {"id": [1], "choice": ["a"], "p.a": [1], "p.b": [2], "q.a": [3], "q.b": [4]}
    )
    assert wide_to_long(wide)["alternative"].to_pylist() == ["a", "b"]
    assert wide_to_long(wide.assign(**{"p.c": 5}))["alternative"].to_pylist() == ["a", "b"]


def test_weights_of_choices_stay():
    wide = WIDE.drop(columns=["TRAIN_"]).assign(weight=[1.0, 2.0, 0.5])
    assert wide_to_long(wide, **OPTIONS)["weight"].to_pylist() == [1, 1, 2, 0.5, 0.5]


def test_what_was_chosen_was_there():
    wide = WIDE.assign(CAR_AV=[0, 0, 1])
    with pytest.raises(ValueError):
        wide_to_long(wide, availability="{alternative}_AV", **OPTIONS)


def test_a_wide_table_is_not_taken_for_grades():
    wide = pd.DataFrame({"ID": [1, 1, 2], "GROUP": 2, "CAR_TT": 3.0, "CHOICE": [1, 2, 3]})
    with pytest.raises(ValueError, match="wide_to_long"):
        Annotations.from_frame(wide)
    rated = Annotations.from_frame(wide, user="ID", label="CHOICE", choice_set="CAR_TT")
    assert rated.grades.tolist() == [1, 2, 3]


class TestFromMatrix:
    GAPS = np.array([[1.0, np.nan, 0.0], [0.0, 1.0, np.nan]])

    @staticmethod
    def rows(annotations):
        columns = annotations.users, annotations.items, annotations.outcomes
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def test_nan_is_no_label(self):
        read = Annotations.from_matrix(self.GAPS, ["ann", "bob"], list("xyz"))
        wanted = [("ann", "x", True), ("ann", "z", False), ("bob", "x", False), ("bob", "y", True)]
        assert self.rows(read) == wanted

    @pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
    def test_stored_zeros_are_labels(self, kind):
        entries = sparse.coo_array(([1, 0, 1], ([0, 0, 2], [0, 2, 1])), shape=(3, 3))
        read = Annotations.from_matrix(kind(entries))
        assert sorted(self.rows(read)) == [(0, 0, True), (0, 2, False), (2, 1, True)]

    def test_entries_stored_twice_are_duplicates(self):
        twice = sparse.coo_array(([1, 1, 0], ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
        with pytest.raises(ValueError, match="duplicates"):
            Annotations.from_matrix(twice, duplicates="error")

    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
    def test_columns_of_a_wide_frame_are_items(self, make):
        frame = make({"worker": ["ann", "bob"], "x": ["yes", None], "y": ["no", "yes"]})
        wanted = [("ann", "x", True), ("ann", "y", False), ("bob", "y", True)]
        assert self.rows(Annotations.from_matrix(frame)) == wanted
        assert self.rows(Annotations.from_matrix(frame, users="worker")) == wanted

    def test_users_are_in_the_index_of_pandas(self):
        frame = pd.DataFrame({"x": [4, 2], "y": [5, 1]}, index=pd.Index(["ann", "bob"], name="who"))
        read = Annotations.from_matrix(frame, threshold=3)
        assert self.rows(read)[0] == ("ann", "x", True)
        assert read.user_ids.tolist() == ["ann", "bob"]
        assert self.rows(Annotations.from_matrix(frame, ["a", "b"], threshold=3))[0][0] == "a"

    def test_features_of_an_array_belong_to_columns(self):
        read = Annotations.from_matrix(self.GAPS[:, [0, 2]], features=[[1.0], [2.0]])
        assert read.X.ravel().tolist() == [1.0, 2.0, 1.0]
        by_id = Annotations.from_matrix(
            self.GAPS,
            items=list("xyz"),
            features={"z": [3.0], "x": [1.0], "y": [2.0], "new": [9.0]},
        )
        assert by_id.X.ravel().tolist() == [1.0, 3.0, 1.0, 2.0]
        assert by_id.n_items == 4

    def test_grades_of_users_with_covariates(self):
        ratings = np.array([[5, 3], [1, 2]])
        known = {0: {"age": 30}, 1: {"age": 40}}
        read = Annotations.from_matrix(ratings, grades=True, user_features=known)
        assert read.grades.tolist() == [5, 3, 1, 2]
        assert read.user_features.names == ("age",)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"matrix": [1, 0]}, "users by items"),
            ({"matrix": GAPS, "users": ["ann"]}, "users"),
            ({"matrix": GAPS, "items": ["x", "x", "y"]}, "distinct"),
            ({"matrix": GAPS * np.nan}, "no annotations"),
            ({"matrix": GAPS, "features": [[1.0]]}, "features"),
        ],
    )
    def test_refused(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            Annotations.from_matrix(**arguments)
