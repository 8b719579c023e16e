"""Labels in Parquet files give what they give in memory, and bad files are named."""

import errno
import json
import os

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from crowds import make_choices
from likeminds import (
    AnnotationFolder,
    Annotations,
    FileChangedError,
    HierarchicalRanker,
    Statistics,
    ThreeLevelRanker,
)
from likeminds.cluster.partitions import read_label_table
from likeminds.data.out_of_core import annotation_folder as stored
from likeminds.data.out_of_core import first_pass
from likeminds.data.out_of_core.annotation_folder import as_bytes
from likeminds.data.out_of_core.external_sort import ExternalSort, find_grouped
from likeminds.data.out_of_core.parquet_parts import _common_type


def a_table(n_rows=600, n_users=20, n_items=30, seed=0):
    """Rows of everybody in any order, the features of an item in each of its rows."""
    rng = np.random.default_rng(seed)
    items = rng.standard_normal((n_items, 3))
    user = rng.integers(n_users, size=n_rows)
    item = rng.integers(n_items, size=n_rows)
    weights = rng.normal([1.0, 0.0, -1.0], size=(n_users, 3))
    score = np.einsum("nd,nd->n", items[item], weights[user])
    return pa.table(
        {
            "user": [f"user-{k}" for k in user],
            "item": [f"item-{k}" for k in item],
            "label": (score + rng.standard_normal(n_rows) > 0).astype(int),
            "rating": np.clip(np.rint(score + 3), 1, 5),
            **{f"x{k}": items[item, k] for k in range(3)},
        }
    )


def in_parts(path, table, n_parts=3):
    path.mkdir()
    ends = np.linspace(0, len(table), n_parts + 1).astype(int)
    for k in range(n_parts):
        piece = table.slice(ends[k], ends[k + 1] - ends[k])
        parquet.write_table(piece, path / f"part-{k}.parquet")
    return path


def by_user(said):
    """Everything that is said, sorted."""
    weights = np.ones(len(said)) if said.weights is None else said.weights
    rows = zip(said.users, said.items, said.outcomes, weights, said.X.tolist(), strict=True)
    return sorted((str(u), str(i), float(o), float(w), x) for u, i, o, w, x in rows)


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(AnnotationFolder, "_rows_at_once", 37)
    monkeypatch.setattr(stored, "_RANGES", 1 << 13)  # spill files of a few rows


OPTIONS = {
    "labels": {"label": "label", "features": ["x0", "x1", "x2"]},
    "grades": {"label": "rating", "features": ["x0", "x1", "x2"]},
    "above a number": {"label": "rating", "threshold": 3, "features": ["x0", "x1", "x2"]},
    "above medians": {"label": "rating", "threshold": "median", "features": ["x0", "x1", "x2"]},
}


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_grouped_labels_are_those_in_memory(tmp_path, options):
    path = in_parts(tmp_path / "labels", a_table())
    found = AnnotationFolder(path, memory_limit="64MiB", **options)
    said, known = found.annotations(), Annotations.from_parquet(path, **options)
    assert by_user(said) == by_user(known)
    assert said.reading == known.reading
    assert said.verb == known.verb
    assert said.user_ids.tolist() == known.user_ids.tolist()
    changes = np.flatnonzero(np.diff(said.user_codes))
    assert len(changes) == said.n_users - 1  # the rows of a person are together


@pytest.mark.usefixtures("small_pieces")
def test_features_of_items_are_joined(tmp_path):
    table = a_table()
    items = table.group_by("item").aggregate([(f"x{k}", "max") for k in range(3)])
    path = in_parts(tmp_path / "labels", table.select(["user", "item", "label"]))
    said = AnnotationFolder(path, features=items).annotations()
    known = Annotations.from_parquet(path, features=items)
    assert by_user(said) == by_user(known)
    assert said.features_per == "item"


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("n_rows", [90, 600])  # with fewer rows than features, and with more
@pytest.mark.parametrize(
    "options", [OPTIONS["labels"], OPTIONS["grades"]], ids=["labels", "grades"]
)
@pytest.mark.parametrize("at_once", [0, 3000, 1 << 30])  # one by one, a few together, all
def test_statistics_of_pieces_are_those_of_all(tmp_path, options, n_rows, at_once):
    path = in_parts(tmp_path / "labels", a_table(n_rows))
    found = AnnotationFolder(path, **options)
    said = (found.batches(), found.counts, found.grades)
    streamed = Statistics.from_batches(*said, at_once=at_once)
    known = Statistics.from_annotations(Annotations.from_parquet(path, **options), graded=True)
    np.testing.assert_allclose(streamed.class_weight, known.class_weight)
    np.testing.assert_allclose(streamed.feature_scale(), known.feature_scale(), rtol=1e-10)
    assert streamed.dense.users.tolist() == known.dense.users.tolist()
    np.testing.assert_allclose(streamed.dense.scatter, known.dense.scatter, atol=1e-10)
    assert streamed.rows.users.tolist() == known.rows.users.tolist()


