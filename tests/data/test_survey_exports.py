"""Conjoint and MaxDiff exports of Sawtooth and Qualtrics, against choices written by hand."""

from pathlib import Path

import numpy as np
import pytest

from likeminds import Annotations, read_export

FILES = Path(__file__).parent / "files"
PIZZAS = "Margherita", "Arugula", "Truffle-oil", "Pepperoni", "Broccoli"


def reasons(export):
    return {left.reason.removeprefix("since "): left.count for left in export.left_out}


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def same(said, expected):
    """Compare annotations row by row."""
    names = ("users", "labels", "choice_set_codes", "features", "feature_rows")
    for name in names:
        np.testing.assert_array_equal(getattr(said, name), getattr(expected, name), name)
    assert said.feature_names == expected.feature_names
    if expected.features_per != "row":
        assert said.items.tolist() == expected.items.tolist()
    marks = [one.picks_worst for one in (said, expected)]
    np.testing.assert_array_equal(*(np.zeros(0) if one is None else one for one in marks))


def test_sawtooth_conjoint_codes_texts_amounts_and_none():
    export = read_export("sawtooth", FILES / "sawtooth-cbc.csv")
    chosen_first = [
        [(1, 0, 0, 200, 0), (0, 0, 1, 100, 0), (0, 0, 0, 0, 1)],
        [(0, 0, 0, 0, 1), (0, 1, 0, 300, 0), (0, 0, 1, 100, 0)],
        [(1, 0, 1, 100, 0), (0, 1, 0, 200, 0), (0, 0, 0, 0, 1)],
    ]
    expected = Annotations(
        np.repeat(["1", "1", "2"], 3),
        None,
        np.tile([True, False, False], 3),
        np.concatenate(chosen_first).astype(float),
        feature_names=["Brand: 2", "Brand: 3", "Speed: Slow", "Price", "none"],
        features_per="row",
        choice_sets=np.repeat([0, 1, 2], 3),
    )
    same(export.choice_annotations(), expected)
    assert reasons(export) == {"it has nothing chosen": 1}
    assert str(export).startswith("3 choices\n1 record left out")


def test_sawtooth_maxdiff_by_positions_and_by_item():
    export = read_export("sawtooth", FILES / "sawtooth-maxdiff.csv")
    assert export.choices == [
        ("1", ("13", "18", "11", "24"), "11", "18"),
        ("1", ("5", "13", "24", "7"), "5", "7"),
        ("2", ("18", "5", "7", "11"), "5", None),
    ]
    assert reasons(export) == {
        "one item is both the best and the worst": 1,
        "the best or the worst item is not among those shown": 1,
    }
    users, shown, best, worst = zip(*export.choices, strict=True)
    same(export.choice_annotations(), Annotations.from_best_worst(users, shown, best, worst))
    rows = read_export("sawtooth", FILES / "sawtooth-maxdiff-items.csv")
    assert rows.choices[1:] == [
        ("1", ("guns", "health", "crime"), "health", "crime"),
        ("2", ("crime", "guns", "taxes"), "taxes", "guns"),
    ]


def test_sawtooth_maxdiff_by_numbers_of_items(tmp_path):
    text = (FILES / "sawtooth-maxdiff.csv").read_text().splitlines()
    path = written(tmp_path / "m.csv", "\n".join([text[0], "1,1,1,13,18,11,24,11,18"]))
    assert read_export("sawtooth", path).choices == [("1", ("13", "18", "11", "24"), "11", "18")]
    path = written(tmp_path / "m.csv", "\n".join([text[0], "1,1,1,2,1,4,3,1,2"]))
    with pytest.raises(ValueError):
        read_export("sawtooth", path)


def test_partial_profiles_keep_the_first_level(tmp_path):
    rows = ["id,task,concept,a,b,response", "7,1,1,1,0,1", "7,1,2,2,x,0", "7,1,3,0,y,-1"]
    export = read_export("sawtooth", written(tmp_path / "p.csv", "\n".join(rows)))
    assert export.feature_names == ("a: 1", "a: 2", "b: x", "b: y")
    assert export.concepts == [(1, 0, 0, 0), (0, 1, 1, 0), (0, 0, 0, 1)]
    assert export.choices == [("7", (0, 1, 2), 0, 2)]


