from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from learned_model import LOW_RANK, make_objective
from likeminds import Annotations, HierarchicalRanker, load, make_schools, save
from likeminds.mixed_model import fit_prior
from likeminds.mixed_model.fit_prior import SubsamplePlan, SubsampleRecord


@pytest.fixture(scope="module")
def schools():
    return make_schools(1600, 20, 4000, 16, random_state=0).annotations


@pytest.fixture
def small_samples(monkeypatch):
    """Crowds of a test count as large ones."""
    monkeypatch.setattr(fit_prior, "_FEWEST", 300)


def objective_of(annotations):
    return replace(
        make_objective(annotations, np.random.default_rng(0), rank=2), structure=LOW_RANK
    )


def test_as_many_learn_and_correct_as_the_excess_allows(schools):
    start = objective_of(schools)
    crowd = start.responses
    assert SubsamplePlan.of(start, crowd, 1e-5) is None  # fewer than four samples of the least size
    plan = SubsamplePlan(n_numbers=170, n_labels=20.0, n_learned=400, n_asked=800)
    assert plan.excess(400, 1600) == pytest.approx(170 / 40 * (1 / 400 - 1 / 1600))
    assert plan.excess(1600, 1600) == 0.0


def test_a_smaller_tolerance_takes_more_people(schools, small_samples):
    start = objective_of(schools)
    few, many = (SubsamplePlan.of(start, start.responses, tol) for tol in (2e-4, 1e-4))
    n_numbers = len(start.start)
    assert few.n_numbers == many.n_numbers == n_numbers
    assert few.n_labels == pytest.approx(20.0)
    assert few.n_learned == 300
    assert few.n_asked < many.n_asked == 1600
    excess = few.excess(few.n_asked, start.responses.n_users)
    assert excess <= 10 * 2e-4
    assert SubsamplePlan.of(start, start.responses, 1e-9) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [{"n_groups": 2, "tol": 1e-4}, {"n_groups": 2, "tol": 3e-4, "loss": "auc"}],
    ids=["low rank", "auc"],
)
def test_a_sample_corrected_finds_what_everybody_says(schools, monkeypatch, tmp_path, parameters):
    ranker = HierarchicalRanker(item_effects=False, **parameters)
    whole = ranker.fit(schools)
    assert whole.sampling_ is None
    coef, objective = whole.coef_, whole.objective_
    monkeypatch.setattr(fit_prior, "_FEWEST", 300)
    found = HierarchicalRanker(item_effects=False, **parameters).fit(schools)
    told = found.sampling_
    assert isinstance(told, SubsampleRecord)
    assert told.n_learned < told.n_asked == schools.n_users
    assert told.n_steps == found.n_iter_ >= 1
    assert told.excess < 10 * found.tol
    # Everybody's objective, per label: as low as that of the fit to everybody, or lower.
    assert (found.objective_ - objective) / len(schools) < parameters["tol"]
    assert np.linalg.norm(found.coef_ - coef) < 0.02 * np.linalg.norm(coef)
    path = save(found, tmp_path / "sampled.likeminds")
    assert load(path).sampling_ == told


@pytest.mark.slow
def test_corrected_steps_keep_what_they_promise(schools, small_samples):
    seen = []
    ranker = HierarchicalRanker(
        n_groups=2, item_effects=False, tol=1e-4, callback=lambda *step: seen.append(step) or False
    )
    told = ranker.fit(schools).sampling_
    again = clone(ranker).fit(schools)
    np.testing.assert_array_equal(again.coef_, ranker.coef_)
    np.testing.assert_array_equal(again.information_, ranker.information_)
    assert again.sampling_ == told
    assert told.gained[0] == pytest.approx(told.promised[0], rel=0.3)
    assert told.gained == sorted(told.gained, reverse=True)
    assert np.all(np.diff(ranker.objective_trace_) < 0)
    seen = seen[: told.n_steps]
    assert [number for number, *_ in seen] == list(range(1, told.n_steps + 1))
    assert [value for _, value, _ in seen] == ranker.objective_trace_[1:].tolist()


@pytest.mark.slow
def test_covariates_and_items_are_learned_from_everybody(schools, small_samples):
    some = schools.of_users(schools.user_ids[:1250].tolist())
    users = {person: {"age": float(place % 7)} for place, person in enumerate(some.user_ids)}
    known = Annotations(
        users=some.users,
        items=None,
        labels=some.labels,
        features=some.X[:, :3],
        user_features=users,
    )
    assert HierarchicalRanker(n_groups=1, tol=1e-2).fit(known).sampling_ is None
    crossed = HierarchicalRanker(n_groups=1, n_item_factors=0, tol=1e-2).fit(some)
    assert crossed.item_effects_
    assert crossed.sampling_ is None