@pytest.mark.seconds
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    "ranker", [ThreeLevelRanker(tol=1e-8), HierarchicalRanker(n_groups=1, item_effects=False)]
)
def test_rankers_learn_the_same_from_disk(tmp_path, ranker):
    path = in_parts(tmp_path / "labels", a_table())
    options = OPTIONS["labels"]
    known = ranker.fit(Annotations.from_parquet(path, **options)).coef_.copy()
    found = ranker.fit(AnnotationFolder(path, **options))
    np.testing.assert_allclose(found.coef_, known, atol=1e-5)
    assert found.n_labels_ == 600


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    "ranker", [HierarchicalRanker(n_groups=0), ThreeLevelRanker(tol=1e-8)], ids=["prior", "levels"]
)
def test_choices_on_disk_are_those_in_memory(tmp_path, ranker):
    chosen, _ = make_choices([1.0, -1.0], np.eye(2), n_users=12)
    columns = {"user": chosen.users, "label": chosen.labels}
    # Users share the ids of their sets, and the rows of a set lie in several files.
    columns["choice_set"] = chosen.choice_set_codes % 8
    columns |= dict(zip(chosen.feature_names, chosen.X.T, strict=True))
    table = pa.table(columns).take(np.random.default_rng(0).permutation(len(chosen)))
    here = Annotations.from_frame(table)
    there = AnnotationFolder(in_parts(tmp_path / "choices", table))
    sizes = np.bincount(there.annotations().choice_set_codes)
    assert sizes.tolist() == [3] * 96
    known = ranker.fit(here).coef_.copy()
    np.testing.assert_allclose(ranker.fit(there).coef_, known, atol=1e-5)


def a_table_of_pairs(seed=0):
    """Pairs of users, some of them tied, and the features of items."""
    rng = np.random.default_rng(seed)
    winner = rng.integers(8, size=120)
    columns = {
        "user": [f"user-{k}" for k in rng.integers(9, size=120)],
        "winner": [f"{k:02d}" for k in winner],
        "loser": [f"{k:02d}" for k in (winner + rng.integers(1, 8, size=120)) % 8],
        "tie": rng.random(120) < 0.2,
        "strength": rng.integers(1, 4, size=120),
    }
    features = {f"{k:02d}": [float(k), rng.normal()] for k in range(8)}
    return pa.table(columns), features


def rows_of_sets(said):
    """All choice sets, sorted: the rows of each, with weights and marks."""
    none = np.zeros(len(said), np.bool_)
    marks = (none if mark is None else mark for mark in (said.picks_worst, said.tied))
    weights = np.ones(len(said)) if said.weights is None else said.weights
    rows = zip(said.users, said.items, said.labels, weights, *marks, said.X.tolist(), strict=True)
    sets = {}
    for number, row in zip(said.choice_set_codes.tolist(), rows, strict=True):
        sets.setdefault(number, []).append(str(row))
    return sorted(sorted(one) for one in sets.values())


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("write", ["parquet", "csv"])
@pytest.mark.parametrize("given", [{}, {"tie_model": "half"}])
def test_comparisons_on_disk_are_those_in_memory(tmp_path, write, given):
    table, features = a_table_of_pairs()
    x, y = zip(*features.values(), strict=True)
    items = pa.table({"item": list(features), "x": x, "y": y})
    parquet.write_table(items, tmp_path / "items.parquet")
    here = Annotations.from_preferences(table, features=features, **given)
    path = in_parts(tmp_path / "pairs", table)
    if write == "csv":
        for part in path.iterdir():
            csv.write_csv(parquet.read_table(part), part.with_suffix(".csv"))
            part.unlink()
    folder = AnnotationFolder(path, features=tmp_path / "items.parquet", **given)
    there = folder.annotations()
    assert len(folder) == len(there) == 2 * (120 + table["tie"].to_numpy().sum())
    assert rows_of_sets(there) == rows_of_sets(here)
    assert (there.tied is None) == bool(given)
    ranker = HierarchicalRanker(n_groups=0, item_effects=False, tol=1e-2)
    known = ranker.fit(here).coef_.copy()
    np.testing.assert_allclose(ranker.fit(folder).coef_, known, atol=1e-6)


