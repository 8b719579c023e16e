"""Wide tables of choices become long ones."""

import pandas as pd
import pytest

from likeminds import Annotations, wide_to_long

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
