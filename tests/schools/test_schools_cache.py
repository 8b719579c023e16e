"""What was found about a crowd is kept with its ranker, and used as long as it holds."""

from dataclasses import replace

import numpy as np
import pytest

from likeminds import Annotations, HierarchicalRanker, find_schools, load, make_schools, save
from likeminds.schools import mixture
from likeminds.schools.mixture import keep_schools

pytestmark = pytest.mark.seconds


@pytest.fixture
def ranker():
    crowd = make_schools(60, 30, 60, 8, n_schools=2, contested=0.5, random_state=0).annotations
    return HierarchicalRanker(n_groups=1, n_item_factors=0).fit(crowd)


def refuse(*_, **__):
    raise AssertionError("people were divided again")


def same(first, second):
    assert first.to_dict() == second.to_dict()
    assert first.criterion == second.criterion
    assert np.array_equal(first.membership, second.membership)
    assert np.array_equal(first.soft_labels.by_school, second.soft_labels.by_school)


def test_the_same_is_found_without_dividing_again(ranker, tmp_path, monkeypatch):
    before = find_schools(ranker)
    assert len(before) == 2
    keep_schools(ranker)
    again = load(save(ranker, tmp_path / "model", with_data=True))
    monkeypatch.setattr(mixture, "divide", refuse)
    same(find_schools(ranker), before)
    same(find_schools(again), before)


def test_what_no_longer_holds_is_found_anew(ranker, monkeypatch):
    keep_schools(ranker)
    monkeypatch.setattr(mixture, "divide", refuse)
    for options in ({"n_schools": 3}, {"random_state": 1}):
        with pytest.raises(AssertionError, match="divided again"):
            find_schools(ranker, **options)
    ranker.group_ = ranker.group_ * 1.01
    with pytest.raises(AssertionError, match="divided again"):
        find_schools(ranker)


def test_a_file_without_labels_tells_nothing_of_them(ranker, tmp_path):
    keep_schools(ranker)
    assert load(save(ranker, tmp_path / "model")).cached_schools_ is None


def test_another_fit_forgets_it(ranker):
    keep_schools(ranker)
    said = ranker.annotations_
    assert ranker.fit(said[: len(said) // 2]).cached_schools_ is None


def test_people_who_see_nothing_in_any_item_are_one_crowd():
    rng = np.random.default_rng(0)
    person, item = np.nonzero(rng.random((20, 8)) < 0.6)
    said = Annotations(person, item, np.arange(len(item)) % 2 == 0)
    flat = HierarchicalRanker(n_item_factors=0).fit(said)
    items = replace(flat.prior_.items, effects=np.zeros(len(flat.items_)))
    flat.prior_ = replace(flat.prior_, items=items)
    assert len(find_schools(flat)) == 0
