"""Grades: how they are found, kept, joined and refused."""

import numpy as np
import pandas as pd
import pytest

from likeminds import Annotations, HierarchicalRanker, fingerprint
from likeminds.data.grades import divide_evenly, read_answers

WORDS = ["bad", "fair", "good"]


def graded(labels, **options):
    n = len(labels)
    users = ["ann", "bob"] * n
    return Annotations(users[:n], None, labels, np.arange(n, dtype=float)[:, None], **options)


@pytest.mark.parametrize(
    ("labels", "options", "expected"),
    [
        ([1, 3, 7], {}, [1, 3, 7]),
        ([0.5, 4.5, 5.0], {}, [0.5, 4.5, 5.0]),
        ([-10, 0, 10], {}, [-10, 0, 10]),
        ([-1, 0, 1], {}, [-1, 0, 1]),
        (["1", "2", "10"], {}, [1, 2, 10]),
        ([1.0, 1.0000001, 2.0, 3.0], {}, [1, 1, 2, 3]),
        (["good", "bad"], {"grades": WORDS}, [2, 0]),
        ([1, 3, 5], {"grades": [5, 4, 3, 2, 1]}, [4, 2, 0]),
        ([4, 5], {"grades": True}, [4, 5]),
        ([4, 5], {"grades": [1, 2, 3, 4, 5]}, [4, 5]),
        (pd.Categorical(["good", "bad"], WORDS, ordered=True), {}, [2, 0]),
        (pd.Series(["fair"], dtype=pd.CategoricalDtype(WORDS, ordered=True)), {}, [1]),
    ],
)
def test_grades_are_found(labels, options, expected):
    assert graded(labels, **options).grades.tolist() == expected


@pytest.mark.parametrize(
    ("labels", "options"),
    [
        ([0, 1], {}),
        ([0.0, 1.0, 1.0000001], {}),
        ([0, 1, 1.0000001], {}),
        ([1, 3, 7], {"threshold": 3}),
        ([1, 3, 7], {"threshold": "median"}),
        (pd.Categorical(["yes", "no"], ["no", "yes"], ordered=True), {}),
    ],
)
def test_labels_of_two_kinds_are_none(labels, options):
    said = graded(labels, **options)
    assert said.grades is None
    assert said.outcomes is said.labels
    assert said.labels.tolist()[0] == (labels[0] == "yes")


def test_an_order_is_a_list():
    with pytest.raises(TypeError):
        graded([1, 2, 3], grades="good")


def test_ordered_categories_of_a_frame():
    kinds = pd.CategoricalDtype(WORDS, ordered=True)
    frame = pd.DataFrame({"user": ["a", "b", "b"], "x": [0.1, 0.2, 0.3]})
    frame["label"] = pd.Series(["good", "bad", "fair"], dtype=kinds)
    said = Annotations.from_frame(frame)
    assert said.grades.tolist() == [2, 0, 1]
    assert said.reading.grades == tuple(WORDS)
    assert repr(said) == "Annotations: 3 grades from bad to good by 2 people on 3 items, 1 feature"
    assert Annotations.from_frame(frame[["user", "x"]].assign(label=[1, 2, 5])).grades[2] == 5


def test_grades_stay_with_their_rows():
    said = graded([1, 5, 3, 2])
    assert said[[2, 0]].grades.tolist() == [3, 1]
    assert said.of_user("bob").grades.tolist() == [5, 2]
    assert said.labels.tolist() == [False, True, True, False]
    assert not said.grades.flags.writeable


def test_grades_are_joined_and_divided_as_the_first_were():
    first, second = graded([1, 5, 3, 2]), graded([9, 8, 9, 7])
    both = first.concat(second)
    assert both.grades.tolist() == [1, 5, 3, 2, 9, 8, 9, 7]
    assert both.reading == first.reading
    assert both.labels.tolist() == (both.grades > first.reading.threshold).tolist()
    with pytest.raises(ValueError):
        first.concat(graded([True, False]))
    with pytest.raises(ValueError):
        first.concat(graded(["bad", "good"], grades=WORDS))


