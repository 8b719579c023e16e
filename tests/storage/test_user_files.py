"""Models whose people are in files of their own: read lazily, replaced whole, errors told."""

import errno
import os
import pickle
import shutil
import threading
from copy import copy

import numpy as np
import pytest

from likeminds import (
    Annotations,
    AttributeModel,
    FileChangedError,
    HierarchicalRanker,
    ThreeLevelRanker,
    load,
    load_electricity,
    make_schools,
    read_card,
    save,
)
from likeminds._util import atomic_files as support
from likeminds._util.lazy_rows import LazyRows
from likeminds.rankers.capabilities import subset_users
from likeminds.storage.models import ModelFileError
from likeminds.storage.user_files import UserFiles, from_arrays, hashes_of, kind_of, to_arrays

IDS = {
    "texts": [f"p{n:02d}" for n in range(23)],
    "numbers": list(range(100, 123)),
    "tuples": [("team", n) for n in range(23)],
    "mixed": [n if n % 2 else f"é{n}" for n in range(23)],
}


def crowd(ids="texts"):
    made = make_schools(23, 20, 30, 4, n_schools=2, contested=0.6, random_state=0).annotations
    kept = np.empty(23, dtype=object)
    kept[:] = IDS[ids]
    return made._with(user_ids=np.array(IDS[ids]) if ids == "numbers" else kept)


@pytest.fixture(scope="module")
def said():
    return crowd()


@pytest.fixture(scope="module")
def ranker(said):
    return HierarchicalRanker(n_groups=1, n_item_factors=1).fit(said)


@pytest.fixture
def folder(ranker, tmp_path):
    return save(ranker, tmp_path / "crowd.likeminds", users_per_file=5)


@pytest.fixture
def opened(monkeypatch):
    """The files of people that were opened."""
    found, open_ = [], UserFiles._open

    def count(self, number):
        found.append(number)
        return open_(self, number)

    monkeypatch.setattr(UserFiles, "_open", count)
    return found


def names_in(folder):
    return sorted(one.name for one in folder.iterdir())


def users_in(folder):
    return sorted(folder.glob("people-*.safetensors"))


@pytest.mark.parametrize("ids", IDS)
def test_the_same_ranker_comes_back(ids, tmp_path):
    said = crowd(ids)
    here = ThreeLevelRanker().fit(said)
    folder = save(here, tmp_path / "m", users_per_file=5)
    again = load(folder)
    assert again.users_.tolist() == here.users_.tolist()
    assert again.users_.dtype == here.users_.dtype
    for name in ("coef_", "group_", "personal_"):
        assert isinstance(getattr(again, name), LazyRows)
        np.testing.assert_array_equal(getattr(again, name), getattr(here, name))
    np.testing.assert_array_equal(again.decision_function(said), here.decision_function(said))
    assert again.score(said) == here.score(said)
    person = here.users_.tolist()[7]
    assert again.rank(person, said).items.tolist() == here.rank(person, said).items.tolist()
    assert again.rank(person, said).user == person
    card = read_card(folder)
    assert (card["users"], card["user_files"], card["format"]) == (23, 5, 4)


def test_numbers_are_found_as_texts_and_strangers_are_not(tmp_path):
    here = ThreeLevelRanker().fit(crowd("numbers"))
    again = load(save(here, tmp_path / "m", users_per_file=4))
    assert again.rank("107", crowd("numbers"), k=1).user == 107
    assert 107.0 in again.users_.places
    with pytest.raises(KeyError):
        again.rank("p1", crowd("numbers"))
    texts = load(save(ThreeLevelRanker().fit(crowd()), tmp_path / "t", users_per_file=4))
    with pytest.raises(KeyError):
        texts.rank("p0", crowd())
    assert set(texts.users_.places) == set(IDS["texts"])


