"""Simulated crowds are what they promise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likeminds import make_schools, make_simulation
from likeminds.datasets import Simulation
from likeminds.metrics import auc_by_user, mean_auc


def scores_of(simulation, coef):
    """Score every row with its person's weights."""
    annotations = simulation.annotations
    rows = annotations.features[annotations.feature_rows]
    return np.einsum("ij,ij->i", rows, coef[annotations.user_codes])


def assert_same(one, other):
    np.testing.assert_array_equal(one.annotations.features, other.annotations.features)
    np.testing.assert_array_equal(one.annotations.labels, other.annotations.labels)
    np.testing.assert_array_equal(one.annotations.item_codes, other.annotations.item_codes)
    np.testing.assert_array_equal(one.coef, other.coef)
    np.testing.assert_array_equal(one.school, other.school)


@pytest.fixture(scope="module")
def paper():
    """The paper's people and features, with fewer samples of each person."""
    return make_simulation(n_samples=300, n_positive=6, random_state=0)


class TestSimulation:
    @pytest.mark.slow
    def test_by_default_has_the_sizes_of_the_paper(self):
        simulation = make_simulation(random_state=0)
        annotations = simulation.annotations
        assert annotations.features.shape == (500_000, 80)
        np.testing.assert_array_equal(annotations.feature_rows, np.arange(500_000))
        counts = np.bincount(annotations.user_codes)
        positives = np.bincount(annotations.user_codes, weights=annotations.labels)
        np.testing.assert_array_equal(counts, np.full(100, 5000))
        np.testing.assert_array_equal(positives, np.full(100, 100))
        assert auc_by_user(
            annotations.labels, scores_of(simulation, simulation.coef), annotations.user_codes
        ).values == pytest.approx(1.0, abs=1e-4)

    def test_group_blocks_are_those_of_the_paper(self, paper):
        # (features, people), from 1 and inclusive, as in the paper.
        blocks = [
            ((1, 20), (1, 20)),
            ((21, 40), (21, 40)),
            ((41, 50), (41, 60)),
            ((51, 70), (61, 80)),
            ((71, 80), (81, 100)),
        ]
        G, expected_school = paper.group.T, np.empty(100)
        inside = np.zeros((80, 100), dtype=bool)
        for school, ((f1, f2), (u1, u2)) in enumerate(blocks):
            block = np.s_[f1 - 1 : f2, u1 - 1 : u2]
            inside[block] = True
            expected_school[u1 - 1 : u2] = school
            # Around a centroid in (0, 10), with a standard deviation of 2.5.
            assert G[block].std() == pytest.approx(2.5, rel=0.2)
            assert -1 < G[block].mean() < 11
        assert np.all(G[inside] != 0)
        assert np.all(G[~inside] == 0)
        np.testing.assert_array_equal(paper.school, expected_school)

    def test_centroids_differ_between_schools(self, paper):
        means = [paper.group[paper.school == k].sum() for k in range(5)]
        assert len({round(mean) for mean in means}) == 5

    def test_personal_columns_are_those_of_the_paper(self, paper):
        users = np.zeros(100, dtype=bool)
        for first, last in [(1, 5), (10, 15), (20, 25)]:
            users[first - 1 : last] = True
        assert np.all((paper.personal[users] > 0) & (paper.personal[users] < 10))
        assert np.all(paper.personal[~users] == 0)
        assert paper.personal[users].mean() == pytest.approx(5, abs=0.5)

    def test_consensus_is_uniform_plus_noise(self):
        consensus = make_simulation(
            1, 2, 20_000, n_positive=1, consensus_high=5, consensus_spread=0.5, random_state=0
        ).consensus
        assert consensus.mean() == pytest.approx(2.5, abs=0.05)
        assert consensus.var() == pytest.approx(25 / 12 + 0.25, rel=0.05)

    def test_weights_are_the_sum_of_the_levels(self, paper):
        np.testing.assert_array_equal(
            paper.coef, paper.consensus[None] + paper.group + paper.personal
        )

    def test_without_noise_the_positives_are_the_highest_scores(self):
        simulation = make_simulation(7, 40, 16, n_positive=9, noise=0.0, random_state=3)
        scores = scores_of(simulation, simulation.coef).reshape(7, 40)
        labels = simulation.annotations.labels.reshape(7, 40)
        assert np.all(labels.sum(axis=1) == 9)
        lowest_positive = np.where(labels, scores, np.inf).min(axis=1)
        highest_negative = np.where(labels, -np.inf, scores).max(axis=1)
        assert np.all(lowest_positive > highest_negative)

    def test_noise_blurs_the_labels(self):
        simulation = make_simulation(5, 200, 8, n_positive=50, noise=100.0, random_state=0)
        annotations = simulation.annotations
        scores = scores_of(simulation, simulation.coef)
        assert mean_auc(annotations.labels, scores, annotations.user_codes) < 0.8

    @settings(max_examples=30, deadline=None)
    @given(st.integers(1, 130), st.integers(1, 90))
    def test_blocks_keep_their_shares_at_any_size(self, n_users, n_features):
        simulation = make_simulation(n_users, 2, n_features, n_positive=1, random_state=0)
        assert simulation.group.shape == simulation.personal.shape == (n_users, n_features)
        assert np.all(np.diff(simulation.school) >= 0)
        sizes = np.bincount(simulation.school, minlength=5)
        assert len(sizes) == 5
        assert np.all(np.abs(sizes - n_users / 5) <= 1)
        personal = np.count_nonzero(simulation.personal.any(axis=1))
        assert abs(personal - 0.17 * n_users) <= 3

    def test_same_seed_same_data(self):
        options = {"n_users": 4, "n_samples": 20, "n_features": 8, "n_positive": 3}
        one = make_simulation(**options, random_state=5)
        assert_same(one, make_simulation(**options, random_state=5))
        assert_same(one, make_simulation(**options, random_state=np.random.default_rng(5)))
        assert not np.array_equal(one.coef, make_simulation(**options, random_state=6).coef)


