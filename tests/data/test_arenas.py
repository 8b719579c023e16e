"""Votes of arenas in their file formats."""

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likeminds.data.connectors import read_export

VOTES = [
    {"model_a": "lark", "model_b": "wren", "winner": "model_a", "judge": "ann"},
    {"model_a": "lark", "model_b": "wren", "winner": "model_b", "judge": "ann"},
    {"model_a": "wren", "model_b": "rook", "winner": "tie", "judge": "bob"},
    {"model_a": "wren", "model_b": "rook", "winner": "tie (bothbad)", "judge": "bob"},
    {"model_a": "lark", "model_b": "rook", "winner": "both bad", "judge": "bob"},
    {"model_a": "lark", "model_b": "rook", "winner": "rook", "judge": "bob"},
]
TAKEN = [
    ("ann", "lark", "wren"),
    ("ann", "wren", "lark"),
    ("bob", "wren", "rook"),
    ("bob", "wren", "rook"),
    ("bob", "lark", "rook"),
    ("bob", "rook", "lark"),
]


def written(path, records):
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(records), path)
    elif path.suffix == ".csv":
        rows = [records[0].keys(), *(record.values() for record in records)]
        path.write_text("\n".join(",".join(row) for row in rows))
    else:
        path.write_text("\n".join(map(json.dumps, records)))
    return path


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_votes_in_each_format(tmp_path, ending):
    export = read_export("arena", written(tmp_path / f"votes.{ending}", VOTES))
    assert export.comparisons == TAKEN
    assert export.ties == [False, False, True, True, True, False]
    assert not export.left_out
    assert export.comparison_annotations().n_users == 2


def test_rows_left_out_are_counted_over_the_whole_table(tmp_path):
    rows = pa.Table.from_pylist([*VOTES[:3], VOTES[3] | {"winner": "nobody"}])
    pq.write_table(rows, tmp_path / "votes.parquet", row_group_size=1)
    (left_out,) = read_export("arena", tmp_path / "votes.parquet").left_out
    assert left_out.places == ("row 4",)


def test_unreadable_votes_are_counted(tmp_path):
    votes = [
        VOTES[0],
        VOTES[0] | {"winner": "nobody"},
        VOTES[0] | {"model_b": None},
        VOTES[0] | {"model_b": "lark"},
        {name: value for name, value in VOTES[1].items() if name != "judge"},
    ]
    export = read_export("arena", written(tmp_path / "votes.jsonl", votes))
    assert export.comparisons == [TAKEN[0], ("all judges", "wren", "lark")]
    assert sorted(left.count for left in export.left_out) == [1, 1, 1]
    path = tmp_path / "wrong.csv"
    path.write_text("left,right\na,b\n")
    with pytest.raises(ValueError, match="model_a, model_b, winner"):
        read_export("arena", path)


def test_style_of_answers_and_categories(tmp_path):
    plain = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]
    text = "# Why\n- one\n2. two\nand **this**"
    votes = [
        VOTES[1] | {"conversation_a": plain, "response_b": text, "category": "maths"},
        VOTES[0] | {"response_a": text, "response_b": "", "category": "poems"},
        VOTES[0] | {"category": "poems"},
    ]
    export = read_export("arena", written(tmp_path / "votes.jsonl", votes))
    assert export.feature_names == ("length", "headers", "lists", "bold")
    won, lost = export.features[0]
    expected = [math.log1p(n) for n in (len(text), 1, 2, 1)]
    np.testing.assert_allclose(won, expected)
    np.testing.assert_allclose(lost, [math.log1p(3), 0, 0, 0])
    assert [left.count for left in export.left_out] == [1]
    crowd = export.comparison_annotations()
    np.testing.assert_allclose(crowd.X, [won, lost, expected, [0, 0, 0, 0]])
    assert export.of_category("poems").comparisons == [TAKEN[0]]
    with pytest.raises(ValueError, match="maths, poems"):
        export.of_category("law")