def test_qualtrics_maxdiff_takes_the_items_that_were_shown():
    export = read_export("qualtrics", FILES / "qualtrics-maxdiff.csv")
    margherita, arugula, truffle, pepperoni, broccoli = PIZZAS
    assert export.choices == [
        ("R_1", (pepperoni, truffle, margherita), margherita, pepperoni),
        ("R_1", (broccoli, truffle, arugula), broccoli, truffle),
        ("R_2", (broccoli, truffle, arugula), truffle, broccoli),
        ("R_3", (truffle, margherita, pepperoni), truffle, margherita),
    ]
    assert reasons(export) == {
        "it is a preview, a test or spam": 1,
        "the question was not answered": 1,
        "the best or the worst item is not among those shown": 1,
    }
    assert export.choice_annotations().n_items == len(PIZZAS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("QID3_DO", "DO-Q-Q1"),
        ("_DO", "_XX"),
        ("ImportId", "Id"),
        ("ResponseId", "Other"),
        (",2,", ",maybe,"),
        (",2,1,,,,1|2|3,,2,1,,,", ",2,2,,,,1|2|3,,2,2,,,"),
    ],
)
def test_qualtrics_maxdiff_is_read_or_refused(tmp_path, old, new):
    text = (FILES / "qualtrics-maxdiff.csv").read_text().replace(old, new)
    path = written(tmp_path / "q.csv", text)
    if old.startswith(("QID", ",2,1")):
        assert len(read_export("qualtrics", path).choices) == 4
        return
    with pytest.raises(ValueError):
        read_export("qualtrics", path.rename(tmp_path / "changed.csv"))


def test_qualtrics_words_and_fixed_sets(tmp_path):
    names = ("ResponseId", "Q1_1", "Q1_2", "Q1_3", "Q2_1", "Q2_2", "Q2_3")
    texts = ("Response ID", *(f"Pick. - {item}" for item in "abcbcd"))
    ids = ["_recordId", "QID1_1", "QID1_2", "QID1_3", "QID2_1", "QID2_2", "QID2_3"]
    imports = ["{'ImportId': '" + one + "'}" for one in ids]
    row = ("R_1", "Most", "", "Least", "", "Least", "Most")
    text = "\n".join(map(",".join, (names, texts, imports, row)))
    export = read_export("qualtrics", written(tmp_path / "q.csv", text))
    assert export.choices == [
        ("R_1", ("a", "b", "c"), "a", "c"),
        ("R_1", ("b", "c", "d"), "d", "c"),
    ]


def test_qualtrics_conjoint_of_embedded_data(tmp_path):
    export = read_export("qualtrics", FILES / "qualtrics-conjoint.csv")
    assert export.feature_names == ("Job: Cook", "Job: Nurse", "Trips")
    assert export.concepts == [(0, 1, 1), (1, 0, 4), (1, 0, 2), (0, 1, 4), (0, 0, 4), (1, 0, 1)]
    assert export.choices == [
        ("R_1", (0, 1), 0, None),
        ("R_1", (2, 3), 3, None),
        ("R_2", (4, 5), 5, None),
    ]
    assert reasons(export) == {"none of the profiles was chosen": 1}
    text = (FILES / "qualtrics-conjoint.csv").read_text().replace("R_1,1,2", "R_1,1,Yes")
    with pytest.raises(ValueError):
        read_export("qualtrics", written(tmp_path / "c.csv", text))


@pytest.mark.parametrize("name", ["sawtooth-cbc", "sawtooth-maxdiff", "qualtrics-maxdiff"])
def test_damaged_files_are_counted_or_refused(tmp_path, name):
    text = (FILES / f"{name}.csv").read_text()
    whole = len(read_export(name.partition("-")[0], FILES / f"{name}.csv").choices)
    tried = 0
    for place in range(0, len(text), 23):
        for damaged in (text[:place], text[:place] + ",\n" + text[place:], text[:place] + "\0"):
            tried += 1
            path = written(tmp_path / "damaged.csv", damaged)
            try:
                export = read_export(name.partition("-")[0], path)
            except ValueError:
                continue
            assert len(export.choices) <= whole + 1
            assert not export.choices or len(export.choice_annotations()) > 0
    assert tried > 20