def test_grades_are_read_as_before():
    known = read_answers([1, 2, 3, 7]).reading
    again = read_answers([1, 1], reading=known)
    assert again.grades.tolist() == [1, 1]
    assert again.reading == known
    words = read_answers(["good"], grades=WORDS).reading
    assert read_answers(["Bad"], reading=words).grades.tolist() == [0]
    with pytest.raises(ValueError):
        read_answers([1, 2], reading=known, threshold=9)
    with pytest.raises(ValueError):
        read_answers([1, 2, 3], reading=graded([0, 1]).reading, grades=True)


def test_grades_count_in_fingerprints_and_duplicates():
    said = graded([1, 5, 3, 4])
    assert fingerprint(said) != fingerprint(graded([1, 5, 3, 5]))
    twice = {"users": [1, 1, 1], "items": [0, 0, 0], "labels": [4, 5, 4], "features": [[1.0]]}
    merged = Annotations(**twice, grades=True, duplicates="weights")
    assert merged.grades.tolist() == [4, 5]
    assert merged.weights.tolist() == [2, 1]


def test_grades_become_choices_among_lower_ones():
    rng = np.random.default_rng(0)
    grades = rng.integers(1, 5, 40)
    users = np.repeat([0, 1], 20)
    said = Annotations(users, np.arange(40), grades, rng.normal(size=(40, 2)))
    sets = said.choices(most=3)
    assert sets.grades is None
    for group in np.unique(sets.choice_set_codes):
        rows = sets[sets.choice_set_codes == group]
        best, *others = grades[rows.items.astype(int)]
        assert rows.labels.tolist() == [True] + [False] * len(others)
        assert 1 <= len(others) <= 3
        assert max(others) < best
        assert rows.n_users == 1
    lowest = sum(int((grades[users == i] == grades[users == i].min()).sum()) for i in (0, 1))
    assert len(np.unique(sets.choice_set_codes)) == 40 - lowest
    with pytest.raises(ValueError):
        sets.choices()
    with pytest.raises(ValueError):
        graded([3, 3], grades=True).choices()
    with pytest.raises(ValueError):
        said.choices(most=0)


def test_people_who_grade_and_people_who_compare_are_one_fit():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(30, 3))
    taste = np.array([1.5, -1.0, 0.5]) + 0.3 * rng.normal(size=(20, 3))
    liked = taste @ features.T
    users, items = np.divmod(np.arange(300), 30)
    noisy = liked[:10] + rng.logistic(size=(10, 30))
    said = Annotations(users, items, np.clip(np.round(4 + noisy.ravel()), 1, 7), features)
    who = np.repeat(np.arange(10, 20), 20)
    pairs = np.array([rng.choice(30, 2, replace=False) for _ in who])
    gap = liked[who, pairs[:, 0]] - liked[who, pairs[:, 1]]
    wins = rng.random(200) < 1 / (1 + np.exp(-gap))
    winners, losers = np.where(wins, pairs.T, pairs.T[::-1])
    compared = Annotations.from_comparisons(who, winners, losers, features=said)
    ranker = HierarchicalRanker(n_groups=0).fit(said.choices().concat(compared))
    assert ranker.loss_ == "choice"
    assert len(ranker.users_) == 20
    found = [np.corrcoef(features @ w, liked[i])[0, 1] for i, w in enumerate(ranker.coef_)]
    assert min(found) > 0.8


def test_where_grades_are_divided():
    assert divide_evenly(np.array([1.0, 1.0, 1.0, 2.0, 5.0])) == 1.0
    assert divide_evenly(np.array([3.0, 3.0])) == 3.0


def test_measurements_are_grades_with_a_warning_only():
    values = np.random.default_rng(0).normal(size=600)
    users, items = np.repeat(np.arange(30), 20), np.tile(np.arange(20), 30)
    with pytest.warns(UserWarning, match="grades=True"):
        assert Annotations(users, items, values).grades is not None
    Annotations(users, items, np.round(values))  # a scale: warnings are errors here
