"""Sketch shoes: pictures of shoes, people who label them, and features from the pixels."""

import numpy as np
import pytest

from likeminds import Annotations, ThreeLevelRanker, make_sketch_shoes, split_within_users
from likeminds.baselines import ConsensusOnly
from likeminds.datasets.sketch_shoes import ATTRIBUTES, OPINIONS, TRAITS, draw_opinions
from likeminds.features import GIST, ColourHistogram
from likeminds.metrics import auc_by_user

SMALL = {"n_pictures": 24, "users_per_attribute": 12, "pictures_each": 20, "n_components": 3}


def quick(**options):
    return make_sketch_shoes(**(SMALL | options))


@pytest.fixture(scope="module")
def shoes():
    return make_sketch_shoes(250, users_per_attribute=60)


class TestCrowd:
    @pytest.mark.slow
    def test_has_the_sizes_asked_for(self, shoes):
        annotations = shoes.annotations
        assert isinstance(annotations, Annotations)
        assert tuple(annotations.attribute_ids) == ATTRIBUTES == shoes.attributes
        assert len(ATTRIBUTES) == 7
        assert annotations.n_users == 60
        assert annotations.features.shape == (250, 60)
        assert len(annotations) == 7 * 60 * 50
        assert annotations.item_ids[[0, -1]].tolist() == ["shoe-00000", "shoe-00249"]
        assert len(shoes.pictures) == len(shoes.kinds) == 250
        assert shoes.traits.shape == (250, len(TRAITS))
        assert shoes.schools.shape == (60, 7)
        assert shoes.weights.shape == (60, 7, len(TRAITS))
        for rows in annotations.by_attribute().values():
            seen = rows.item_codes.reshape(60, 50)
            assert all(len(set(row)) == 50 for row in seen.tolist())

    @pytest.mark.slow
    def test_everybody_gives_enough_labels_of_both_kinds(self, shoes):
        for rows in shoes.annotations.by_attribute().values():
            assert np.mean(rows.label_counts().min(axis=1) >= 8) > 0.95

    def test_without_noise_labels_follow_the_weights(self):
        made = quick(label_noise=0.0)
        for k, rows in enumerate(made.annotations.by_attribute().values()):
            weights = made.weights[rows.user_codes, k]
            scores = np.einsum("ij,ij->i", made.traits[rows.item_codes], weights)
            assert auc_by_user(rows.labels, scores, rows.user_codes).values == pytest.approx(1.0)

    def test_noise_flips_the_share_of_labels_asked_for(self):
        clean, noisy = (
            quick(label_noise=noise, users_per_attribute=150).annotations for noise in (0.0, 0.1)
        )
        np.testing.assert_array_equal(clean.item_codes, noisy.item_codes)
        assert np.mean(clean.labels != noisy.labels) == pytest.approx(0.1, abs=0.01)

    def test_loners_belong_to_no_school(self):
        made = quick(users_per_attribute=40, loners=0.1)
        np.testing.assert_array_equal((made.schools < 0).sum(axis=0), 4)
        spread = np.linalg.norm(made.weights - made.consensus, axis=2)
        assert spread[made.schools < 0].mean() > 0.8

    @pytest.mark.parametrize("attribute", ATTRIBUTES)
    def test_schools_differ_and_sum_to_nothing(self, attribute):
        rng = np.random.default_rng(0)
        school, _, group, _ = draw_opinions(rng, OPINIONS[attribute], 30, 3)
        centres = np.array([group[school == k][0] for k in range(3)])
        np.testing.assert_allclose(centres.sum(axis=0), 0, atol=1e-12)
        assert np.linalg.norm(centres, axis=1).min() > 0.5
        assert not group[school < 0].any()
        words = [OPINIONS[attribute][0], *OPINIONS[attribute][1].values()]
        assert {name for word in words for name in word} <= set(TRAITS)

    def test_open_means_different_things(self, shoes):
        rows = shoes.annotations.of_attribute("open")
        school = shoes.schools[:, ATTRIBUTES.index("open")][rows.user_codes]
        toe, back = (
            shoes.traits[rows.item_codes, TRAITS.index(name)] for name in ("toe_open", "back_open")
        )

        def preference(trait, members):
            return trait[members & rows.labels].mean() - trait[members & ~rows.labels].mean()

        assert preference(toe, school == 0) > preference(toe, school == 1) + 0.2
        assert preference(back, school == 1) > preference(back, school == 0) + 0.2

    def test_same_seed_same_data(self):
        one, other = (quick(random_state=3) for _ in range(2))
        np.testing.assert_array_equal(one.annotations.labels, other.annotations.labels)
        np.testing.assert_array_equal(one.annotations.features, other.annotations.features)
        np.testing.assert_array_equal(one.weights, other.weights)
        generated = quick(random_state=np.random.default_rng(3))
        np.testing.assert_array_equal(one.annotations.labels, generated.annotations.labels)

    def test_shoes_are_the_same_in_larger_sets(self):
        small, large = quick(), quick(n_pictures=30)
        assert large.kinds[:24] == small.kinds
        np.testing.assert_array_equal(large.pictures[:24], small.pictures)

    def test_some_attributes_will_do(self):
        made = quick(attributes=["pointy", "open"])
        assert made.attributes == ("pointy", "open")
        assert made.annotations.attribute_ids.tolist() == ["open", "pointy"]
        assert quick(attributes="open").annotations.n_attributes == 1


