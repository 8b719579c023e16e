"""Which likelihood of grades is chosen, and by whom."""

import numpy as np
import pytest

from crowds import make_grades
from likeminds import Annotations, HierarchicalRanker, split_within_users
from likeminds.baselines import ConsensusOnly
from likeminds.datasets import make_schools
from likeminds.rankers import loss_selection
from likeminds.rankers.loss_selection import CANDIDATES, choose_grade_loss
from likeminds.rankers.training_data import TrainingData


@pytest.mark.seconds
def test_the_likelihood_is_chosen_by_held_out_people_and_kept():
    said = make_grades(np.random.default_rng(1))
    ranker = HierarchicalRanker(n_groups=0, n_item_factors=0)
    chosen, scores = choose_grade_loss(ranker, TrainingData.of(said))
    assert set(scores) == set(CANDIDATES)
    assert scores[chosen] == max(scores.values())
    first, more = said[said.user_codes < 25], said[said.user_codes >= 25]
    ranker.fit(first)
    kept = ranker.loss_
    assert kept == max(ranker.grade_scores_, key=ranker.grade_scores_.get)
    assert ranker.update(more).loss_ == kept
    assert choose_grade_loss(ranker, TrainingData.of(said[said.user_codes < 5])) == (
        "cumulative",
        {},
    )


@pytest.mark.parametrize(("noise", "expected"), [(0.2, "cumulative"), (0.01, "gaussian")])
def test_another_loss_is_chosen_if_its_lead_is_not_noise(noise, expected, monkeypatch):
    lead = 0.02 + noise * np.tile([-1.0, 1.0], 20)

    def scores_of(ranker, candidates, *halves):
        assert candidates
        return {name: 0.7 + lead * (name == "gaussian") for name in candidates}

    monkeypatch.setattr(loss_selection, "_try", scores_of)
    said = make_grades(np.random.default_rng(1))
    chosen, scores = choose_grade_loss(HierarchicalRanker(), TrainingData.of(said))
    assert chosen == expected
    assert scores["gaussian"] == pytest.approx(0.72)
    assert scores["cumulative"] == pytest.approx(0.7)


@pytest.mark.parametrize("n_item_factors", ["auto", 2, 0])
def test_the_best_and_the_default_are_compared_with_factors(n_item_factors, monkeypatch):
    tried = []

    def scores_of(ranker, candidates, *halves):
        tried.append((ranker.n_item_factors, *candidates))
        # "gaussian" is ahead without factors only.
        lead = 0.01 * np.tile([-1.0, 1.0], 10) + (0.1 if ranker.n_item_factors == 0 else -0.1)
        return {name: 0.7 + lead * (name == "gaussian") for name in candidates}

    monkeypatch.setattr(loss_selection, "_try", scores_of)
    data = TrainingData.of(make_grades(np.random.default_rng(1)))
    ranker = HierarchicalRanker(n_item_factors=n_item_factors)
    chosen, scores = choose_grade_loss(ranker, data)
    assert scores["gaussian"] == pytest.approx(0.8)
    assert chosen == ("cumulative" if n_item_factors else "gaussian")
    again = [(n_item_factors, "cumulative", "gaussian")] * 2
    assert tried[2:] == (again if n_item_factors else [])


@pytest.mark.parametrize(("n_features", "n_groups"), [(3, "auto"), (200, 0)])
def test_no_directions_are_tried_where_people_have_fewer_grades_than_features(
    n_features, n_groups, monkeypatch
):
    rng, tried = np.random.default_rng(2), []

    def judge(ranker, loss, learners, asked, held_out):
        tried.append((ranker.n_groups, loss))
        return rng.random(asked.n_users)

    monkeypatch.setattr(loss_selection, "_judge", judge)
    said = make_grades(rng)
    wide = Annotations(
        said.users, said.items, said.grades, rng.normal(size=(said.n_items, n_features))
    )
    ranker = HierarchicalRanker()
    choose_grade_loss(ranker, TrainingData.of(wide))
    assert set(tried) == {(n_groups, loss) for loss in CANDIDATES}
    assert ranker.n_groups == "auto"


@pytest.mark.seconds
@pytest.mark.parametrize("seed", [40, 41])
def test_users_weigh_independent_features_with_few_labels(seed):
    """Leading principal components of independent features hold only a part of their signal."""
    drawn = make_schools(150, 60, 1000, 60, 3, random_state=seed)
    train, test = split_within_users(drawn.annotations, 50 / 60, seed)
    ranker = HierarchicalRanker().fit(train)
    assert ranker.covariance_ == "low_rank"
    assert ranker.score(test) > ConsensusOnly().fit(train).score(test) + 0.08