class TestSchools:
    def test_knowing_the_schools_pays(self):
        simulation = make_schools(random_state=0)
        annotations = simulation.annotations
        rng = np.random.default_rng(1)
        fresh = rng.standard_normal((500, 200))
        scores = fresh @ simulation.coef.T
        labels = scores > np.quantile(scores, 0.7, axis=0)
        labels ^= rng.random(labels.shape) < 0.05
        users = np.broadcast_to(np.arange(200), labels.shape)

        def auc(coef):
            return mean_auc(labels.ravel(), (fresh @ coef.T).ravel(), users.ravel())

        assert 0.66 < auc(np.tile(simulation.consensus, (200, 1))) < 0.74
        assert auc(simulation.consensus + simulation.group) > 0.88
        assert auc(simulation.coef) > 0.9
        assert (
            mean_auc(
                annotations.labels, scores_of(simulation, simulation.coef), annotations.user_codes
            )
            > 0.9
        )

    def test_items_are_shared_and_labelled_once_by_a_person(self):
        annotations = make_schools(30, 12, 40, 20, random_state=0).annotations
        assert annotations.features.shape == (40, 20)
        assert annotations.features_per == "item"
        seen = annotations.item_codes.reshape(30, 12)
        assert all(len(set(row)) == 12 for row in seen.tolist())
        assert len(np.unique(seen)) == 40

    def test_schools_oppose_each_other_on_the_contested_features(self):
        simulation = make_schools(n_users=9, n_schools=3, contested=0.1, random_state=0)
        by_school = np.array([simulation.group[simulation.school == k][0] for k in range(3)])
        np.testing.assert_allclose(by_school.sum(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(by_school, axis=1), 1.75)
        assert np.count_nonzero(by_school.any(axis=0)) == 20
        for k in range(3):
            members = simulation.group[simulation.school == k]
            np.testing.assert_array_equal(members, members[:1].repeat(len(members), axis=0))
            assert len(members) == 3

    def test_two_schools_are_opposites(self):
        simulation = make_schools(n_users=2, n_schools=2, random_state=0)
        np.testing.assert_allclose(simulation.group[0], -simulation.group[1], atol=1e-12)

    def test_one_school_is_the_consensus(self):
        assert not make_schools(n_users=3, n_schools=1, random_state=0).group.any()

    def test_loners_belong_to_no_school(self):
        simulation = make_schools(n_users=20, n_loners=4, school_strength=3.0, random_state=0)
        np.testing.assert_array_equal(simulation.school[-4:], -1)
        assert np.all(simulation.school[:-4] >= 0)
        assert not simulation.group[-4:].any()
        lengths = np.linalg.norm(simulation.personal, axis=1)
        np.testing.assert_allclose(lengths, [0.4] * 16 + [3.0] * 4)

    def test_share_of_positives_is_the_one_asked_for(self):
        labels = make_schools(positive_rate=0.2, label_noise=0.0, random_state=0).annotations.labels
        np.testing.assert_array_equal(labels.reshape(200, 50).sum(axis=1), 10)

    def test_noise_flips_the_share_of_labels_asked_for(self):
        clean, noisy = (
            make_schools(label_noise=noise, random_state=0).annotations for noise in (0.0, 0.1)
        )
        np.testing.assert_array_equal(clean.item_codes, noisy.item_codes)
        assert np.mean(clean.labels != noisy.labels) == pytest.approx(0.1, abs=0.01)

    @settings(max_examples=30, deadline=None)
    @given(st.integers(2, 6), st.floats(0, 1), st.floats(0, 1), st.integers(0, 1000))
    def test_everybody_has_labels_of_both_kinds(self, n_labels, rate, noise, seed):
        annotations = make_schools(
            20, n_labels, 6, 12, positive_rate=rate, label_noise=noise, random_state=seed
        ).annotations
        share = annotations.labels.reshape(20, n_labels).mean(axis=1)
        assert np.all((share > 0) & (share < 1))

    def test_more_people_than_fit_in_one_go(self):
        simulation = make_schools(600, 5, 30, 12, label_noise=0.0, random_state=0)
        annotations = simulation.annotations
        scores = scores_of(simulation, simulation.coef)
        assert mean_auc(annotations.labels, scores, annotations.user_codes) == 1.0

    def test_same_seed_same_data(self):
        one, other = (make_schools(8, 5, 20, 12, random_state=seed) for seed in (2, 2))
        assert isinstance(one, Simulation)
        assert_same(one, other)