def without_the_edge_of_greys(features):
    """Add up the two bins of a*, and of b*, whose edge all greys are on, 73 % of the pixels.

    When the features were bundled, rounding decided the bin of each grey: up to 140 of the
    9,216 pixels of a picture are now in the other one.
    """
    features = features.copy()
    features[:, [526, 536]] += features[:, [527, 537]]
    return np.delete(features, [527, 537], axis=1)


class TestFeatures:
    def test_are_those_of_shoes(self):
        made = quick(n_components=None)
        extractors = GIST(), ColourHistogram("lab", bins=10)
        wanted = np.hstack([extractor.transform(made.pictures) for extractor in extractors])
        found, wanted = (
            without_the_edge_of_greys(features) for features in (made.annotations.features, wanted)
        )
        # Features are bundled in half precision: 4.9e-4 of each.
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-5)

    def test_are_principal_components(self):
        full = quick(n_components=None).annotations.features
        kept = quick(n_components=10).annotations.features.var(axis=0)
        assert np.all(np.diff(kept) <= 0)
        assert 0.6 * full.var(axis=0).sum() < kept.sum() < full.var(axis=0).sum()

    def test_know_nothing_of_the_crowd(self):
        one, other = (quick(users_per_attribute=n, label_noise=n / 40) for n in (5, 9))
        np.testing.assert_array_equal(one.annotations.features, other.annotations.features)

    def test_see_the_heel_and_the_colour(self, shoes):
        X = np.c_[shoes.annotations.features, np.ones(250)]
        train, test = np.s_[:180], np.s_[180:]
        for name, least in (("heel", 0.85), ("shaft", 0.85), ("light", 0.65), ("toe_open", 0.6)):
            trait = shoes.traits[:, TRAITS.index(name)]
            weights = np.linalg.lstsq(X[train], trait[train])[0]
            assert np.corrcoef(X[test] @ weights, trait[test])[0, 1] > least, name


@pytest.mark.slow
def test_schools_pay_on_held_out_labels(shoes):
    gains = []
    for rows in shoes.annotations.by_attribute().values():
        train, test = split_within_users(rows, test_size=0.3, random_state=0)
        consensus, levels = (
            ranker.fit(train).score(test) for ranker in (ConsensusOnly(), ThreeLevelRanker())
        )
        assert levels > 0.65
        gains.append(levels - consensus)
    assert np.sum(np.array(gains) > 0) >= 5
    assert np.mean(gains) > 0.03