def test_verbs_answer_as_the_ranker_in_memory(ranker, said, folder):
    again = load(folder)
    items = {f"item{n}": said.features[n] for n in range(6)}
    for person in ("p03", "p22", None):
        first, second = (one.rank(person, items) for one in (ranker, again))
        np.testing.assert_array_equal(first.scores, second.scores)
        reasons = [one.explain(person, "item2", items) for one in (ranker, again)]
        assert reasons[0].score == reasons[1].score
        assert reasons[0].error == pytest.approx(reasons[1].error)
        assert reasons[0].probability == pytest.approx(reasons[1].probability)
    for verb in ("decision_function", "standard_error", "predict_proba"):
        np.testing.assert_allclose(getattr(again, verb)(said), getattr(ranker, verb)(said))
    new = said.features[:4], [True, False, True, True]
    np.testing.assert_allclose(again.newcomer(*new).coef, ranker.newcomer(*new).coef)
    chances = [one.probability_above(said[:9], said[9:18]) for one in (again, ranker)]
    np.testing.assert_allclose(*chances)
    for one, other in zip(
        again.rank_interval("p11", said.features),
        ranker.rank_interval("p11", said.features),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    alike = [one.similar_users("p04", k=3, items=items).ids.tolist() for one in (again, ranker)]
    assert alike[0] == alike[1]
    everybody = [[one.items.tolist() for one in r.rank_all(items)] for r in (again, ranker)]
    assert everybody[0] == everybody[1]


def test_only_the_files_of_those_asked_about_are_opened(ranker, said, folder, opened):
    again = load(folder)
    assert len(again.users_) == 23
    again.newcomer(said.features[:2], [True, False])
    again.rank(None, said)
    assert opened == []
    again.rank("p07", said, k=3)
    again.explain("p07", said.items[0], said)
    again.user_posterior("p07")
    assert set(opened) <= {0, 1}  # p07 is in the second; of strangers the first has to say
    assert 1 in opened
    again.rank("p22", said)
    assert 4 in opened
    assert not {2, 3} & set(opened)


def test_rows_are_indexed_as_arrays_are(ranker, folder):
    rows, plain = load(folder).coef_, ranker.coef_
    mask = np.arange(23) % 3 == 0
    for index in (
        0,
        -1,
        slice(3, 17),
        slice(None, None, -2),
        [4, 22, 4],
        [],
        mask,
        np.array([[7]]),
    ):
        np.testing.assert_array_equal(rows[index], plain[index])
    np.testing.assert_array_equal(rows[:, 2], plain[:, 2])
    np.testing.assert_array_equal(rows[3, 1], plain[3, 1])
    np.testing.assert_array_equal(rows @ np.ones(4), plain @ np.ones(4))
    np.testing.assert_array_equal(list(rows), plain)
    assert rows.tolist() == plain.tolist()
    assert "23 x 4) in 5 files" in repr(rows)
    for wrong in (23, [-24], 0.5):
        with pytest.raises(IndexError):
            rows[wrong]


def test_some_of_the_people_are_an_ordinary_ranker(ranker, said, folder, opened):
    some = subset_users(load(folder), slice(5, 10))
    assert some.users_.tolist() == IDS["texts"][5:10]
    mine = said.of_users(IDS["texts"][5:10])
    np.testing.assert_allclose(some.decision_function(mine), ranker.decision_function(mine))
    np.testing.assert_allclose(some.standard_error(mine), ranker.standard_error(mine))
    assert set(opened) == {1}


def test_it_can_be_copied_pickled_and_saved_as_one_file(ranker, folder, tmp_path):
    again = load(folder)
    for one in (copy(again), pickle.loads(pickle.dumps(again)), load(save(again, tmp_path / "a"))):
        np.testing.assert_array_equal(one.coef_, ranker.coef_)
        assert one.users_.tolist() == ranker.users_.tolist()
    assert isinstance(load(tmp_path / "a").coef_, np.ndarray)


def test_a_model_that_replaces_another_leaves_that_to_whoever_reads_it(ranker, said, folder):
    before = load(folder)
    first = users_in(folder)
    other = HierarchicalRanker(n_groups=0).fit(said)
    save(other, folder)  # in as many files
    np.testing.assert_array_equal(before.coef_, ranker.coef_)
    np.testing.assert_array_equal(load(folder).coef_, other.coef_)
    assert len(users_in(folder)) == 10
    save(other, folder, users_per_file=23)
    assert len(users_in(folder)) == 6
    assert not set(first) & set(users_in(folder))
    late = load(folder)
    save(other, folder)
    save(other, folder)
    with pytest.raises(ModelFileError):
        late.coef_[0]


def test_it_takes_more_labels(said, tmp_path):
    half = said[: len(said) // 2]
    here = HierarchicalRanker(n_groups=1).fit(half)
    folder = save(here, tmp_path / "m", users_per_file=6, with_data=True)
    again = load(folder)
    grown = again.update(said[len(said) // 2 :])
    save(grown, folder, with_data=True, if_unchanged=True)
    whole = HierarchicalRanker(n_groups=1).fit(said)
    np.testing.assert_allclose(load(folder).coef_, whole.coef_, atol=1e-3)
    with pytest.raises(FileChangedError):
        save(load(folder), folder, if_unchanged=True) and save(again, folder, if_unchanged=True)


# What is wrong is said.


def test_truncated_missing_changed_and_mixed_files(ranker, said, folder, tmp_path):
    victim = users_in(folder)[1]
    content = victim.read_bytes()

    def asked(match):
        again = load(folder)
        np.testing.assert_array_equal(again.coef_[0], ranker.coef_[0])
        with pytest.raises(ModelFileError, match=match):
            again.rank("p07", said)
        with pytest.raises(ModelFileError, match=match):
            load(folder, verify=True)

    for keep in (0, 5, 200, len(content) - 1):
        victim.write_bytes(content[:keep])
        asked("not a complete likeminds model")
    changed = bytearray(content)
    changed[content.find(np.ascontiguousarray(ranker.coef_[5:10]).tobytes())] ^= 1
    victim.write_bytes(changed)
    asked("checksum of its array 'coef_' differs")
    victim.unlink()
    asked("lacks the file people-.*5 users")
    other = save(ranker, tmp_path / "other", users_per_file=4)
    shutil.copy(users_in(other)[1], victim)
    asked("users of another model")
    victim.write_bytes(content)
    load(folder, verify=True)


def test_a_listed_file_is_beside_the_model(folder):
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file

    main = folder / "model.likeminds"
    with safe_open(main, framework="numpy") as file:
        texts = file.metadata()
    texts["people"] = texts["people"].replace("people-", "../people-")
    save_file(load_file(main), main, metadata=texts)
    with pytest.raises(ModelFileError):
        load(folder)


FULL = OSError(errno.ENOSPC, "No space left")


@pytest.mark.parametrize(("failure", "after"), [(FULL, 0), (FULL, 3), (KeyboardInterrupt(), 5)])
def test_a_save_that_fails_leaves_the_old_model_or_none(
    ranker, folder, monkeypatch, failure, after
):
    tmp_path = folder.parent
    before = names_in(folder)
    calls, fsync = [], os.fsync

    def fail(descriptor):
        calls.append(descriptor)
        if len(calls) > after:
            raise failure
        fsync(descriptor)

    monkeypatch.setattr(support.os, "fsync", fail)
    with pytest.raises(type(failure)):
        save(ranker, folder)
    assert names_in(folder) == before
    calls.clear()
    with pytest.raises(type(failure)):
        save(ranker, tmp_path / "new", users_per_file=5)
    assert not (tmp_path / "new").exists()
    monkeypatch.undo()
    np.testing.assert_array_equal(load(folder, verify=True).coef_, ranker.coef_)


def test_what_cannot_be_saved_apart_is_refused(ranker, said, tmp_path):
    several = AttributeModel(ThreeLevelRanker()).fit({"open": said, "pointy": said})
    with pytest.raises(TypeError):
        save(several, tmp_path / "m", users_per_file=5)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(FileExistsError):
        save(ranker, tmp_path / "mine", users_per_file=5)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        save(ranker, tmp_path / "file", users_per_file=5)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "mine")
    broken = copy(ranker)
    broken.coef_ = ranker.coef_.copy()
    broken.coef_[7, 1] = np.nan
    with pytest.raises(ValueError, match="coef_ has NaN or infinite numbers"):
        save(broken, tmp_path / "m", users_per_file=5)
    assert not (tmp_path / "m").exists()


def test_two_saves_at_once_leave_one_whole_model(ranker, said, folder):
    other = HierarchicalRanker(n_groups=0).fit(said)
    both = [threading.Thread(target=save, args=(one, folder)) for one in (ranker, other) * 3]
    for one in both:
        one.start()
    for one in both:
        one.join()
    found = np.asarray(load(folder, verify=True).coef_)
    assert any(np.array_equal(found, one.coef_) for one in (ranker, other))


def test_ids_are_told_apart_by_their_hashes():
    different = ["1", 1, 1.5, ("1",), (1,), "s1", ("a", "b"), ("a,b",), ("a", ("b",)), "", "é"]
    assert len(set(hashes_of(different).tolist())) == len(different)
    ids = np.empty(3, dtype=object)
    ids[:] = ["é", ("a", 1), 2]
    kind = kind_of(ids)
    arrays = to_arrays(ids, "users_", kind)
    cuts = np.concatenate([[0], arrays["users_/ends"]])
    assert from_arrays(arrays["users_"], cuts, kind).tolist() == ids.tolist()
    with pytest.raises(TypeError):
        to_arrays(np.array([b"x"], dtype=object), "users_", "json")


def test_grades_and_choices(tmp_path):
    rng = np.random.default_rng(0)
    X, users = rng.normal(size=(600, 2)), np.repeat(np.arange(20), 30)
    stars = np.clip(np.round(3 + X[:, 0] + rng.normal(size=600)), 1, 5)
    graded = HierarchicalRanker(n_groups=0, loss="cumulative", unknown="consensus").fit(
        X, stars, users
    )
    again = load(save(graded, tmp_path / "g", users_per_file=3))
    for whom in (users[:50], None, ["nobody"] * 50):
        found, here = (one.predict_grades(X[:50], whom) for one in (again, graded))
        np.testing.assert_allclose(found.probabilities, here.probabilities)
    homes = load_electricity()
    homes = homes.of_users(homes.user_ids[:20])
    chosen = HierarchicalRanker(n_groups=1).fit(homes)
    again = load(save(chosen, tmp_path / "c", users_per_file=7))
    np.testing.assert_allclose(again.predict_proba(homes), chosen.predict_proba(homes))
    assert isinstance(homes, Annotations)
