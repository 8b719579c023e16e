"""Ids, labels and choices that come in several tables, one after the other."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pytest

import likeminds
from commands import run
from likeminds.data.sources import write_table

ITEMS = 12
FEATURES = np.random.default_rng(0).normal(size=(ITEMS, 2))
FIT = ("fit", "--annotations", "labels.csv", "--features", "features.csv", "--out", "m.likeminds")
UPDATE = ("update", "m.likeminds", "--annotations", "more.csv")


def said(users, items=None, low=0, high=1):
    """Return what people said about items: they like the first feature, or the second."""
    items = [f"i{k}" for k in range(ITEMS)] if items is None else items
    rows = [
        (person, item, high if FEATURES[k, p % 2] > 0 else low)
        for p, person in enumerate(users)
        for k, item in enumerate(items)
    ]
    return {name: [row[k] for row in rows] for k, name in enumerate(("person", "item", "label"))}


def write(folder, name, columns):
    write_table(pa.table(columns), folder / name)


def write_crowd(folder, users, items=None, ending="csv", **values):
    items = [f"i{k}" for k in range(ITEMS)] if items is None else items
    write(folder, f"labels.{ending}", said(users, items, **values))
    columns = {"item": items, "x0": FEATURES[:, 0], "x1": FEATURES[:, 1]}
    write(folder, f"features.{ending}", columns)


def succeed(folder, *words, stdin=""):
    done = run(folder, *words, "--json", stdin=stdin)
    assert done.code == 0, done.err
    return json.loads(done.out)


def refused(folder, *words, stdin=""):
    done = run(folder, *words, stdin=stdin)
    assert done.code == 2, done.out
    assert done.err.count("\n") == 1
    return done.err


@pytest.mark.seconds
@pytest.mark.parametrize(
    "users",
    [
        ["01", "1", "1.1", "1.10", "1e3", "1000"],
        [f"1234567890123456789{k}" for k in range(6)],
        ["NA", "null", "nan", "true", "2024-01-02", "007"],
    ],
)
def test_ids_of_csv_are_texts(tmp_path, users):
    items = ["1", "01", *(f"{k}e2" for k in range(2, ITEMS))]
    write_crowd(tmp_path, users, items)
    assert succeed(tmp_path, *FIT)["card"]["users"] == 6
    assert sorted(likeminds.load(tmp_path / "m.likeminds").users_) == sorted(users)
    write(tmp_path, "more.csv", said(users[:2], items))
    assert succeed(tmp_path, *UPDATE)["new_users"] == 0
    ranked = run(tmp_path, "rank", "m.likeminds", "--each-user", "--out", "-")
    assert ranked.code == 0
    assert {line.split(",")[0].strip('"') for line in ranked.out.splitlines()[1:]} == set(users)
    assert succeed(tmp_path, "rank", "m.likeminds", "--user", users[0])


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    """Ids that are numbers, and a model of them."""
    folder = tmp_path_factory.mktemp("typed")
    users = [12345, 7, 8, 9]
    write_crowd(folder, users, list(range(100, 100 + ITEMS)), "parquet")
    words = [word.replace(".csv", ".parquet") for word in FIT]
    assert succeed(folder, *words)["card"]["users"] == 4
    return folder


class TestTypedColumns:
    @pytest.fixture
    def folder(self, typed, tmp_path):
        return shutil.copytree(typed, tmp_path, dirs_exist_ok=True)

    @pytest.mark.seconds
    def test_they_keep_their_type(self, folder):
        model = likeminds.load(folder / "m.likeminds")
        assert model.users_.tolist() == [7, 8, 9, 12345]
        assert model.decision_function(FEATURES[:2], ["7", "8"]).tolist() == (
            model.decision_function(FEATURES[:2], [7, 8]).tolist()
        )

    @pytest.mark.seconds
    def test_texts_that_come_later_are_these_ids(self, folder):
        write(folder, "more.csv", said(["7", "10"], [str(k) for k in range(100, 100 + ITEMS)]))
        assert succeed(folder, *UPDATE)["new_users"] == 1
        grown = likeminds.load(folder / "m.likeminds")
        assert grown.users_.tolist() == [7, 8, 9, 10, 12345]
        assert grown.annotations_.n_items == ITEMS
        words = ("--annotations", "more.csv", "m.likeminds")
        assert succeed(folder, "evaluate", *words)["scores"][0]["users"] > 0

    @pytest.mark.seconds
    def test_the_same_number_written_otherwise_is_refused(self, folder):
        write(folder, "more.csv", said(["007"], [str(k) for k in range(100, 100 + ITEMS)]))
        assert "users: '007' may be the known 7" in refused(folder, *UPDATE)
        write(folder, "more.csv", said(["7"], [f"0{k}" for k in range(100, 100 + ITEMS)]))
        assert "items: '0100' may be the known 100" in refused(folder, *UPDATE)

    @pytest.mark.seconds
    def test_numbers_are_shown_as_they_are(self, folder):
        done = run(folder, "rank", "m.likeminds", "--each-user", "--top", "1")
        assert "12345" in done.out
        assert "12,345" not in done.out

    @pytest.mark.seconds
    def test_numbers_name_users(self, folder):
        ranked = succeed(folder, "rank", "m.likeminds", "--user", "7", "--user", "12345")
        assert {row["user"] for row in ranked["rankings"]} == {7, 12345}
        error = refused(folder, "rank", "m.likeminds", "--user", "007")
        assert "'007' may be the known 7" in error

    @pytest.mark.seconds
    def test_people_of_both_kinds_are_written_to_tables(self, folder):
        write(folder, "more.csv", said(["zoe"], [str(k) for k in range(100, 100 + ITEMS)]))
        assert succeed(folder, *UPDATE)["new_users"] == 1
        done = run(folder, "rank", "m.likeminds", "--each-user", "--out", "-")
        assert done.code == 0
        assert {line.split(",")[0] for line in done.out.splitlines()[1:]} >= {"7", "zoe"}

    @pytest.mark.seconds
    def test_days_are_ids(self, tmp_path):
        days = np.array(["2024-01-02", "2024-01-03", "2024-01-04"], dtype="datetime64[D]")
        write_crowd(tmp_path, days.tolist(), ending="parquet")
        words = [word.replace(".csv", ".parquet") for word in FIT]
        assert succeed(tmp_path, *words)["card"]["users"] == 3
        write(tmp_path, "more.csv", said(["2024-01-02"]))
        assert succeed(tmp_path, *UPDATE)["new_users"] == 0


@pytest.mark.seconds
def test_newcomers_name_items_exactly(tmp_path):
    items = [f"v{k}.1" for k in range(ITEMS)]
    write_crowd(tmp_path, ["ann", "bob", "eve"], items)
    succeed(tmp_path, *FIT)
    words = ("newcomer", "m.likeminds", "--annotations", "-")
    assert "no item 'v1'" in refused(tmp_path, *words, stdin="item,label\nv1,1\n")
    assert succeed(tmp_path, *words, stdin="item,label\nv1.1,1\n")


class TestLabels:
    """What a model was told about labels holds for those that come later."""

    def fit(self, folder, *words, **values):
        write_crowd(folder, ["ann", "bob", "eve"], **values)
        return succeed(folder, *FIT, *words)["card"]["label_reading"]

    @pytest.mark.seconds
    def test_ratings(self, tmp_path):
        read = self.fit(tmp_path, "--threshold", "3", low=1, high=5)
        assert read == {
            "positive": None,
            "negative": None,
            "threshold": 3.0,
            "grades": None,
            "classes": None,
        }
        worst = said(["dan"], low=1, high=1)
        write(tmp_path, "more.csv", worst)
        new = ("newcomer", "m.likeminds", "--annotations", "more.csv", "--top", "1")
        by_worst = succeed(tmp_path, *new)
        assert succeed(tmp_path, *new, "--threshold", "3") == by_worst
        assert "--threshold 4.0 contradicts" in refused(tmp_path, *new, "--threshold", "4")
        assert "contradicts the reading" in refused(tmp_path, *new, "--positive", "1")
        succeed(tmp_path, *UPDATE)
        grown = likeminds.load(tmp_path / "m.likeminds")
        assert not grown.annotations_.of_user("dan").labels.any()

    @pytest.mark.seconds
    def test_two_values(self, tmp_path):
        read = self.fit(tmp_path, "--positive", "2", low=1, high=2)
        assert read == {
            "positive": 2,
            "negative": 1,
            "threshold": None,
            "grades": None,
            "classes": None,
        }
        write(tmp_path, "more.csv", said(["dan"], low=1, high=1))
        succeed(tmp_path, *UPDATE)
        grown = likeminds.load(tmp_path / "m.likeminds")
        assert not grown.annotations_.of_user("dan").labels.any()
        write(tmp_path, "more.csv", said(["dan"], low=0, high=1))
        assert "does not fit the reading of earlier labels: 2 is pos" in refused(tmp_path, *UPDATE)
        evaluate = ("evaluate", "m.likeminds", "--annotations", "more.csv")
        assert "does not fit" in refused(tmp_path, *evaluate)

    @pytest.mark.seconds
    def test_medians_of_people_that_are_known(self, tmp_path):
        self.fit(tmp_path, "--threshold", "median", low=1, high=5)
        write(tmp_path, "more.csv", said(["dan"], low=1, high=5))
        succeed(tmp_path, *UPDATE)
        write(tmp_path, "more.csv", said(["ann"], low=1, high=5))
        assert "the user's median, which changes with more ratings" in refused(tmp_path, *UPDATE)

    @pytest.mark.seconds
    def test_python_knows_it_too(self, tmp_path):
        self.fit(tmp_path, "--threshold", "3", low=1, high=5)
        model = likeminds.load(tmp_path / "m.likeminds")
        more = likeminds.Annotations(["dan"], ["i0"], [1], {"i0": FEATURES[0]})
        for use in (model.update, model.newcomer):
            with pytest.raises(ValueError, match="Labels were read in two ways"):
                use(more)
        # What is true or false is no convention.
        model.newcomer(likeminds.Annotations(["dan"], ["i0"], [True], {"i0": FEATURES[0]}))


class TestChoices:
    """Sets of three of which one is chosen."""

    @pytest.fixture
    def rows(self):
        rows = []
        for p, person in enumerate(["ann", "bob", "eve", "dan"]):
            for group in range(ITEMS // 3):
                shown = range(3 * group, 3 * group + 3)
                best = max(shown, key=lambda k: FEATURES[k, p % 2])
                rows += [(person, f"i{k}", int(k == best), group) for k in shown]
        return rows

    def table(self, folder, name, rows):
        names = ("person", "item", "label", "choice_set")
        write(folder, name, {n: [row[k] for row in rows] for k, n in enumerate(names)})

    def test_a_set_in_two_tables_is_one(self, tmp_path, rows):
        write_crowd(tmp_path, ["ann"])
        self.table(tmp_path, "labels.csv", rows)
        succeed(tmp_path, *FIT)
        at_once = likeminds.load(tmp_path / "m.likeminds")
        assert at_once.loss_ == "choice"
        # The last row of the last set, which was not chosen or came with the chosen one.
        rows = sorted(rows, key=lambda row: (row[3], row[0], -row[2]))
        self.table(tmp_path, "labels.csv", rows[:-1])
        self.table(tmp_path, "more.csv", rows[-1:])
        succeed(tmp_path, *FIT)
        succeed(tmp_path, *UPDATE)
        grown = likeminds.load(tmp_path / "m.likeminds")
        assert grown.loss_ == "choice"
        np.testing.assert_allclose(grown.coef_, at_once.coef_, rtol=1e-6)

    def test_what_is_no_choice_is_refused(self, tmp_path, rows):
        write_crowd(tmp_path, ["ann"])
        self.table(tmp_path, "labels.csv", rows)
        succeed(tmp_path, *FIT)
        before = (tmp_path / "m.likeminds").read_bytes()
        self.table(tmp_path, "more.csv", [("ann", "i5", 1, 0)])
        assert "ann's choice set 0 (2 positive)" in refused(tmp_path, *UPDATE)
        self.table(tmp_path, "more.csv", [("ann", "i5", 0, 99)])
        assert "ann's choice set 99 (0 positive)" in refused(tmp_path, *UPDATE)
        assert (tmp_path / "m.likeminds").read_bytes() == before
