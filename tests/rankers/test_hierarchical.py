"""The learned prior: posteriors and objective against definitions, and the ranker's manners."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import dblquad
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import naive
from crowds import make_crowd
from likeminds import Annotations, HierarchicalRanker, load, make_schools, save, split_within_people
from likeminds.baselines import ConsensusOnly
from likeminds.prior.added_penalties import Held
from likeminds.prior.choices import are_choices
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.descent import descend, score
from likeminds.prior.likelihoods import Chances, Choice, Diagonal, Logistic, Regression
from likeminds.prior.losses import PRIOR_LOSSES
from likeminds.prior.modes import find_mode
from likeminds.prior.objective import DIAGONAL, Model, Objective
from likeminds.prior.posterior import Pulls, Terms, moments
from likeminds.prior.prior import Prior
from likeminds.prior.systems import Dual, Primal

pytestmark = pytest.mark.filterwarnings("ignore:.*one class only:UserWarning")


def make_prior(rng, size, rank=1):
    return Prior(
        rng.normal(0, 0.4, size), rng.normal(0, 1, (size, rank)), rng.uniform(0.3, 0.8, size)
    )


def same_residual(prior, n_weights):
    """The family that is learned: one residual for the weights, one for the intercept."""
    residual = prior.residual.copy()
    residual[:n_weights] = residual[0]
    return Prior(prior.mean, prior.loadings, residual)


LOSSES = {"logistic": Logistic(), "choice": Choice(), "auc": Regression(3.0)}


def make_tasks(crowd, loss="logistic"):
    kind = PRIOR_LOSSES[loss]
    coordinates = Coordinates.of_annotations(crowd, standardize=True, intercept=kind.has_intercept)
    return kind.tasks(crowd, coordinates), coordinates


def make_objective(crowd, rng, loss="logistic", *, rank=1):
    tasks, coordinates = make_tasks(crowd, loss)
    prior = same_residual(make_prior(rng, coordinates.size, rank), coordinates.n_weights)
    model = Model(prior, LOSSES[loss], ridge=0.7)
    unit = rng.uniform(0.5, 2.0, coordinates.size)
    return Objective(tasks, coordinates.n_weights, model, unit, enough=1e-12)


def logistic_cost(point, rows, labels, weights, prior):
    eta = rows @ point
    away = point - prior.mean
    loss = weights @ (np.logaddexp(0, eta) - labels * eta)
    return loss + 0.5 * away @ np.linalg.solve(prior.covariance, away)


def choice_cost(point, rows, labels, weights, prior):
    """Each positive label against itself and all negatives."""
    eta = rows @ point
    away = point - prior.mean
    loss = 0.5 * away @ np.linalg.solve(prior.covariance, away)
    for positive in np.flatnonzero(labels):
        among = np.exp(eta[positive]) + weights[~labels] @ np.exp(eta[~labels])
        loss += weights[positive] * (np.log(among) - eta[positive])
    return loss


def all_modes(tasks, prior, likelihood):
    found = {}
    for number in range(len(tasks.plan)):
        mode = find_mode(tasks.task(number), prior, likelihood)
        points = prior.mean + mode.system.z(mode.state) @ prior.root.T
        found.update(zip(mode.task.people.tolist(), points, strict=True))
    return np.array([found[person] for person in sorted(found)])


@given(seed=st.integers(0, 1000), n_features=st.integers(1, 9), rank=st.integers(0, 3))
@settings(max_examples=40)
@pytest.mark.slow
def test_modes_and_covariances_are_those_of_the_definition(seed, n_features, rank):
    rng = np.random.default_rng(seed)
    crowd = make_crowd(rng, n_features)
    tasks, coordinates = make_tasks(crowd)
    prior = make_prior(rng, coordinates.size, rank)
    points = all_modes(tasks, prior, Logistic())
    spread = np.zeros((coordinates.size, coordinates.size))
    for i, (features, labels, weights) in enumerate(naive.by_person(crowd)):
        rows = coordinates.rows(features)
        best = minimize(logistic_cost, prior.mean, (rows, labels, weights, prior), "BFGS", tol=1e-9)
        np.testing.assert_allclose(points[i], best.x, atol=2e-4)
        chance = 1 / (1 + np.exp(-rows @ points[i]))
        curvature = (rows * (weights * chance * (1 - chance))[:, None]).T @ rows
        spread += np.linalg.inv(curvature + np.linalg.inv(prior.covariance))
    found = moments(tasks, Terms(prior, Logistic()), Pulls())
    np.testing.assert_allclose(
        prior.root @ found.spread @ prior.root.T, spread, rtol=1e-5, atol=1e-6
    )


def make_curvature(rng, kind):
    if kind == "diagonal":
        return Diagonal(np.sqrt(rng.uniform(0.05, 1, (3, 6))), rng.normal(size=(3, 6)))
    odds = rng.uniform(0.2, 1, (3, 2, 3))
    odds[0, 0, 2] = 0.0  # a set of two items, filled up
    chance = (odds / odds.sum(axis=2, keepdims=True)).reshape(3, 6)
    weight = np.repeat(rng.uniform(0.5, 2, (3, 2)), 3, axis=1) * (chance > 0)
    return Chances(chance, weight, 3)


@pytest.mark.parametrize("kind", ["diagonal", "chances"])
@given(seed=st.integers(0, 1000), is_held=st.booleans())
def test_primal_and_dual_are_the_same(kind, seed, is_held):
    rng = np.random.default_rng(seed)
    rows, offset = rng.normal(size=(3, 6, 4)), rng.normal(size=(3, 6))
    curvature = make_curvature(rng, kind)
    held, in_y = None, rows
    if is_held:
        root = rng.normal(size=(3, 2, 2))
        held = Held(root @ root.transpose(0, 2, 1), rng.normal(size=(2, 4)))
        in_y = held.of_rows(rows)
    primal = Primal(rows, offset, held)
    dual = Dual(in_y, offset, in_y @ in_y.transpose(0, 2, 1), held)
    pulls, pull = rng.normal(size=(3, 6)), rng.normal(size=(3, 6))
    states = primal.start(pulls), dual.start(pulls)
    np.testing.assert_allclose(primal.eta(states[0]), dual.eta(states[1]))
    eta = primal.eta(states[0])
    np.testing.assert_allclose(primal.penalty(states[0], eta), dual.penalty(states[1], eta))
    steps, promised = [], []
    for system, state in zip((primal, dual), states, strict=True):
        matrices = system.matrices(curvature)
        step, gain = system.newton(state, eta, pull, curvature, matrices)
        steps.append(system.z(step))
        promised.append(gain)
    np.testing.assert_allclose(steps[0], steps[1], atol=1e-12)
    np.testing.assert_allclose(promised[0], promised[1])
    first, second = primal.spread(curvature), dual.spread(curvature)
    np.testing.assert_allclose(first.log_determinant, second.log_determinant)
    np.testing.assert_allclose(first.total, second.total, atol=1e-12)
    np.testing.assert_allclose(first.variance, second.variance, atol=1e-12)
    np.testing.assert_allclose(
        primal.z(primal.shift(first, curvature)),
        dual.z(dual.shift(second, curvature)),
        atol=1e-12,
    )
    np.testing.assert_allclose(first.with_scores, second.with_scores, atol=1e-12)
    scores = curvature.times_root_back(rows @ first.inner)  # of the primal, the covariance of z
    np.testing.assert_allclose(first.with_scores, scores, atol=1e-12)
    directions = rng.normal(size=(4, 2))
    np.testing.assert_allclose(
        primal.seen_along(first, curvature, directions),
        dual.seen_along(second, curvature, directions),
        atol=1e-12,
    )
    for most in (2, 4):
        kept = []
        for system in (primal.without_held(), dual.without_held()):
            directions, shrunk = system.information(curvature, most)
            kept.append(directions.transpose(0, 2, 1) @ (shrunk[:, :, None] * directions))
        np.testing.assert_allclose(kept[0], kept[1], atol=1e-10)
    if not is_held:
        np.testing.assert_allclose(np.eye(4) - kept[0].sum(axis=0) / 3, first.total / 3, atol=1e-10)


def test_objective_is_near_the_integral_it_approximates():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(12, 1)), rng.random(12) < 0.5
    crowd = Annotations(users=["ann"] * 12, items=None, labels=labels, features=rows)
    tasks, coordinates = make_tasks(crowd)
    prior = make_prior(rng, 2)
    found = moments(tasks, Terms(prior, Logistic()), Pulls())
    seen, normal = coordinates.rows(rows), 2 * np.pi * np.sqrt(np.linalg.det(prior.covariance))
    integral, _ = dblquad(
        lambda y, x: np.exp(-logistic_cost(np.array([x, y]), seen, labels, np.ones(12), prior)),
        -9, 9, -9, 9, epsabs=1e-12, epsrel=1e-6,
    )  # fmt: skip
    assert found.objective == pytest.approx(-np.log(integral / normal), abs=0.05)


@given(seed=st.integers(0, 1000), n_features=st.integers(1, 8))
def test_objective_of_the_auc_loss_is_the_exact_marginal(seed, n_features):
    rng = np.random.default_rng(seed)
    crowd = make_crowd(rng, n_features)
    tasks, coordinates = make_tasks(crowd, "auc")
    prior, precision = make_prior(rng, n_features), 3.0
    found = moments(tasks, Terms(prior, Regression(precision)), Pulls())
    expected = 0.0
    for features, labels, weights in naive.by_person(crowd):
        if labels.all() or not labels.any():
            continue
        plus, minus = weights[labels].sum(), weights[~labels].sum()
        strength = plus * minus / (plus + minus)
        A, b, c = naive.auc_quadratic(coordinates.rows(features), labels, weights)
        tau = precision * strength
        H = tau * A + np.linalg.inv(prior.covariance)
        right = tau * b + np.linalg.solve(prior.covariance, prior.mean)
        mode = np.linalg.solve(H, right)
        away = mode - prior.mean
        expected += 0.5 * tau * (mode @ A @ mode - 2 * b @ mode + c)
        expected += 0.5 * away @ np.linalg.solve(prior.covariance, away)
        expected += 0.5 * np.linalg.slogdet(H @ prior.covariance)[1] - strength * np.log(precision)
    assert found.objective == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_features", [3, 12])
def test_slope_is_that_of_the_objective(loss, n_features):
    rng = np.random.default_rng(n_features)
    objective = make_objective(make_crowd(rng, n_features), rng, loss, rank=2)
    vector = objective.start
    for _ in range(3):  # until the modes are exact
        _, slope = objective(vector)
    step = 1e-4
    measured = [
        (objective(vector + step * e)[0] - objective(vector - step * e)[0]) / (2 * step)
        for e in np.eye(len(vector))
    ]
    np.testing.assert_allclose(slope, measured, rtol=1e-3, atol=1e-4)


def test_vector_and_model_are_the_same():
    rng = np.random.default_rng(3)
    objective = make_objective(make_crowd(rng), rng, rank=2)
    again = objective.model_at(objective.start)
    for name in ("mean", "loadings", "residual"):
        np.testing.assert_allclose(getattr(again.prior, name), getattr(objective.model.prior, name))


@pytest.mark.parametrize("loss", LOSSES)
def test_descent_never_rises_and_ends_where_moments_match(loss):
    crowd = make_schools(60, 30, 80, 4, 2, random_state=1, contested=1.0).annotations
    objective = make_objective(crowd, np.random.default_rng(0), loss)
    learned = descend(objective, tol=1e-12, max_iter=2000)
    assert (np.diff(learned.trace) <= 0).all()
    assert learned.trace[-1] < learned.trace[0] - 1
    found = objective.visit(learned.model)
    # EM's fixed point: the mean of z is what the ridge asks for, and nothing else.
    theta = learned.model.prior.mean.copy()
    theta[objective.n_weights :] = 0
    pull = learned.model.prior.root.T @ (learned.model.ridge * theta)
    np.testing.assert_allclose(found.first, pull, atol=0.05)
    # Along the leading direction, second moments are the prior's.
    missing = found.n_people * np.eye(len(theta)) - found.second
    middle = learned.model.prior.inverse_middle
    leading = (middle @ missing @ middle) @ learned.model.prior.loadings
    scale = (learned.model.prior.residual / objective.unit) ** 2
    leading += learned.model.prior.loadings * scale[:, None] / 100  # their own prior
    assert np.abs(leading).max() < 1e-3 * found.n_people


@pytest.mark.parametrize("loss", LOSSES)
def test_scoring_never_rises_with_few_labels(loss):
    crowd = make_schools(30, 15, 80, 40, 2, random_state=1, contested=1.0).annotations
    objective = make_objective(crowd, np.random.default_rng(0), loss)
    learned = score(objective, tol=0.0, max_iter=20)
    assert (np.diff(learned.trace) <= 0).all()
    assert learned.trace[-1] < learned.trace[0] - 1


@pytest.mark.parametrize("loss", LOSSES)
def test_scoring_never_rises_and_ends_where_moments_match(loss):
    crowd = make_schools(60, 30, 80, 4, 2, random_state=1, contested=1.0).annotations
    objective = make_objective(crowd, np.random.default_rng(0), loss)
    learned = score(objective, tol=1e-9, max_iter=400)
    assert (np.diff(learned.trace) <= 0).all()
    assert learned.trace[-1] < learned.trace[0] - 1
    assert learned.converged
    prior, found = learned.model.prior, objective.visit(learned.model)
    theta = prior.mean.copy()
    theta[objective.n_weights :] = 0
    np.testing.assert_allclose(
        found.first, prior.root.T @ (learned.model.ridge * theta), atol=0.01 * found.n_people
    )
    # Second moments are the prior's, but for the pseudo-people's pull to equal variances.
    inverse = np.linalg.inv(prior.covariance)
    variances = 1.0 / inverse.diagonal()
    weights = slice(0, objective.n_weights)
    variances[weights] = objective.n_weights / inverse.diagonal()[weights].sum()
    pseudo = objective.shape.pseudo * found.n_people
    second = prior.root @ found.second @ prior.root.T + pseudo * np.diag(variances)
    expected = (found.n_people + pseudo) * prior.covariance
    np.testing.assert_allclose(second, expected, atol=0.02 * np.abs(expected).max())


@given(seed=st.integers(0, 1000), n_features=st.integers(1, 9))
@pytest.mark.slow
def test_modes_of_choices_are_those_of_the_definition(seed, n_features):
    rng = np.random.default_rng(seed)
    crowd = make_crowd(rng, n_features)
    tasks, coordinates = make_tasks(crowd, "choice")
    prior = make_prior(rng, coordinates.size)
    points = np.repeat(prior.mean[None], crowd.n_people, axis=0)
    for number in range(len(tasks.plan)):
        mode = find_mode(tasks.task(number), prior, Choice())
        points[mode.task.people] += mode.system.z(mode.state) @ prior.root.T
        expected = [
            choice_cost(points[i], coordinates.rows(rows), labels, weights, prior)
            for i, (rows, labels, weights) in enumerate(naive.by_person(crowd))
            if i in mode.task.people
        ]
        assert (mode.said.loss + mode.penalty).sum() == pytest.approx(sum(expected))
    for i, (features, labels, weights) in enumerate(naive.by_person(crowd)):
        told = (coordinates.rows(features), labels, weights, prior)
        # The cost is convex: from wherever one starts, the way leads to the one minimum.
        best = minimize(choice_cost, points[i], told, "BFGS", tol=1e-9)
        np.testing.assert_allclose(points[i], best.x, atol=2e-4)


def test_choices_are_made_within_groups_or_by_the_person():
    X = np.random.default_rng(0).normal(size=(7, 2))
    labels = [True, False, False, False, True, True, False]
    crowd = Annotations(
        users=["ann"] * 7, items=None, labels=labels, features=X, groups=[1, 1, 1, 2, 2, 2, 2]
    )
    assert not are_choices(crowd)
    assert are_choices(crowd[:3])
    tasks, _ = make_tasks(crowd, "choice")
    task = tasks.task(0)
    # Once one of three, and twice one of three: each positive label for itself.
    assert task.weight.tolist() == [[1] * 9]
    assert np.exp(task.log_count).tolist() == [[1] * 9]
    assert task.response.reshape(-1, 3).tolist() == [[1, 0, 0]] * 3
    # A group of negatives only: single items, and all of them are compared.
    tasks, _ = make_tasks(crowd[[0, 1, 3, 6]], "choice")
    assert np.exp(tasks.task(0).log_count).tolist() == [[1] * 4]


def test_priors_of_any_covariance_and_their_truncation():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    prior = Prior.of_covariance(np.zeros(5), root @ root.T)
    np.testing.assert_allclose(prior.covariance, root @ root.T)
    np.testing.assert_allclose(prior.truncated(4, 4).covariance[:4, :4], (root @ root.T)[:4, :4])
    low = make_prior(rng, 5, 2)
    low = Prior(low.mean, low.loadings, np.full(5, 0.5))
    np.testing.assert_allclose(low.truncated(2, 5).covariance, low.covariance, atol=1e-12)
    directions = low.directions(2, 5)
    np.testing.assert_allclose(directions.T @ directions, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(directions @ directions.T @ low.loadings, low.loadings, atol=1e-12)


def test_prior_is_consistent():
    prior = make_prior(np.random.default_rng(0), 5, 2)
    np.testing.assert_allclose(prior.root @ prior.inverse_root, np.eye(5), atol=1e-12)
    spelled = np.diag(prior.residual) @ (np.eye(5) + prior.loadings @ prior.loadings.T)
    np.testing.assert_allclose(prior.covariance, spelled @ np.diag(prior.residual), atol=1e-12)
    rows = np.random.default_rng(1).normal(size=(2, 3, 5))
    np.testing.assert_allclose(prior.whitened(rows), rows @ prior.root)


def test_idle_directions_are_left_out():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(60, 3))
    features = np.hstack([base, base[:, :1] - base[:, 1:2], np.full((60, 1), 7.0)])
    labels = base[:, 0] + base[:, 1] > 0
    crowd = Annotations(
        users=np.repeat(np.arange(6), 10), items=None, labels=labels, features=features
    )
    coordinates = Coordinates.of_annotations(crowd, standardize=True, intercept=True)
    assert (coordinates.n_weights, coordinates.size) == (3, 4)
    point = rng.normal(size=4)
    np.testing.assert_allclose(
        coordinates.rows(features)[:, :3] @ point[:3],
        (features - coordinates.origin) @ coordinates.weights(point),
        atol=1e-10,
    )
    ranker = HierarchicalRanker(n_groups=0).fit(crowd)
    assert ranker.score(crowd) > 0.95
    assert ranker.standard_error(features, crowd.users).max() < 100


# The ranker


@pytest.fixture(scope="module")
def schools():
    return make_schools(60, 24, 100, 8, 2, personal_strength=0.3, random_state=0)


@pytest.fixture(scope="module")
def fitted(schools):
    return HierarchicalRanker(item_effects=False).fit(schools.annotations)


@pytest.mark.parametrize("loss", LOSSES)
def test_finds_the_schools(schools, loss):
    train, test = split_within_people(schools.annotations, 0.3, 0)
    ranker = HierarchicalRanker(loss=loss).fit(train)
    assert ranker.n_groups_ == 1  # two schools that are opposites
    assert ranker.score(test) > ConsensusOnly().fit(train).score(test) + 0.1
    truth = schools.group[schools.school == 0][0]
    cosine = ranker.directions_[0] @ truth / np.linalg.norm(ranker.directions_[0])
    assert abs(cosine) / np.linalg.norm(truth) > 0.85
    assert ranker.explained_["group"] > 0.7
    assert ranker.criterion_.argmin() == 1


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.slow
def test_finds_the_schools_with_five_labels_each(seed):
    crowd = make_schools(300, 55, 1000, 20, random_state=seed).annotations
    train, test = split_within_people(crowd, 50 / 55, seed)
    ranker = HierarchicalRanker().fit(train)
    assert ranker.n_groups_ == 2  # three schools
    assert ranker.score(test) > HierarchicalRanker(n_groups=0).fit(train).score(test) + 0.1


def test_levels_add_up(schools, fitted):
    total = fitted.consensus_ + fitted.group_ + fitted.personal_
    np.testing.assert_allclose(total, fitted.coef_, atol=1e-12)
    np.testing.assert_allclose(fitted.explained_["group"] + fitted.explained_["personal"], 1.0)
    assert np.linalg.matrix_rank(fitted.group_, tol=1e-8) == fitted.n_groups_ == 1
    assert fitted.converged_
    assert fitted.objective_ == fitted.objective_trace_[-1]
    assert len(fitted.objective_trace_) == fitted.n_iter_ + 1
    # Scores plus intercepts are log-odds: they match the share of positive labels.
    said = schools.annotations
    odds = fitted.decision_function(said) + fitted.intercept_[said.user_codes]
    assert (1 / (1 + np.exp(-odds))).mean() == pytest.approx(said.labels.mean(), abs=0.03)


def test_same_result_whatever_threads_and_order(schools, fitted):
    shuffled = schools.annotations[np.random.default_rng(0).permutation(60 * 24)]
    with threadpool_limits(1):
        again = HierarchicalRanker(item_effects=False).fit(shuffled)
        with_items = HierarchicalRanker().fit(shuffled)
    np.testing.assert_allclose(again.coef_, fitted.coef_, atol=1e-4)
    twice = HierarchicalRanker(item_effects=False).fit(schools.annotations)
    np.testing.assert_array_equal(twice.coef_, fitted.coef_)
    in_order = HierarchicalRanker().fit(schools.annotations)
    np.testing.assert_allclose(with_items.item_effect_, in_order.item_effect_, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.slow
def test_weights_count_like_repeated_rows(schools, loss):
    said = schools.annotations
    times = np.random.default_rng(1).integers(1, 4, len(said))
    weighted = HierarchicalRanker(1, loss, tol=1e-10).fit(
        said.X, said.labels, users=said.users, sample_weight=times
    )
    copied = HierarchicalRanker(1, loss, tol=1e-10, item_effects=False).fit(
        said[np.repeat(np.arange(len(said)), times)]
    )
    np.testing.assert_allclose(weighted.coef_, copied.coef_, rtol=1e-2, atol=5e-3)


def test_units_of_features_do_not_matter(schools, fitted):
    said = schools.annotations
    units = np.geomspace(0.01, 100, 8)
    scaled = HierarchicalRanker().fit(said.X * units + 5, said.labels, users=said.users)
    np.testing.assert_allclose(scaled.coef_ * units, fitted.coef_, atol=1e-3)


def test_one_class_people_teach_the_logistic_loss():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = X[:, 0] > 0
    users = np.where(y, 2 * np.arange(400) % 40, 1 + 2 * np.arange(400) % 40)  # all one class
    ranker = HierarchicalRanker(0).fit(X, y, users=users)
    assert ranker.consensus_[0] > 3 * abs(ranker.consensus_[1])


@pytest.mark.filterwarnings("default")
def test_one_class_people_get_the_consensus_of_the_auc_loss():
    crowd = make_crowd(np.random.default_rng(0))
    with pytest.warns(UserWarning, match="person-10"):
        ranker = HierarchicalRanker(1, "auc").fit(crowd)
    np.testing.assert_allclose(ranker.coef_[10], ranker.consensus_, atol=1e-12)


def test_one_label_each_is_enough_to_learn_a_consensus():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, -1.0, 0.0] + rng.normal(size=300) > 0
    ranker = HierarchicalRanker().fit(X, y, users=np.arange(300))
    assert ranker.score(X, y) > 0.8  # people named nowhere: the consensus
    assert ranker.coef_.shape == (300, 3)


def test_strangers_get_the_consensus_and_the_prior_s_uncertainty(schools, fitted):
    items = schools.annotations.features[:5]
    scores = fitted.decision_function(items, ["stranger"] * 5)
    np.testing.assert_allclose(scores, items @ fitted.consensus_)
    unsure = fitted.standard_error(items, ["stranger"] * 5)
    assert (unsure > fitted.standard_error(items, [0] * 5)).all()
    with pytest.raises(ValueError, match="stranger"):
        HierarchicalRanker(1, unknown="error").fit(schools.annotations).standard_error(
            items, ["stranger"] * 5
        )


@pytest.mark.slow
def test_more_labels_are_learned_as_if_at_once(schools):
    said = schools.annotations
    parts = HierarchicalRanker(1).partial_fit(said[:700]).partial_fit(said[700:])
    whole = HierarchicalRanker(1).fit(said)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-6)
    assert HierarchicalRanker(1).fit(said[:700]).update(said[700:]).n_groups_ == 1


def test_save_and_load_keep_all_that_is_believed(schools, fitted, tmp_path):
    again = load(save(fitted, tmp_path / "model"))
    items = schools.annotations.features[:7]
    np.testing.assert_array_equal(again.coef_, fitted.coef_)
    np.testing.assert_array_equal(
        again.standard_error(items, [3] * 7), fitted.standard_error(items, [3] * 7)
    )
    labels = [True, False, True, False, True, False, True]
    np.testing.assert_array_equal(
        again.newcomer(items, labels).coef, fitted.newcomer(items, labels).coef
    )
    with pytest.raises(ValueError, match="training data"):
        again.update(schools.annotations)


@pytest.mark.slow
def test_callback_can_stop_and_says_so(schools):
    seen = []

    def stop(step, objective, residual):
        seen.append((step, objective, residual))
        return True

    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        ranker = HierarchicalRanker(1, tol=0.0, callback=stop).fit(schools.annotations)
    assert len(seen) == ranker.n_iter_ == 1
    assert seen[0][1] == pytest.approx(ranker.objective_)
    with pytest.warns(ConvergenceWarning, match="Stopped"):
        HierarchicalRanker(1, tol=0.0, max_iter=1).fit(schools.annotations)


def test_interrupt_keeps_the_best_so_far(schools):
    def interrupt(step, objective, residual):
        raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning):
        ranker = HierarchicalRanker(1, tol=0.0, callback=interrupt).fit(schools.annotations)
    assert ranker.score(schools.annotations) > 0.8


def test_large_crowds_start_on_a_sample(monkeypatch, schools, fitted):
    monkeypatch.setattr("likeminds.prior.learning._SAMPLE", 25)
    ranker = HierarchicalRanker(tol=1e-7).fit(schools.annotations)
    assert ranker.n_groups_ == fitted.n_groups_
    monkeypatch.undo()
    exact = HierarchicalRanker(1, covariance=ranker.covariance_, tol=1e-7).fit(schools.annotations)
    assert ranker.objective_ == pytest.approx(exact.objective_, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_blocks_need_not_be_kept(monkeypatch, schools, loss):
    said = schools.annotations
    kept = HierarchicalRanker(1, loss).fit(said.X, said.labels, users=said.users)
    monkeypatch.setattr("likeminds.prior.tasks._KEPT_BYTES", 0)
    made_anew = HierarchicalRanker(1, loss).fit(said.X, said.labels, users=said.users)
    np.testing.assert_allclose(made_anew.coef_, kept.coef_, atol=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_variances_alone_are_learned_by_steps_that_never_rise(loss):
    rng = np.random.default_rng(2)
    objective = make_objective(
        make_schools(60, 24, 50, 3, 1, random_state=1).annotations, rng, loss, rank=0
    )
    found = score(replace(objective, shape=DIAGONAL), tol=1e-9, max_iter=80)
    assert (np.diff(found.trace) <= 0).all()
    prior = found.model.prior
    assert prior.rank == 0
    matched = objective.visit(found.model)
    # Where variances are not at a bound, second moments are the prior's.
    inside = prior.residual > 1e-3 * prior.residual.max()
    second = matched.second.diagonal() / matched.n_people
    np.testing.assert_allclose(second[inside], 1.0, atol=2e-3)


def test_the_form_of_omega_is_the_one_asked_for(schools):
    full, diagonal, low_rank = (
        HierarchicalRanker(covariance=form, item_effects=False).fit(schools.annotations)
        for form in ("full", "diagonal", "low_rank")
    )
    for form, ranker in (("full", full), ("diagonal", diagonal), ("low_rank", low_rank)):
        assert ranker.covariance_ == form
        assert len(ranker.directions_) == ranker.n_groups_
    omega = diagonal.crowd_.prior.covariance
    np.testing.assert_array_equal(omega, np.diag(omega.diagonal()))
    assert low_rank.crowd_.prior.rank == low_rank.n_groups_
    assert full.crowd_.prior.rank == len(omega) - 1
    two = HierarchicalRanker(2, covariance="full", item_effects=False).fit(schools.annotations)
    found, wanted = two.crowd_.prior.covariance, full.crowd_.prior.covariance
    np.testing.assert_allclose(found, wanted, rtol=1e-3)  # as exact as the fits are
    assert len(two.directions_) == 2


def test_bad_input_is_refused_in_a_sentence(schools):
    said = schools.annotations
    with pytest.raises(ValueError, match="n_groups"):
        HierarchicalRanker(9).fit(said)
    with pytest.raises(ValueError):
        HierarchicalRanker("many").fit(said)
    with pytest.raises(ValueError):
        HierarchicalRanker(loss="hinge").fit(said)
    with pytest.raises(ValueError, match="one class"):
        HierarchicalRanker().fit(said[np.flatnonzero(said.labels)])