def test_comparisons_on_disk_name_their_columns_and_their_faults(tmp_path):
    table, _ = a_table_of_pairs()
    named = table.rename_columns(["rater", "a", "b", "even", "times"])
    columns = {"user": "rater", "winner": "a", "loser": "b", "tie": "even", "strength": "times"}
    there = AnnotationFolder(in_parts(tmp_path / "named", named), **columns).annotations()
    assert rows_of_sets(there) == rows_of_sets(Annotations.from_preferences(table))
    same = table.set_column(2, "loser", table["winner"])
    with pytest.raises(ValueError, match=r"part-0.*same item"):
        AnnotationFolder(in_parts(tmp_path / "same", same)).annotations()


@pytest.mark.parametrize("kind", ["ties", "best and worst"])
def test_marks_of_choices_on_disk_are_those_in_memory(tmp_path, kind):
    if kind == "ties":
        said, mark = Annotations.from_preferences(a_table_of_pairs()[0]), "tied"
    else:
        shown = [["a", "b", "c"], ["b", "c", "d"]] * 3
        users = [f"user-{k}" for k in range(6)]
        said = Annotations.from_best_worst(
            users, shown, [s[0] for s in shown], [s[2] for s in shown]
        )
        mark = "picks_worst"
    table = pa.table(
        {
            "user": said.users.tolist(),
            "item": said.items.tolist(),
            "label": said.labels,
            "choice_set": said.choice_set_codes,
            mark: getattr(said, mark).astype(int),
            **({} if said.weights is None else {"weight": said.weights}),
        }
    )
    expected = rows_of_sets(said)
    assert rows_of_sets(Annotations.from_frame(table)) == expected
    folder = AnnotationFolder(in_parts(tmp_path / "choices", table))
    assert rows_of_sets(folder.annotations()) == expected
    assert folder.feature_names == ()
    wrong = table.set_column(4, mark, pa.array([2] * len(table)))
    with pytest.raises(ValueError, match=mark):
        Annotations.from_frame(wrong)
    # Without choice sets, the column is a feature.
    assert Annotations.from_frame(table.drop(["choice_set"])).feature_names == (mark,)


@pytest.mark.usefixtures("small_pieces")
def test_rankers_are_scored_and_extended_from_disk(tmp_path):
    path, options = in_parts(tmp_path / "labels", a_table()), OPTIONS["labels"]
    known, folder = Annotations.from_parquet(path, **options), AnnotationFolder(path, **options)
    ranker = ThreeLevelRanker().fit(known)
    assert ranker.score(folder) == pytest.approx(ranker.score(known))
    assert ranker.update(folder).n_labels_ == 1200
    with pytest.raises(ValueError, match="Leave out y"):
        ranker.fit(folder, known.labels)


def test_grouped_labels_are_found_again_until_files_change(tmp_path, monkeypatch):
    path = in_parts(tmp_path / "labels", a_table())
    scratch = tmp_path / "scratch"
    first = AnnotationFolder(path, scratch=scratch, **OPTIONS["labels"]).annotations()
    written = list(scratch.iterdir())
    assert len(written) == 1
    with monkeypatch.context() as patch:
        patch.setattr(ExternalSort, "spill", None)
        again = AnnotationFolder(path, scratch=scratch, **OPTIONS["labels"]).annotations()
    assert by_user(again) == by_user(first)
    parquet.write_table(a_table(50, seed=1), path / "part-0.parquet")
    changed = AnnotationFolder(path, scratch=scratch, **OPTIONS["labels"]).annotations()
    assert len(changed) == 450


