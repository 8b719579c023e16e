"""What is known about people besides their labels."""

import numpy as np
import pyarrow as pa
import pytest

from likeminds import Annotations
from likeminds.data.covariates import CovariateEncoder, Covariates

PEOPLE = {
    "ann": {"age": 20, "town": "A"},
    "bob": {"age": 30, "town": "B"},
    "cat": {"age": 40, "town": "A"},
    "dan": {"age": None, "town": "B"},
    "eve": {"age": 50.0, "town": "A"},
    "flo": {"town": "B"},
    "gus": {"age": float("nan"), "town": "C"},
}


def labels(positions=None, users=("ann", "bob", "ann")):
    return Annotations(
        users=users,
        items=None,
        labels=[1, 0, 0],
        features=[[1.0], [2.0], [3.0]],
        user_features=positions,
    )


def test_numbers_are_standardised_and_categories_one_hot():
    users = Covariates.read(PEOPLE)
    encoder = CovariateEncoder.of(users)
    assert encoder.columns == (("age", None), ("town", "A"), ("town", "B"))
    age = (np.array([20, 30, 40, 50]) - 35) / np.std([20, 30, 40, 50])
    z = encoder(users)
    np.testing.assert_allclose(z[[0, 1, 2, 4], 0], age)
    # A category of fewer than three people, and what is missing, are the crowd's mean.
    assert not z[[3, 5, 6], 0].any()
    assert not z[6].any()
    np.testing.assert_allclose(z[:6].mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(z[:6, 1:].var(axis=0).sum(), 1.0)


def test_who_and_what_was_never_seen_is_the_mean():
    encoder = CovariateEncoder.of(Covariates.read(PEOPLE))
    strangers = Covariates.read({"zoe": {"town": "Z"}, "yan": {"age": 35.0}})
    assert not encoder(strangers).any()
    assert not encoder.of_users(strangers, np.array(["nobody"], dtype=object)).any()
    assert not encoder.of_users(None, np.array(["ann"], dtype=object)).any()


def test_what_does_not_differ_is_said():
    same = Covariates.read({k: {"a": 1.3, "name": f"n{k}", "b": k} for k in range(5)})
    with pytest.warns(UserWarning, match="are not used"):
        encoder = CovariateEncoder.of(same)
    assert encoder.columns == (("b", None),)
    assert encoder(same).shape == (5, 1)


@pytest.mark.parametrize(
    ("users", "told"),
    [
        ({"ann": 3}, "must map each user.*'ann'"),
        ({"ann": {}}, "has ids only"),
        ({"ann": {"age": 3}, "bob": {"age": "old"}}, "'age' has both numbers and texts"),
        ({"ann": {"age": np.inf}}, "age contains NaN or infinity"),
        (
            pa.table({"person": ["a", "a"], "age": [1, 2]}),
            "distinct, but these occur more than once: a",
        ),
        (pa.table({"age": [1, 2]}), "No column is called user"),
    ],
)
def test_what_is_wrong_is_said(users, told):
    with pytest.raises(ValueError, match=told):
        Covariates.read(users)


def test_other_covariates_than_those_learned_are_refused():
    encoder = CovariateEncoder.of(Covariates.read(PEOPLE))
    with pytest.raises(ValueError):
        encoder(Covariates.read({"zoe": {"height": 3}}))
    with pytest.raises(ValueError):
        encoder(Covariates.read({"zoe": {"age": "old"}}))


def test_files_have_texts_for_ids(tmp_path):
    (tmp_path / "people.csv").write_text("person,age,town\n007,31,A\n7,,B\n")
    (tmp_path / "labels.csv").write_text("person,label,x\n007,1,0.5\n7,0,1\n")
    said = Annotations.from_csv(tmp_path / "labels.csv", user_features=tmp_path / "people.csv")
    assert said.user_features.ids.tolist() == ["007", "7"]
    np.testing.assert_array_equal(said.user_features.columns[0], [31.0, np.nan])
    assert said.user_features.columns[1].tolist() == ["A", "B"]


def test_a_named_index_is_a_column():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"person": ["zoe", "ann"], "age": [30, 41]})
    by_index = Covariates.read(frame.set_index("person"))
    assert by_index.ids.tolist() == ["zoe", "ann"]
    assert by_index.names == Covariates.read(frame).names == ("age",)


def test_ids_are_written_as_the_labels_have_them():
    said = labels({"1": {"age": 3}, "2": {"age": 4}}, users=[1, 2, 1])
    assert said.user_features.ids.tolist() == [1, 2]
    assert said[:1].user_features is said.user_features
    assert said.with_user_features({1: {"age": 9}}).user_features.columns[0].tolist() == [9.0]


def test_people_are_joined():
    ours = labels(PEOPLE)
    both = ours.concat(labels({"zoe": {"age": 3}, "flo": {"age": 9}}, users=("zoe", "zoe", "ann")))
    assert both.user_features.ids.tolist() == [*PEOPLE, "zoe"]
    found = both.user_features.of(["flo", "zoe", "nobody"])
    np.testing.assert_array_equal(found.columns[0], [9.0, 3.0, np.nan])
    assert found.columns[1].tolist() == ["B", None, None]
    assert ours.concat(labels()).user_features is ours.user_features
    with pytest.raises(ValueError):
        ours.concat(labels({"ann": {"age": 21}}))
    with pytest.raises(ValueError):
        ours.concat(labels({"ann": {"height": 21}}))
    with pytest.raises(ValueError):
        ours.concat(labels({"ann": {"town": 21}}))


def test_covariates_without_variance_may_be_of_another_kind_later():
    users = Covariates.read({k: {"age": k, "town": None} for k in range(6)})
    with pytest.warns(UserWarning, match="town"):
        encoder = CovariateEncoder.of(users)
    later = Covariates.read({9: {"age": 3, "town": "Bern"}})
    assert encoder(later).shape == (1, 1)
    with pytest.raises(ValueError, match="categories"):
        encoder(Covariates.read({9: {"age": "old"}}))
