"""What covariates of people go with, against naive definitions and simulated crowds."""

from copy import copy

import numpy as np
import pytest
from scipy.optimize import minimize

from learned_model import GaussianPrior, PriorModel, WarmStarts, responses_of, responses_with_items
from likeminds import Annotations, HierarchicalRanker, load, save, split_within_users
from likeminds.data.covariates import Covariates
from likeminds.mixed_model.extensions.covariate_effects import (
    CovariateQuadratic,
    PenalisedShifts,
)
from likeminds.mixed_model.gaussian_prior import MeanShifts
from likeminds.mixed_model.losses import PRIOR_LOSSES
from likeminds.schools import Explanation

D, SEEN = 4, 90


def simulated(signal, seed=0, n_users=130, n_labels=16):
    """Return labels of people whose weights depend on their age and town, and Gamma of age."""
    rng = np.random.default_rng(seed)
    age, town = rng.normal(40, 12, n_users), rng.choice(["A", "B"], n_users)
    slope, by_town = signal * rng.normal(size=(2, D))
    weights = 0.5 * rng.normal(size=D) + 0.4 * rng.normal(size=(n_users, D))
    weights += np.outer((age - 40) / 12, slope) + np.outer(town == "A", by_town)
    users = np.repeat(np.arange(n_users), n_labels)
    features = rng.normal(size=(len(users), D))
    odds = np.einsum("nd,nd->n", features, weights[users])
    positions = {i: {"age": age[i], "town": town[i], "noise": rng.normal()} for i in range(n_users)}
    labels = rng.random(len(users)) < 1 / (1 + np.exp(-odds))
    return Annotations(users, None, labels, features, user_features=positions), slope


@pytest.fixture(scope="module")
def crowd():
    return simulated(1.0)


@pytest.fixture(scope="module", params=["logistic", "auc"])
def fitted(request, crowd):
    said, _ = crowd
    return HierarchicalRanker(loss=request.param).fit(said[said.users < SEEN])


def simulated_with_items(n_users=130, n_items=60, n_labels=20, seed=0):
    """The same crowd, judging items that several people judge, with effects of their own."""
    rng = np.random.default_rng(seed)
    age = rng.normal(size=n_users)
    X, effects, slope = rng.normal(size=(n_items, D)), rng.normal(size=n_items), rng.normal(size=D)
    weights = 0.5 * rng.normal(size=D) + 0.3 * rng.normal(size=(n_users, D)) + np.outer(age, slope)
    users = np.repeat(np.arange(n_users), n_labels)
    items = np.concatenate([rng.permutation(n_items)[:n_labels] for _ in range(n_users)])
    odds = np.einsum("nd,nd->n", X[items], weights[users]) + effects[items]
    labels = rng.random(len(users)) < 1 / (1 + np.exp(-odds))
    positions = {i: {"age": age[i]} for i in range(n_users)}
    return Annotations(
        users, items, labels, X, item_ids=range(n_items), user_features=positions
    ), effects


def crossed_problem(n_labels):
    said, _ = simulated_with_items(n_users=8, n_items=12, n_labels=n_labels)
    rng = np.random.default_rng(2)
    # Without a variance of effects, J has no term in it that the slope leaves out.
    return responses_with_items(
        said,
        1e-9,
        factors=rng.normal(size=(12, 2)),
        factor_covariance=np.repeat(0.3 * np.eye(2)[None], 12, axis=0),
    )


def small_problem(loss):
    if isinstance(loss, int):  # labels of each user, about items that they share
        (responses, coordinates), loss, more = crossed_problem(loss), "logistic", 2
    else:
        said, _ = simulated(1.0, n_users=8, n_labels=9)
        (responses, coordinates), more = responses_of(said, loss), 0
    rng = np.random.default_rng(1)
    size = coordinates.size + more
    root = rng.normal(size=(size, size))
    prior = GaussianPrior.of_covariance(rng.normal(size=size), root @ root.T + np.eye(size))
    prior.mean[coordinates.size :] = 0.0  # weights of factors have no mean but by covariates
    z = rng.normal(size=(8, 3))
    shifts = MeanShifts(z - z.mean(axis=0), rng.normal(size=(size, 3)), np.full(size, 0.7))
    slopes = PenalisedShifts(shifts, np.array([0.5, 2.0]), np.array([0, 1, 1]))
    return responses, PriorModel(prior, PRIOR_LOSSES[loss].likelihood, 1.0), slopes