@pytest.mark.parametrize(
    ("error", "expected", "said"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt, None),
        (OSError(errno.ENOSPC, "No space left on device"), OSError, "full.*scratch="),
    ],
)
def test_nothing_is_left_of_what_was_not_finished(tmp_path, monkeypatch, error, expected, said):
    path = in_parts(tmp_path / "labels", a_table())
    calls = []

    def fail(*_):
        calls.append(list((tmp_path / "scratch").iterdir()))
        raise error

    monkeypatch.setattr(ExternalSort, "spill", fail)
    with pytest.raises(expected, match=said):
        AnnotationFolder(path, scratch=tmp_path / "scratch", **OPTIONS["labels"]).annotations()
    assert calls[0]
    assert not (tmp_path / "scratch").exists()


def test_a_disk_that_is_too_small_is_told_before(tmp_path, monkeypatch):
    path = in_parts(tmp_path / "labels", a_table())
    monkeypatch.setattr(ExternalSort, "n_bytes", 1 << 60)
    with pytest.raises(OSError):
        AnnotationFolder(path, scratch=tmp_path / "scratch", **OPTIONS["labels"]).annotations()


def test_half_a_folder_is_not_taken_for_a_whole_one(tmp_path):
    order = {"fingerprint": "a", "labels": ["0", "1"]}
    assert find_grouped(tmp_path, order) is None
    whole = tmp_path / "columns.json"
    whole.write_text(json.dumps({**order, "columns": {"label": ["|u1", [5]]}}))
    assert find_grouped(tmp_path, order) is None  # its columns are not there
    (tmp_path / "label").write_bytes(bytes(5))
    assert find_grouped(tmp_path, order)["label"].tolist() == [0] * 5
    assert find_grouped(tmp_path, {**order, "labels": ["1", "0"]}) is None
    assert find_grouped(tmp_path, {**order, "fingerprint": "b"}) is None


def late_first(monkeypatch):
    """Let the threads that count values end in the opposite order."""
    merge = first_pass._ValueCounter._merge

    def reversed_merge(counted):
        merge(counted)
        table = counted.waiting[0]
        counted.waiting = [table.take(np.arange(len(table))[::-1])]

    monkeypatch.setattr(first_pass._ValueCounter, "_merge", reversed_merge)


@pytest.mark.parametrize("label", ["label", "rating"])
def test_the_order_of_labels_does_not_depend_on_threads(tmp_path, monkeypatch, label):
    path = in_parts(tmp_path / "labels", a_table())
    options = {**OPTIONS["labels"], "label": label, "scratch": tmp_path / "scratch"}
    first = AnnotationFolder(path, **options)
    said = by_user(first.annotations())
    late_first(monkeypatch)
    again = AnnotationFolder(path, **options)
    values = again.survey.coded["label"].values.to_pylist()
    assert values == first.survey.coded["label"].values.to_pylist() == sorted(values)
    assert by_user(again.annotations()) == said


