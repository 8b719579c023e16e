"""Data frames of every kind, and files."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import likeminds
from likeminds import Annotations
from likeminds.data.column_roles import as_frame
from likeminds.data.joining import link_features

# The column of notes is left out, with a warning.
pytestmark = pytest.mark.filterwarnings("ignore:Features:UserWarning")

COLUMNS = {
    "Annotator": ["zoe", "ann", "zoe", "bob"],
    "image": ["c", "a", "a", "b"],
    "answer": ["yes", "no", "no", "yes"],
    "attribute": ["soft", "soft", "warm", "warm"],
    "weight": [1.0, 2.0, 3.0, 4.0],
    "choice_set": [1, 1, 2, 2],
    "size": [1, 2, 3, 4],
    "round": [True, False, True, True],
    "note": ["", "x", "y", "z"],
}
ITEMS = {"image": ["a", "b", "c"], "size": [1, 2, 3], "hue": [0.1, 0.2, 0.3]}
FRAMES = [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table]


def without(columns, *names):
    return {name: values for name, values in columns.items() if name not in names}


@pytest.fixture(params=FRAMES, ids=["pandas", "polars", "lazy", "pyarrow"])
def framed(request):
    return request.param


def check(said: Annotations) -> None:
    assert said.users.tolist() == COLUMNS["Annotator"]
    assert said.items.tolist() == COLUMNS["image"]
    assert said.labels.tolist() == [True, False, False, True]
    assert said.attributes.tolist() == COLUMNS["attribute"]
    assert said.weights.tolist() == COLUMNS["weight"]
    assert said.choice_set_codes.tolist() == [2, 0, 3, 1]


def test_columns_are_found_by_themselves(framed):
    said = Annotations.from_frame(framed(COLUMNS), positive="yes")
    check(said)
    assert said.feature_names == ("size", "round")
    assert said.X.tolist() == [[1, 1], [2, 0], [3, 1], [4, 1]]


def test_second_frame_with_one_row_per_item(framed):
    said = Annotations.from_frame(framed(COLUMNS), positive="yes", features=framed(ITEMS))
    check(said)
    assert said.feature_names == ("size", "hue")
    assert said.features.tolist() == [[1, 0.1], [2, 0.2], [3, 0.3]]
    assert said.X.tolist() == [[3, 0.3], [1, 0.1], [1, 0.1], [2, 0.2]]


def test_columns_can_be_named(framed):
    frame = framed({"a": ["p", "q"], "b": [5, 3], "c": [2, 4], "d": [7.0, 8.0], "e": [1, 2]})
    said = Annotations.from_frame(
        frame, user="a", item="e", label="b", threshold=4, features=["d", "c"]
    )
    assert said.users.tolist() == ["p", "q"]
    assert said.items.tolist() == [1, 2]
    assert said.labels.tolist() == [True, False]
    assert said.X.tolist() == [[7, 2], [8, 4]]
    items = framed({"key": [2, 1], "f": [0.2, 0.1]})
    said = Annotations.from_frame(
        frame, user="a", item="e", label="b", threshold=4, features=items, item_column="key"
    )
    assert said.X.ravel().tolist() == [0.1, 0.2]


def test_the_constructor_takes_frames_as_features(framed):
    features = framed(without(ITEMS, "image"))
    said = Annotations([1, 2], ["c", "a"], [0, 1], features, item_ids=ITEMS["image"])
    assert said.feature_names == ("size", "hue")
    assert said.X.tolist() == [[3, 0.3], [1, 0.1]]
    named = Annotations(
        *([1, 2], ["c", "a"], [0, 1], features),
        item_ids=ITEMS["image"],
        feature_names=["s", "h"],
    )
    assert named.feature_names == ("s", "h")


def test_a_column_is_no_table():
    for column in (pd.Series([1.0, 2.0]), pl.Series([1.0, 2.0])):
        with pytest.raises(ValueError):
            Annotations([1, 2], None, [0, 1], column)


def test_row_numbers_or_rows_must_be_told_apart_when_both_are_possible():
    table = np.arange(6.0).reshape(3, 2)
    arguments = {"users": [0, 1, 2], "labels": [0, 1, 1], "features": table}
    with pytest.raises(ValueError):
        Annotations(items=[2, 1, 0], **arguments)
    by_row = Annotations(items=[2, 1, 0], features_per="row", **arguments)
    by_item = Annotations(items=[2, 1, 0], features_per="item", **arguments)
    np.testing.assert_array_equal(by_row.X, table)
    np.testing.assert_array_equal(by_item.X, table[[2, 1, 0]])
    assert by_row.items.tolist() == by_item.items.tolist() == [2, 1, 0]
    # In order, both readings agree; out of range, only one is possible.
    assert Annotations(items=[0, 1, 2], **arguments).features_per == "row"
    assert Annotations(items=[2, 1, 3], **arguments).features_per == "row"


def test_single_precision_is_kept():
    frame = pl.DataFrame(
        {"p": [1.0, 2.0], "q": [3.0, 4.0]}, schema={"p": pl.Float32, "q": pl.Float32}
    )
    assert link_features(frame, None, 2).features.dtype == np.float32
    mixed = frame.with_columns(pl.col("q").cast(pl.Float64))
    assert link_features(mixed, None, 2).features.dtype == np.float64


def test_without_item_column_each_row_is_an_item():
    said = Annotations.from_frame(pd.DataFrame(without(COLUMNS, "image")), positive="yes")
    assert said.items.tolist() == [0, 1, 2, 3]


def test_optional_columns_that_are_features_are_no_roles():
    frame = pd.DataFrame(COLUMNS)
    said = Annotations.from_frame(frame, positive="yes", features=["weight"])
    assert said.weights is None
    assert said.X.ravel().tolist() == COLUMNS["weight"]


def test_columns_with_numbers_for_names():
    frame = pd.DataFrame({"user": ["a", "b"], "label": [0, 1], 0: [1.0, 2.0], 1: [3.0, 4.0]})
    for features in (None, [0, 1]):
        said = Annotations.from_frame(frame, features=features)
        assert said.feature_names == ("0", "1")
        assert said.X.tolist() == [[1, 3], [2, 4]]


@pytest.mark.parametrize(
    ("drop", "options", "error", "message"),
    [
        ("Annotator", {}, ValueError, "Pass user=.*columns are image, answer"),
        ("answer", {}, ValueError, "Pass label=.*columns are Annotator, image"),
        ("image", {"features": pd.DataFrame(ITEMS)}, ValueError, "Pass item="),
        ("", {"user": "who"}, KeyError, r"user: no such column\(s\) who; the columns are Annot"),
        ("", {"features": ["size", "mass"]}, KeyError, r"features: no such column\(s\) mass"),
        ("", {"features": ["size", "note"]}, ValueError, "columns are not: note"),
        ("image", {"features": []}, ValueError, "features is empty"),
        ("", {"features": ["answer"], "label": "answer"}, ValueError, "label column 'answer' must"),
        (("size", "round", "image"), {}, ValueError, "No numeric column is left"),
        ("", {"features": pd.DataFrame(COLUMNS)}, ValueError, "columns are not: Annotator"),
        ("", {"features": pd.DataFrame({"k": [1]})}, ValueError, "Pass item_column="),
        (
            "",
            {"features": pd.DataFrame(ITEMS), "item_column": "key"},
            KeyError,
            "item_column: no such",
        ),
        ("", {"features": pd.DataFrame({"image": ["a"], "p": [1]})}, ValueError, "for item.* b, c"),
        (
            "",
            {"features": pd.DataFrame({"image": ["a", "a"], "p": [1, 2]})},
            ValueError,
            "must be distinct",
        ),
        ("", {"features": "items.txt"}, ValueError, "not a table that can be read"),
        ("", {"features": "."}, ValueError, "is a folder: name one of its files"),
    ],
)
def test_bad_frames_are_refused(drop, options, error, message):
    frame = pd.DataFrame(without(COLUMNS, *([drop] if isinstance(drop, str) else drop)))
    with pytest.raises(error, match=message):
        Annotations.from_frame(frame, **{"positive": "yes"} | options)


def test_two_candidates_are_not_guessed_between():
    frame = pd.DataFrame({"user": [1], "worker": [2], "label": [1], "x": [0.5]})
    with pytest.raises(ValueError):
        Annotations.from_frame(frame)
    said = Annotations.from_frame(frame, user="worker")
    assert said.users.tolist() == [2]


@pytest.mark.parametrize("column", ["Annotator", "image", "answer", "attribute", "choice_set"])
def test_empty_cells_are_named(framed, column):
    columns = COLUMNS | {column: [None, *COLUMNS[column][1:3], None]}
    with pytest.raises(ValueError):
        Annotations.from_frame(framed(columns), positive="yes")


def test_empty_cells_among_features_are_named(framed):
    columns = COLUMNS | {"size": [1, None, 3, None]}
    with pytest.raises(ValueError):
        Annotations.from_frame(framed(columns), positive="yes")


def test_what_is_no_frame_is_refused():
    with pytest.raises(TypeError):
        as_frame("labels.csv")


def test_text_in_dictionaries_is_text():
    table = pa.table(COLUMNS)
    for name in ("Annotator", "image", "answer", "attribute"):
        position = table.column_names.index(name)
        table = table.set_column(position, name, table[name].dictionary_encode())
    check(Annotations.from_frame(table, positive="yes"))


def test_import_is_light():
    # The package around it brings scikit-learn, which brings pandas where there is one.
    code = """if True:
        import sys, types
        package = types.ModuleType("likeminds")
        package.__path__ = [sys.argv[1]]
        sys.modules["likeminds"] = package
        import likeminds.data.annotations
        print(sorted({"narwhals", "pandas", "polars", "pyarrow", "sklearn"} & set(sys.modules)))
    """
    arguments = [sys.executable, "-c", code, str(Path(likeminds.__file__).parent)]
    result = subprocess.run(arguments, capture_output=True, check=True, text=True)
    assert result.stdout.strip() == "[]"


# Files -------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    for name, columns in {"labels": COLUMNS, "items": ITEMS}.items():
        pa.csv.write_csv(pa.table(columns), tmp_path / f"{name}.csv")
        pa.parquet.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    return tmp_path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_are_read_like_frames(files, ending):
    read = Annotations.from_csv if ending == "csv" else Annotations.from_parquet
    said = read(files / f"labels.{ending}", positive="yes")
    check(said)
    assert said.X.tolist() == [[1, 1], [2, 0], [3, 1], [4, 1]]
    for other in ("items.csv", "items.parquet"):
        said = read(str(files / f"labels.{ending}"), positive="yes", features=files / other)
        check(said)
        assert said.X.tolist() == [[3, 0.3], [1, 0.1], [1, 0.1], [2, 0.2]]


def test_the_row_index_of_pandas_is_no_feature(tmp_path):
    frame = pd.DataFrame(COLUMNS)[::-1]
    frame.to_csv(tmp_path / "a.csv")
    frame.to_parquet(tmp_path / "a.parquet", index=True)
    assert Annotations.from_csv(tmp_path / "a.csv", positive="yes").n_features == 2
    assert Annotations.from_parquet(tmp_path / "a.parquet", positive="yes").n_features == 2


def test_empty_cells_of_a_csv_are_missing(tmp_path):
    (tmp_path / "a.csv").write_text("user,label,x\nann,1,2\n,0,3\n")
    with pytest.raises(ValueError):
        Annotations.from_csv(tmp_path / "a.csv")


def test_bad_files_are_refused(files):
    for read in (Annotations.from_csv, Annotations.from_parquet):
        with pytest.raises(FileNotFoundError):
            read(files / "nowhere")
    (files / "bad.parquet").write_text("no parquet")
    with pytest.raises(ValueError):
        Annotations.from_parquet(files / "bad.parquet")
    (files / "bad.csv").write_text("user,label,x\n1,2\n1,2,3,4\n")
    with pytest.raises(ValueError):
        Annotations.from_csv(files / "bad.csv")


def test_frames_that_are_indexed_by_item():
    import pandas as pd

    labels = pd.DataFrame({"user": ["a", "b", "a"], "film": ["x", "y", "y"], "label": [1, 0, 1]})
    for name in (None, "film"):
        index = pd.Index(["y", "x"], name=name)
        said = Annotations.from_frame(labels, features=pd.DataFrame({"size": [2.0, 1.0]}, index))
        assert said.X[:, 0].tolist() == [1.0, 2.0, 2.0]
        assert said.feature_names == ("size",)


@pytest.mark.parametrize("kind", [pa.table, pl.DataFrame, pd.DataFrame])
def test_a_column_may_have_several_roles(kind):
    frame = kind({"user": [3, 1, 3], "label": [1, 0, 0], "size": [0.5, 2.0, 1.0]})
    said = Annotations.from_frame(frame, user="user", features=["size", "user"])
    np.testing.assert_array_equal(said.X, [[0.5, 3.0], [2.0, 1.0], [1.0, 3.0]])
    assert said.users.tolist() == [3, 1, 3]
    assert frame.shape == (3, 3)


def test_disagree_is_never_positive_by_itself():
    labels = pd.Categorical(["agree", "disagree", "agree"], ordered=True)
    said = Annotations(["a", "a", "b"], ["x", "y", "x"], labels)
    assert said.labels.tolist() == [True, False, True]
    assert said.verb == "agree with"
    assert "positive: 'agree'" in repr(said)


def test_comment_is_an_item_where_no_other_column_is():
    frame = {"participant": ["a", "b"], "comment": ["x", "x"], "vote": ["Agree", "disagree"]}
    assert Annotations.from_frame(pd.DataFrame(frame)).items.tolist() == ["x", "x"]
    frame |= {"comment_id": ["i", "j"], "comment": ["fine", "dull"]}
    assert Annotations.from_frame(pd.DataFrame(frame)).items.tolist() == ["i", "j"]


def test_columns_taken_and_left_out_are_listed(framed):
    with pytest.warns(UserWarning, match=r"size, round.*note \(string\)"):
        Annotations.from_frame(framed(COLUMNS), positive="yes")


def test_passes_among_votes_are_left_out_with_a_warning():
    frame = pd.DataFrame(
        {
            "participant": list("aabb"),
            "comment": list("xyxy"),
            "vote": ["Agree", "Pass", "Disagree", "Agree"],
        }
    )
    with pytest.warns(UserWarning, match="1 row"):
        votes = Annotations.from_frame(frame)
    assert votes.labels.tolist() == [True, False, True]
    assert votes.items.tolist() == ["x", "x", "y"]
    numbers = frame.assign(vote=[1, 0, -1, 1])
    with pytest.warns(UserWarning, match="1 row"):
        assert Annotations.from_frame(numbers).labels.tolist() == [True, False, True]
    assert Annotations.from_frame(numbers, grades=True).grades.tolist() == [1, 0, -1, 1]
    rated = Annotations.from_frame(numbers.rename(columns={"vote": "rating"}))
    assert rated.grades.tolist() == [1, 0, -1, 1]
    with pytest.raises(ValueError):  # an exam: neither means yes
        Annotations.from_frame(frame.assign(vote=["pass", "pass", "fail", "fail"]))