@pytest.mark.parametrize("loss", ["logistic", "auc", "choice", 9, 5])
def test_the_slope_is_that_of_the_objective(loss):
    responses, model, slopes = small_problem(loss)

    def value(values):
        at = slopes.with_values(values)
        return CovariateQuadratic(responses, model, WarmStarts(), at).objective

    found = CovariateQuadratic(responses, model, WarmStarts(), slopes)
    for row, column in [(0, 0), (1, 2), (3, 1), (-1, 0)]:  # the last row: a factor, with items
        step = np.zeros_like(slopes.values)
        step[row, column] = 1e-4
        naive = (value(slopes.values + step) - value(slopes.values - step)) / 2e-4
        np.testing.assert_allclose(-found.slope[row, column], naive, rtol=1e-3, atol=1e-4)


def test_the_quadratic_is_minimised_and_its_ridges_are_those_of_the_evidence():
    responses, model, slopes = small_problem("auc")
    quadratic = CovariateQuadratic(responses, model, WarmStarts(), slopes)
    (size, k), z = slopes.values.shape, slopes.shifts.z
    hessian = np.kron(quadratic.information, z.T @ z)
    target = quadratic.slope.ravel() + hessian @ slopes.values.ravel()

    def naive(ridges):
        held = hessian + np.diag(np.tile(ridges[slopes.blocks], size))
        best = np.linalg.solve(held, target)
        evidence = 0.5 * np.linalg.slogdet(held)[1] - 0.5 * target @ best
        return best, evidence - 0.5 * size * np.log(ridges[slopes.blocks]).sum(), held

    best, known = quadratic.minimum(slopes.ridges)
    expected, _, held = naive(slopes.ridges)
    np.testing.assert_allclose(best.ravel(), expected)
    doubt = np.linalg.inv(held).diagonal().reshape(size, k).sum(axis=0) * slopes.ridges[[0, 1, 1]]
    np.testing.assert_allclose(known, [size - doubt[0], 2 * size - doubt[1:].sum()])
    blurred = np.kron(np.eye(size), z) @ np.linalg.inv(held)
    blurred = blurred @ np.kron(np.eye(size), z).T
    mean = np.einsum("iaja->ij", blurred.reshape(size, 8, size, 8)) / 8
    np.testing.assert_allclose(quadratic.posterior_covariance(), mean)

    found = quadratic.maximise_evidence()
    lowest = minimize(lambda logs: naive(np.exp(logs))[1], np.log(found.ridges), tol=1e-8)
    np.testing.assert_allclose(found.ridges, np.exp(lowest.x), rtol=0.05)


def test_strangers_start_better_than_the_consensus(crowd, fitted):
    said, _ = crowd
    strangers = said[said.users >= SEEN]
    with_covariates = fitted.score(strangers)
    with pytest.raises(ValueError):
        fitted.score(strangers._with(user_features=None))
    lenient = copy(fitted).set_params(unknown="consensus")
    consensus = lenient.score(strangers._with(user_features=None))
    assert with_covariates > consensus + 0.05
    one = strangers.user_ids[0]
    mine = strangers.of_user(one)
    belief = fitted.newcomer(users=[one], user_features=said.user_features)
    np.testing.assert_allclose(belief.decision_function(mine.X), fitted.decision_function(mine))
    few = fitted.newcomer(mine.X[:3], mine.labels[:3], [one] * 3, user_features=said.user_features)
    same = fitted.newcomer(mine[:3])
    np.testing.assert_allclose(few.coef, same.coef)
    assert not np.allclose(few.coef, fitted.newcomer(mine.X[:3], mine.labels[:3]).coef)


@pytest.mark.seconds
def test_what_goes_with_covariates_is_found(crowd):
    said, slope = crowd
    ranker = HierarchicalRanker().fit(said)
    ((_, found),) = ranker.prior_.weights_by("age")
    np.testing.assert_allclose(found, slope, atol=0.35)
    shares = ranker.explained_by_users_
    assert shares["age"] > 0.2
    assert shares["noise"] < 0.01
    told = Explanation.of_ranker(ranker).population()["users_by"]
    assert {one["covariate"] for one in told[:2]} == {"age", "town"}
    assert {part["of"] for one in told for part in one["goes_with"]} == {"more", "A", "B"}


def test_the_objective_never_rises(fitted):
    assert np.diff(fitted.objective_trace_).max() <= 1e-9 * abs(fitted.objective_)


@pytest.mark.seconds
def test_covariates_and_items_are_learned_together():
    said, effects = simulated_with_items()
    known, strangers = said[said.users < SEEN], said[said.users >= SEEN]
    ranker = HierarchicalRanker().fit(known)
    assert ranker.item_effects_
    assert (np.diff(ranker.objective_trace_) <= 0).all()
    assert np.corrcoef(effects[ranker.items_], ranker.item_effect_)[0, 1] > 0.8
    alone = HierarchicalRanker(item_effects=False).fit(known)
    plain = HierarchicalRanker(unknown="consensus").fit(known._with(user_features=None))
    assert ranker.score(strangers) > alone.score(strangers) + 0.02
    assert ranker.score(strangers) > plain.score(strangers) + 0.05