def write_again(file):
    table = parquet.read_table(file)
    parquet.write_table(table.slice(0, len(table) // 2), file)


def same_size_and_time(file):
    """Change bytes of the footer alone: the version of the writer."""
    before, content = file.stat(), file.read_bytes()
    assert b"parquet-cpp-arrow" in content
    file.write_bytes(content.replace(b"parquet-cpp-arrow", b"parquet-cpp-worra"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES = {
    "other rows": (write_again, "size"),
    "another footer": (same_size_and_time, "footer"),
    "another time": (lambda file: os.utime(file, ns=(0, 0)), "time"),
}


@pytest.mark.parametrize(("change", "what"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("read", ["batches", "annotations"])
def test_a_file_that_changes_between_passes_is_named(tmp_path, change, what, read):
    path = in_parts(tmp_path / "labels", a_table())
    found = AnnotationFolder(path, scratch=tmp_path / "scratch", **OPTIONS["labels"])
    assert len(found.user_ids) == 20
    change(path / "part-1.parquet")
    with pytest.raises(FileChangedError, match=rf"part-1\.parquet.*{what}"):
        list(getattr(found, read)())


def test_a_file_that_changes_while_it_is_read_is_named(tmp_path):
    path = in_parts(tmp_path / "labels", a_table())
    found = AnnotationFolder(path, **OPTIONS["labels"])
    pieces = found.parts.pieces(["user"], 10)
    next(pieces)
    os.utime(path / "part-0.parquet", ns=(0, 0))
    with pytest.raises(FileChangedError, match=r"part-0\.parquet"):
        list(pieces)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_refused_alone_and_among_parts(tmp_path):
    path = in_parts(tmp_path / "labels", a_table())
    os.mkfifo(path / "part-9.parquet")
    for source in (path, path / "part-9.parquet"):
        with pytest.raises(ValueError, match="pipe"):
            AnnotationFolder(source)
        with pytest.raises(ValueError, match="pipe"):
            Annotations.from_parquet(source, **OPTIONS["labels"])


def with_value(table, column, row, value):
    values = table[column].to_pylist()
    values[row] = value
    return table.set_column(table.column_names.index(column), column, pa.array(values))


BAD_PARTS = {
    "other columns": (lambda t: t.drop_columns(["x1"]), r"part-1\.parquet lacks x1"),
    "more columns": (lambda t: t.append_column("z", t["x1"]), r"part-1\.parquet also has z"),
    "other types": (
        lambda t: t.set_column(2, "label", t["label"].cast(pa.string())),
        r"part-1\.parquet has columns of other types.*label \(string, not int64\)",
    ),
    "NaN": (lambda t: with_value(t, "x0", 7, float("nan")), r"part-1\.parquet: features .*row.* 7"),
    "a gap": (lambda t: with_value(t, "user", 7, None), r"part-1\.parquet: Column 'user'.* 7"),
    "an empty id": (lambda t: with_value(t, "user", 7, ""), r"part-1\.parquet: Column 'user'.* 7"),
}


@pytest.mark.parametrize(("change", "said"), BAD_PARTS.values(), ids=BAD_PARTS)
@pytest.mark.parametrize("read", ["batches", "annotations"])
def test_a_bad_part_is_named(tmp_path, change, said, read):
    path = in_parts(tmp_path / "labels", a_table())
    file = path / "part-1.parquet"
    parquet.write_table(change(parquet.read_table(file)), file)
    with pytest.raises(ValueError, match=said):
        list(getattr(AnnotationFolder(path, **OPTIONS["labels"]), read)())


def test_a_broken_part_is_named(tmp_path):
    path = in_parts(tmp_path / "labels", a_table())
    whole = (path / "part-2.parquet").read_bytes()
    (path / "part-2.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError):
        AnnotationFolder(path)


def test_a_table_of_another_kind_is_told_what_is_read(tmp_path):
    (tmp_path / "labels.txt").write_text("user,item,label\na,p,1\n")
    with pytest.raises(ValueError, match="CSV"):
        AnnotationFolder(tmp_path / "labels.txt")


def numbered(table):
    """Return a table whose ids of users and items are numbers."""
    for place, name in enumerate(("user", "item")):
        ids = [int(one.split("-")[1]) for one in table[name].to_pylist()]
        table = table.set_column(place, name, pa.array(ids))
    return table


def test_csv_files_are_read_like_parquet(tmp_path):
    table = a_table()
    path = in_parts(tmp_path / "labels", numbered(table))
    for file in path.iterdir():
        csv.write_csv(parquet.read_table(file), file.with_suffix(".csv"))
        file.unlink()
    options = OPTIONS["labels"]
    found = AnnotationFolder(path, memory_limit="64MiB", **options)
    assert len(found) == len(table)
    assert set(found.user_ids) == {str(k) for k in range(20)}
    here = Annotations.from_frame(table, **options)
    there = found.annotations()
    want = [(u.split("-")[1], i.split("-")[1], *rest) for u, i, *rest in by_user(here)]
    assert by_user(there) == sorted(want)
    one = tmp_path / "one.csv"
    one.write_text("user,item,label,x0\n7,1,1,2\n7,2,0,3\n007,1,1,2.5\n")
    assert AnnotationFolder(one).user_ids.tolist() == ["007", "7"]
    assert AnnotationFolder(one).parts.types["x0"] == pa.float64()


def test_ids_of_other_types_in_some_files_are_read_alike(tmp_path):
    table = numbered(a_table())
    path = in_parts(tmp_path / "labels", table)
    found = AnnotationFolder(path, **OPTIONS["labels"])
    want = [(str(u), str(i), *rest) for u, i, *rest in by_user(found.annotations())]
    kinds = {"part-0": pa.string(), "part-2": pa.dictionary(pa.int32(), pa.string())}
    for name, kind in kinds.items():
        file = path / f"{name}.parquet"
        part = parquet.read_table(file)
        for place, column in enumerate(("user", "item")):
            texts = part[column].cast(pa.string())
            texts = texts.dictionary_encode() if pa.types.is_dictionary(kind) else texts
            part = part.set_column(place, column, texts)
        label = part["label"].cast(pa.int32())
        parquet.write_table(part.set_column(2, "label", label), file)
    mixed = AnnotationFolder(path, **OPTIONS["labels"])
    assert sorted(mixed.user_ids) == sorted(str(k) for k in range(20))
    assert by_user(mixed.annotations()) == want


def test_folders_without_labels_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        AnnotationFolder(tmp_path / "nowhere")
    with pytest.raises(ValueError):
        AnnotationFolder(tmp_path)
    with pytest.raises(ValueError):
        AnnotationFolder(in_parts(tmp_path / "empty", a_table().slice(0, 0)))


@pytest.mark.parametrize("column", ["attribute", "alternative"])
def test_what_is_not_read_is_refused(tmp_path, column):
    table = a_table()
    if column == "alternative":
        table = table.append_column("choice_set", table["user"])
    path = in_parts(tmp_path / "labels", table.append_column(column, table["item"]))
    with pytest.raises(ValueError, match=f"column {column}. Remove it from"):
        len(AnnotationFolder(path, label="label").user_ids)


def test_sizes_of_memory():
    assert as_bytes("4 GB") == 4 * 10**9
    assert as_bytes("512MiB") == 512 << 20
    for bad in ("much", "1MB", -1, float("nan")):
        with pytest.raises(ValueError):
            as_bytes(bad)


def test_how_far_it_is_goes_up_to_all_rows(tmp_path):
    path, told = in_parts(tmp_path / "labels", a_table()), {}

    def tell(what, done, total):
        told.setdefault(what, []).append((done, total))

    AnnotationFolder(path, progress=tell, **OPTIONS["labels"]).annotations()
    assert len(told) >= 2
    for steps in told.values():
        assert [done for done, _ in steps] == sorted(done for done, _ in steps)
        assert steps[-1] == (600, 600)


@pytest.mark.parametrize("answers", [(-1, 0, 1), ("disagree", "pass", "agree")])
def test_votes_with_passes_are_refused(tmp_path, answers):
    said = {"participant": list("aab"), "comment": list("xyx"), "vote": list(answers)}
    folder = in_parts(tmp_path / "votes", pa.table(said), 1)
    with pytest.raises(ValueError, match="neither yes nor no"):
        AnnotationFolder(folder).annotations()
    graded = AnnotationFolder(folder, grades=True if answers[0] == -1 else list(answers))
    assert len(graded.grades) == 3


def test_votes_with_passes_are_refused_on_a_cluster():
    counted = [("a.csv", [-1, 0, 1], [3, 2, 4])]
    with pytest.raises(ValueError, match="neither yes nor no"):
        read_label_table(counted, column="vote")
    assert read_label_table(counted, column="rating").grades.tolist() == [-1, 0, 1]


def test_rows_take_the_next_free_places_of_their_users():
    free = np.array([0, 5])
    assert stored._next_places(np.array([1, 0, 1]), free).tolist() == [5, 0, 6]
    assert free.tolist() == [1, 7]


def test_types_that_two_files_share():
    categories = pa.dictionary(pa.int32(), pa.string())
    assert _common_type(categories, pa.string(), False) == pa.string()
    assert _common_type(pa.int64(), pa.string(), True) == pa.string()
    assert _common_type(pa.int64(), pa.string(), False) is None
