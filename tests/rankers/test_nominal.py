"""Labels of several classes without an order."""

import numpy as np
import pandas as pd
import pytest

from likeminds import (
    Annotations,
    HierarchicalRanker,
    NominalRanker,
    ThreeLevelRanker,
    agreement,
    load,
    read_card,
    save,
    split_within_users,
)
from likeminds.metrics import score_choices
from likeminds.rankers.nominal import label_codes, row_chances

CLASSES = ("fine", "spam", "toxic")


def make_crowd(n_users=24, n_items=60, n_each=24, seed=0):
    """Two schools exchange spam and toxic on half of the items; one label in ten is random."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n_items)
    blurred = (truth > 0) & (np.arange(n_items) % 2 == 0)
    users = np.repeat(np.arange(n_users), n_each)
    items = np.concatenate([rng.permutation(n_items)[:n_each] for _ in range(n_users)])
    said = np.where(blurred[items] & (users % 2 == 1), 3 - truth[items], truth[items])
    said = np.where(rng.random(len(said)) < 0.1, rng.integers(3, size=len(said)), said)
    labels = np.array(CLASSES)[said]
    return Annotations(users, items, labels, nominal=True), labels, blurred


@pytest.fixture(scope="module")
def crowd():
    return make_crowd()


@pytest.fixture(scope="module")
def model(crowd):
    return NominalRanker().fit(crowd[0])


def test_a_label_is_a_choice_set_with_a_row_per_class(crowd):
    annotations, labels, _ = crowd
    assert len(annotations) == 3 * len(labels)
    assert annotations.attribute_ids.tolist() == list(CLASSES)
    for number in (0, 7, len(labels) - 1):
        rows = annotations[annotations.choice_set_codes == number]
        assert rows.attributes.tolist() == list(CLASSES)
        assert rows.labels.tolist() == [labels[number] == name for name in CLASSES]
        assert len(set(rows.items.tolist())) == len(set(rows.users.tolist())) == 1
    assert np.array(CLASSES)[label_codes(annotations)].tolist() == labels.tolist()
    assert repr(annotations).startswith(f"Annotations: {len(labels)} labels of 3 classes by 24")
    one = annotations.of_attribute("spam")
    assert one.choice_set_codes is None
    assert one.labels.tolist() == (labels == "spam").tolist()


def test_no_label_is_split(crowd):
    train, test = split_within_users(crowd[0], 0.25, 0)
    assert len(train) + len(test) == len(crowd[0])
    for side in (train, test):
        assert (np.bincount(side.choice_set_codes) == 3).all()


def test_classes_are_read_as_given_and_as_before():
    given = {"users": list("aab"), "items": list("xyx"), "labels": [3, 1, 3]}
    listed = Annotations(**given, nominal=[1, 2, 3])
    assert label_codes(listed).tolist() == [2, 0, 2]
    later = Annotations(["c"], ["y"], ["2"], reading=listed.reading)
    assert label_codes(listed.concat(later)).tolist() == [2, 0, 2, 1]
    frame = pd.DataFrame(
        {"user": list("aab"), "item": list("xyx"), "vote": ["agree", "pass", "no"]}
    )
    assert Annotations.from_frame(frame, nominal=True).n_attributes == 3  # a pass is a class
    twice = Annotations(list("aaa"), list("xxy"), list("ppq"), nominal=True, duplicates="weights")
    assert twice.weights.tolist() == [2, 2, 1, 1]


def test_probabilities_are_those_of_each_class_over_their_sum(model, crowd):
    annotations, labels, _ = crowd
    found = model.predict_proba(annotations)
    each = {name: HierarchicalRanker().fit(annotations.of_attribute(name)) for name in CLASSES}
    users, items = annotations.users[::3], annotations.items[::3]
    for row in (0, 5, 100):
        none = np.zeros((1, 0))
        chances = [
            each[name].predict_proba(none, users[row : row + 1], items[row : row + 1])[0, 1]
            for name in CLASSES
        ]
        np.testing.assert_allclose(found[row], np.array(chances) / sum(chances))
    assert model.classes_.tolist() == list(CLASSES)
    predicted = model.predict(annotations)
    assert predicted.tolist() == [CLASSES[code] for code in found.argmax(axis=1)]
    assert model.score(annotations) == pytest.approx((predicted == labels).mean())


def test_schools_with_other_standards_are_predicted():
    annotations, _, blurred = make_crowd(40, n_each=30, seed=1)
    train, test = split_within_users(annotations, 0.3, 0)
    model = NominalRanker().fit(train)
    chances = row_chances(test, model.predict_proba(test))
    accuracy = score_choices(test, chances, chances).accuracy.mean
    assert accuracy > 0.85  # 0.93 at best
    rows = test[test.labels]
    vote = np.zeros((60, 3))
    np.add.at(vote, (train.items[train.labels], train.attribute_codes[train.labels]), 1.0)
    majority = vote[rows.items].argmax(axis=1) == rows.attribute_codes
    assert accuracy > majority.mean() + 0.02
    shares = model.soft_labels(train)
    disputed = shares.shares[blurred]
    assert abs(disputed[:, 1] - disputed[:, 2]).mean() < 0.3  # half say spam, half toxic


def test_soft_labels_count_labels_as_they_are_and_predict_the_others(model, crowd):
    annotations, labels, _ = crowd
    found = model.soft_labels(annotations)
    item = found.items.tolist().index(7)
    total = np.zeros(3)
    for user in model.users_.tolist():
        own = labels[(annotations.users[::3] == user) & (annotations.items[::3] == 7)]
        chances = model.predict_proba(np.zeros((1, 0)), [user], [7])[0]
        total += [name == own[0] for name in CLASSES] if len(own) else chances
    np.testing.assert_allclose(found.shares[item], total / len(model.users_))
    np.testing.assert_allclose(model.soft_labels().shares, found.shares)
    table = found.to_pandas()
    assert table.columns.tolist() == ["item", "votes", *(f"share_{name}" for name in CLASSES)]
    assert table.votes.sum() == len(labels)


def test_saved_loaded_updated(model, crowd, tmp_path):
    annotations, _, _ = crowd
    path = save(model, tmp_path / "model.likeminds", with_data=True)
    assert list(read_card(path)["attributes"]) == list(CLASSES)
    again = load(path)
    assert isinstance(again, NominalRanker)
    np.testing.assert_array_equal(
        again.predict_proba(annotations), model.predict_proba(annotations)
    )
    more = Annotations(["new"] * 2, [3, 4], ["spam", "fine"], reading=again.label_reading_)
    assert again.update(more).users_.tolist()[-1] == "new"
    assert again.predict(more).shape == (2,)


def test_new_users(model, crowd):
    rows = crowd[0].of_user(3)
    new = model.newcomer(rows).predict_proba(rows)
    np.testing.assert_allclose(new.sum(axis=1), 1.0)
    assert (new.argmax(axis=1) == model.predict_proba(rows).argmax(axis=1)).mean() > 0.9


def test_agreement_is_that_of_classes():
    users, items = list("abcabcab"), [0, 0, 0, 1, 1, 1, 2, 2]
    labels = ["p", "p", "q", "r", "r", "r", "q", "q"]
    found = agreement(Annotations(users, items, labels, nominal=True), n_bootstrap=0)
    # Krippendorff (2011): 1 - (n - 1) sum of disagreeing pairs / (m_u - 1), over those by chance.
    observed = 2 * 2 / 2
    counts = np.array([2, 3, 3])
    expected = 1 - 7 * observed / (64 - (counts**2).sum())
    assert found["alpha (nominal)"].value == pytest.approx(expected)
    assert "ICC(1)" not in [one.name for one in found.coefficients]


def test_other_labels_are_refused(model, crowd):
    annotations = crowd[0]
    with pytest.raises(ValueError):
        NominalRanker().fit(annotations[:4])
    with pytest.raises(TypeError):
        NominalRanker().fit(annotations.of_attribute("spam"))
    with pytest.raises(TypeError):
        NominalRanker(ThreeLevelRanker()).fit(annotations)
    with pytest.raises(ValueError):
        HierarchicalRanker().fit(annotations)
    other = Annotations([1], [1], ["ham"], nominal=["fine", "ham"])
    for refused in (model.update, model.newcomer, model.score, model.soft_labels):
        with pytest.raises(ValueError):
            refused(other)
    never = Annotations([1, 2], [1, 1], ["a", "b"], nominal=["a", "b", "c"])
    with pytest.raises(ValueError):
        NominalRanker().fit(never)
    with pytest.raises(ValueError):
        agreement(annotations, levels=["nominal", "ordinal"])