@pytest.mark.parametrize("seed", [1, 2])
def test_noise_goes_with_nothing(seed):
    said, _ = simulated(0.0, seed)
    train, test = split_within_users(said, random_state=0)
    plain = HierarchicalRanker().fit(train._with(user_features=None))
    ranker = HierarchicalRanker().fit(train)
    assert sum(ranker.explained_by_users_.values()) < 0.15
    assert abs(ranker.score(test) - plain.score(test)) < 0.01


def test_of_whom_nothing_is_known_anything_may_be_true(crowd, fitted):
    said, _ = crowd
    somebody = said.of_user(3)
    items = np.random.default_rng(5).normal(size=(30, D))
    known = fitted.newcomer(somebody)
    unknown = fitted.newcomer(somebody._with(user_features=None))
    assert (unknown.standard_error(items) > known.standard_error(items)).mean() > 0.9
    # Without labels: the prior in which covariates are integrated out.
    prior, traits = fitted.prior_.predictive, fitted.prior_.covariate_effects
    assert traits is not None
    np.testing.assert_allclose(
        fitted.prior_.predictive.covariance,
        fitted.prior_.inflated.covariance + traits.covariance,
        atol=1e-9,
    )
    rows = fitted.prior_.design.differences(items)
    naive = np.sqrt(np.einsum("np,pq,nq->n", rows, prior.covariance, rows))
    centred = items + fitted.prior_.design.origin
    lenient = copy(fitted).set_params(unknown="consensus")
    np.testing.assert_allclose(lenient.standard_error(centred, ["stranger"] * 30), naive, rtol=1e-6)
    # Of who has covariates, they are known: a covariance as it would be with the narrower prior.
    own = fitted.newcomer(user_features={"zoe": {"age": 70.0, "town": "A", "noise": 0.0}})
    np.testing.assert_allclose(
        own.covariance(0), fitted.prior_.inflated.covariance, atol=1e-5 * prior.covariance.max()
    )


def test_without_covariates_nothing_changes(crowd):
    said = crowd[0][crowd[0].users < 40]
    plain = HierarchicalRanker().fit(said._with(user_features=None))
    assert plain.prior_.covariate_effects is None
    assert plain.explained_by_users_ == {}
    with pytest.raises(ValueError):
        plain.newcomer(user_features=said.user_features)
    with pytest.warns(UserWarning, match="are not used"):
        silent = HierarchicalRanker().fit(said.with_user_features({0: {"age": 1.0}}))
    np.testing.assert_array_equal(silent.coef_, plain.coef_)


@pytest.mark.seconds
def test_they_are_kept_in_files_and_grow(tmp_path, crowd):
    said = crowd[0]
    first, rest = said[said.users < 40], said[(said.users >= 40) & (said.users < 60)]
    ranker = HierarchicalRanker().fit(first.with_user_features(said.user_features.of(range(40))))
    again = load(save(ranker, tmp_path / "a.likeminds", with_data=True))
    np.testing.assert_array_equal(again.decision_function(rest), ranker.decision_function(rest))
    grown = again.update(rest.with_user_features(said.user_features.of(range(40, 60))))
    at_once = HierarchicalRanker().fit(said[said.users < 60])
    np.testing.assert_allclose(grown.coef_, at_once.coef_, atol=1e-3)
    kept = load(save(ranker, tmp_path / "b.likeminds"))
    stranger = {"zoe": {"age": 80.0, "town": "never seen"}}
    np.testing.assert_array_equal(
        kept.newcomer(user_features=stranger).coef, ranker.newcomer(user_features=stranger).coef
    )


