import numpy as np
import pytest
from sklearn.base import clone

from likeminds import Annotations, HierarchicalRanker, load, make_schools, save
from likeminds.prior import sampling
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.likelihoods import Logistic
from likeminds.prior.modes import find_mode
from likeminds.prior.objective import LOW_RANK, Model, Objective
from likeminds.prior.prior import Prior
from likeminds.prior.sampling import Plan, Sampling
from likeminds.prior.settling import _known, _nearly_known
from likeminds.prior.systems import system_of
from likeminds.prior.tasks import LabelTasks, TaskBlock, sample


@pytest.fixture(scope="module")
def schools():
    return make_schools(1600, 20, 4000, 16, random_state=0).annotations


@pytest.fixture
def small_samples(monkeypatch):
    """Crowds of a test count as large ones."""
    monkeypatch.setattr(sampling, "_FEWEST", 300)


def objective_of(annotations, rank=2):
    coordinates = Coordinates.of_annotations(annotations, standardize=True, intercept=True)
    tasks = LabelTasks.of_annotations(annotations, coordinates)
    rng, size = np.random.default_rng(0), coordinates.size
    residual = np.full(size, 0.3)
    prior = Prior(rng.normal(size=size), rng.normal(size=(size, rank)), residual)
    model = Model(prior, Logistic(), ridge=1.0)
    return Objective(tasks, coordinates.n_weights, model, np.ones(size), shape=LOW_RANK)


def test_as_many_learn_and_correct_as_the_excess_allows(schools):
    start = objective_of(schools)
    crowd = start.tasks
    assert Plan.of(start, crowd, 1e-5) is None  # fewer than four samples of the least size
    plan = Plan(n_numbers=170, n_labels=20.0, n_learned=400, n_asked=800)
    assert plan.excess(400, 1600) == pytest.approx(170 / 40 * (1 / 400 - 1 / 1600))
    assert plan.excess(1600, 1600) == 0.0


def test_a_smaller_tolerance_takes_more_people(schools, small_samples):
    start = objective_of(schools)
    few, many = (Plan.of(start, start.tasks, tol) for tol in (2e-4, 1e-4))
    n_numbers = len(start.start)
    assert few.n_numbers == many.n_numbers == n_numbers
    assert few.n_labels == pytest.approx(20.0)
    assert few.n_learned == 300
    assert few.n_asked < many.n_asked == 1600
    excess = few.excess(few.n_asked, start.tasks.n_people)
    assert excess <= 10 * 2e-4
    assert Plan.of(start, start.tasks, 1e-9) is None


def test_people_who_stand_for_others_have_the_objective_of_as_many(schools):
    start = objective_of(schools)
    some = sample(start.tasks, 200)
    one = Objective(some, start.n_weights, start.model, start.unit, shape=LOW_RANK)
    many = Objective(some, start.n_weights, start.model, start.unit, shape=LOW_RANK, stands_for=8.0)
    found, as_many = one.visit(start.model), many.visit(start.model)
    assert many.n_people == 1600
    assert as_many.n_people == 8 * found.n_people
    assert as_many.objective == pytest.approx(8 * found.objective)
    np.testing.assert_allclose(as_many.second, 8 * found.second)


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        {"n_groups": 2, "tol": 1e-4},
        {"n_groups": 2, "tol": 3e-4, "loss": "auc"},
        {"n_groups": 2, "tol": 1e-4, "covariance": "diagonal"},
    ],
    ids=["low rank", "auc", "diagonal"],
)
def test_a_sample_corrected_finds_what_everybody_says(schools, monkeypatch, tmp_path, parameters):
    ranker = HierarchicalRanker(item_effects=False, **parameters)
    whole = ranker.fit(schools)
    assert whole.sampling_ is None
    coef, objective = whole.coef_, whole.objective_
    monkeypatch.setattr(sampling, "_FEWEST", 300)
    found = HierarchicalRanker(item_effects=False, **parameters).fit(schools)
    told = found.sampling_
    assert isinstance(told, Sampling)
    assert told.n_learned < told.n_asked == schools.n_people
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
    some = schools.of_people(schools.user_ids[:1250].tolist())
    people = {person: {"age": float(place % 7)} for place, person in enumerate(some.user_ids)}
    known = Annotations(
        users=some.users, items=None, labels=some.labels, features=some.X[:, :3], people=people
    )
    assert HierarchicalRanker(n_groups=1, tol=1e-2).fit(known).sampling_ is None
    crossed = HierarchicalRanker(n_groups=1, n_item_factors=0, tol=1e-2).fit(some)
    assert crossed.item_effects_
    assert crossed.sampling_ is None


def test_what_is_nearly_known_claims_no_more_than_labels_say():
    rng = np.random.default_rng(1)
    n_people, n_labels, size, rank = 6, 20, 24, 6
    said = Annotations(
        users=np.repeat(np.arange(n_people), n_labels),
        items=None,
        labels=rng.random(n_people * n_labels) < 0.5,
        features=rng.normal(size=(n_people * n_labels, size)),
    )
    coordinates = Coordinates.of_annotations(said, standardize=False, intercept=False)
    prior = Prior(np.zeros(size), rng.normal(size=(size, 3)), np.full(size, 0.4))
    task = TaskBlock(LabelTasks.of_annotations(said, coordinates), 0).task
    mode = find_mode(task, prior, Logistic())
    found = _nearly_known(mode, prior, rank).astype(np.float64)
    best = _known(system_of(task, prior), mode.said.curvature, rank) @ prior.root.T
    for person in range(len(task.people)):
        rows = mode.said.curvature.times_root_back(task.rows)[person]
        exact = np.linalg.inv(np.linalg.inv(prior.covariance) + rows.T @ rows)
        claimed = prior.covariance - found[person].T @ found[person]
        assert np.linalg.eigvalsh(claimed - exact).min() > -1e-4
        told = np.trace(found[person].T @ found[person])
        assert told > 0.85 * np.trace(best[person].T @ best[person])