@pytest.mark.seconds
def test_covariates_move_thresholds_if_features_describe_items_only(tmp_path):
    rng = np.random.default_rng(2)
    features, theta = rng.normal(size=(120, 40)), rng.normal(size=40) / 3
    age, users = rng.normal(size=30), np.repeat(np.arange(30), 25)
    items = np.concatenate([rng.permutation(100)[:25] for _ in range(30)])
    labels = rng.logistic(size=len(items)) < features[items] @ theta + 2.0 * age[users]
    table, new = {user: {"age": age[user]} for user in range(30)}, {"new": {"age": 2.0}}
    ranker, bare = (
        HierarchicalRanker(n_item_factors=0).fit(
            Annotations(users, items, labels, *given, user_features=table)
        )
        for given in ([features], [])
    )
    # The fit is that without features: users do not weigh them.
    assert ranker.objective_ == pytest.approx(bare.objective_)
    effects, without = ranker.prior_.covariate_effects, bare.prior_.covariate_effects
    np.testing.assert_array_equal(effects.slopes[:-1], 0.0)
    np.testing.assert_allclose(effects.slopes[-1:], without.slopes, rtol=1e-6)
    np.testing.assert_allclose(
        effects.posterior_covariance[-1:, -1:], without.posterior_covariance, rtol=1e-6
    )
    assert effects.covariance.shape == ranker.prior_.predictive.covariance.shape
    assert ranker.explained_by_users_ == {"age": 0.0}
    # New items are ranked by their features, and new users start from their covariates.
    posterior = ranker.newcomer(user_features=new)
    scores = posterior.decision_function(features[100:])
    assert np.corrcoef(scores, features[100:] @ theta)[0, 1] > 0.5
    shift = effects.slopes[-1] * (2.0 - age.mean()) / age.std()
    np.testing.assert_allclose(posterior.intercept - ranker.newcomer().intercept, shift)
    again = load(save(ranker, tmp_path / "a.likeminds")).newcomer(user_features=new)
    np.testing.assert_array_equal(again.decision_function(features[100:]), scores)
    np.testing.assert_array_equal(again.intercept, posterior.intercept)


def camps(features=False, n_users=150, n_items=40, n_labels=20):
    """Return labels of two camps who want opposite items; towns tell the camps, mostly."""
    rng = np.random.default_rng(0)
    camp = rng.choice([-1.0, 1.0], n_users)
    town = np.where(np.where(rng.random(n_users) < 0.9, camp, -camp) > 0, "A", "B")
    X = rng.normal(size=(n_items, 3))
    wanted, liked = X[:, 0] + 0.5 * rng.normal(size=n_items), 0.7 * rng.normal(size=n_items)
    users = np.repeat(np.arange(n_users), n_labels)
    items = np.concatenate([rng.permutation(n_items)[:n_labels] for _ in range(n_users)])
    labels = rng.logistic(size=len(users)) < 1.5 * camp[users] * wanted[items] + liked[items]
    table = {user: {"town": town[user], "noise": rng.normal()} for user in range(n_users)}
    given = [X] if features else []
    return Annotations(users, items, labels, *given, item_ids=range(n_items), user_features=table)


@pytest.mark.seconds
def test_covariates_tell_camps_apart_without_features(tmp_path):
    said = camps()
    seen, new = said[said.users < 110], said[said.users >= 110]
    ranker = HierarchicalRanker().fit(seen)
    plain = HierarchicalRanker(unknown="consensus").fit(seen._with(user_features=None))
    assert ranker.n_item_factors_ == plain.n_item_factors_ == 1
    assert ranker.score(new) > plain.score(new._with(user_features=None)) + 0.08
    # Known users, most of whom labels tell better, do not pay for it.
    assert ranker.score(seen) > plain.score(seen) - 0.01
    shares = ranker.explained_by_users_
    assert 0.3 < shares["town"] < 0.95
    assert shares["noise"] < 0.01
    told = Explanation.of_ranker(ranker).population()["users_by"]
    assert told[0]["covariate"] == "town"
    assert told[0]["share"] == shares["town"]
    # A new user of one town is ranked by E[v | z]: their prior mean.
    table = {"zoe": {"town": "A"}, "tim": {"town": "B"}}
    shifts = ranker.prior_.shifts(Covariates.read(table), np.array(["zoe", "tim"]))
    posterior, items = ranker.newcomer(user_features=table), ranker.items_
    by_zoe, by_tim = (
        posterior.decision_function(Annotations([user] * 40, items, np.arange(40) % 2))
        for user in table
    )
    difference = ranker.item_factors_ @ (shifts[0, -1:] - shifts[1, -1:])
    np.testing.assert_allclose(by_zoe - by_tim, difference, atol=1e-8)
    assert np.corrcoef(by_zoe, by_tim)[0, 1] < 0.0
    again = load(save(ranker, tmp_path / "a.likeminds"))
    np.testing.assert_array_equal(again.decision_function(new), ranker.decision_function(new))
    assert again.explained_by_users_ == shares
    zoe = Annotations(["zoe"] * 40, items, np.arange(40) % 2)
    later = again.newcomer(user_features=table).decision_function(zoe)
    np.testing.assert_array_equal(later, by_zoe)


@pytest.mark.seconds
@pytest.mark.parametrize("features", [False, True])
def test_scores_of_new_users_are_those_of_their_prior_mean(features):
    said = camps(features)
    ranker = HierarchicalRanker(n_item_factors=2).fit(said[said.users < 110])
    new = said[said.users >= 110]
    posterior = ranker.newcomer(users=new.user_ids, user_features=said.user_features)
    scores = posterior.decision_function(new, new.users)
    np.testing.assert_allclose(ranker.decision_function(new), scores, atol=1e-8)
