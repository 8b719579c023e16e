"""Pairs that may be tied, against the definition of Davidson's model."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import naive
from learned_model import coordinates_of
from likeminds import Annotations, HierarchicalRanker, load, save
from likeminds.mixed_model.losses import ChoiceLoss
from likeminds.mixed_model.new_posteriors import choice_slopes
from likeminds.mixed_model.ordinal_responses import DavidsonLikelihood
from likeminds.rankers.training_data import TrainingData

NU = 1.5
ITEMS = 12


@pytest.fixture(scope="module")
def crowd():
    """Pairs of users whose ties are drawn with a known nu, with and without the ties' model."""
    rng = np.random.default_rng(0)
    features, user = rng.normal(size=(ITEMS, 2)), np.repeat(np.arange(40), 40)
    weights = np.array([1.2, -0.6]) + rng.normal(0, 0.5, (40, 2))
    a = rng.integers(ITEMS, size=len(user))
    b = (a + rng.integers(1, ITEMS, size=len(user))) % ITEMS
    scores = np.einsum("nij,nj->in", features[np.stack([a, b], axis=1)], weights[user])
    terms = np.exp([*scores, scores.mean(axis=0) + np.log(NU)])
    drawn = (np.cumsum(terms / terms.sum(axis=0), axis=0) < rng.random(len(user))).sum(axis=0)
    pairs = user, np.where(drawn == 1, b, a), np.where(drawn == 1, a, b), drawn == 2
    known = {"features": features, "item_ids": np.arange(ITEMS)}
    made = {
        model: Annotations.from_comparisons(*pairs, tie_model=model, **known)
        for model in ("davidson", "half")
    }
    return SimpleNamespace(**made, pairs=pairs, features=features, known=known)


@pytest.fixture(scope="module")
def ranker(crowd):
    return HierarchicalRanker(n_groups=1).fit(crowd.davidson)


def data_of(said):
    responses = ChoiceLoss().responses(
        said, coordinates_of(said, standardize=False, intercept=False)
    )
    return responses.data(0)


def test_the_value_is_that_of_the_definition(crowd):
    coordinates = coordinates_of(crowd.davidson, intercept=False)
    responses = ChoiceLoss().responses(crowd.davidson, coordinates)
    w = np.random.default_rng(1).standard_normal(coordinates.size)
    _, won, lost, tied = crowd.pairs
    likelihood = DavidsonLikelihood(NU, tied.mean())
    blocks = map(responses.data, range(len(responses.plan)))
    found = sum(likelihood.at(data.rows @ w, data).loss.sum() for data in blocks)
    scores = coordinates.rows(crowd.features) @ w
    assert found == pytest.approx(naive.davidson_cost(scores[won], scores[lost], tied, NU))


def test_derivatives_up_to_the_third(crowd):
    data, likelihood = data_of(crowd.davidson[:24]), DavidsonLikelihood(NU, 0.3)
    rng, shape = np.random.default_rng(1), data.weight.shape
    eta = 1.5 * rng.standard_normal(shape)
    at = likelihood.at(eta, data)

    def value(flat):
        return likelihood.at(flat.reshape(shape), data).loss.sum()

    def slope(flat):
        return -likelihood.at(flat.reshape(shape), data).residuals.ravel()

    def hessian(flat):
        curvature = likelihood.at(flat.reshape(shape), data).curvature
        identity = np.eye(shape[1])[None]
        return curvature.times_root(curvature.times_root_back(identity))[0]

    assert shape[0] == 1
    np.testing.assert_allclose(slope(eta.ravel()), approx_fprime(eta.ravel(), value), atol=1e-5)
    step = 1e-6 * rng.standard_normal(shape[1])
    along = slope(eta.ravel() + step) - slope(eta.ravel())
    np.testing.assert_allclose(hessian(eta.ravel()) @ step, along, atol=1e-10)
    np.testing.assert_allclose(at.curvature.diagonal[0], hessian(eta.ravel()).diagonal())

    X = rng.standard_normal((shape[1], 3))

    def half_logdet(flat):
        return 0.5 * np.linalg.slogdet(np.eye(3) + X.T @ hessian(flat) @ X)[1]

    covariance = X @ np.linalg.inv(np.eye(3) + X.T @ hessian(eta.ravel()) @ X) @ X.T
    root = at.curvature.times_root_back(np.eye(shape[1])[None])[0]
    gradient = at.curvature.grad_half_logdet((root @ covariance @ root.T).diagonal()[None])
    np.testing.assert_allclose(gradient[0], approx_fprime(eta.ravel(), half_logdet), atol=1e-5)


def test_rows_by_themselves_have_the_same_loss(crowd):
    data, likelihood = data_of(crowd.davidson[:24]), DavidsonLikelihood(NU, 0.3)
    eta = np.random.default_rng(2).standard_normal(data.weight.shape)
    each = likelihood.each(likelihood.row_scores(eta, data), data.response, data.users[:, None])
    np.testing.assert_allclose(each[:, ::2], each[:, 1::2])
    np.testing.assert_allclose(each[:, ::2], likelihood.response_losses(eta, data)[:, ::2])
    total = (data.weight * likelihood.response_losses(eta, data)).sum()
    constant = 0.3 * np.log(NU) * data.weight[:, ::2].sum()
    assert likelihood.at(eta, data).loss.sum() == pytest.approx(total - constant)
    h = likelihood.at(eta, data).curvature.diagonal / data.weight
    information = likelihood.expected_information(likelihood.row_scores(eta, data))
    np.testing.assert_allclose(information, h)


def test_new_items_are_learned_from_ties_with_the_same_derivatives(crowd):
    data = data_of(crowd.davidson[:24])
    eta = np.random.default_rng(3).standard_normal(data.weight.shape)
    at = DavidsonLikelihood(NU, 0.3).at(eta, data)
    n_rows = eta.size
    chosen, sets = np.arange(n_rows) % 2 == 0, np.arange(n_rows) // 2
    residuals, curvature = choice_slopes(chosen, sets, np.ones(n_rows), NU, eta.ravel())
    np.testing.assert_allclose(data.weight.ravel() * residuals, at.residuals.ravel())
    np.testing.assert_allclose(data.weight.ravel() * curvature, at.curvature.diagonal.ravel())


@pytest.mark.seconds
def test_nu_is_recovered_and_decided_pairs_are_predicted_better(crowd, ranker):
    assert ranker.prior_.likelihood.nu == pytest.approx(NU, rel=0.15)
    np.testing.assert_allclose(ranker.consensus_, [1.2, -0.6], atol=0.3)
    user, *sides, tied = crowd.pairs
    train, loss = np.random.default_rng(4).random(len(user)) < 0.7, {}
    test = Annotations.from_comparisons(
        *(one[~train & ~tied] for one in (user, *sides)), **crowd.known
    )
    for model in ("davidson", "half"):
        some = (one[train] for one in crowd.pairs)
        said = Annotations.from_comparisons(*some, tie_model=model, **crowd.known)
        chance = HierarchicalRanker(n_groups=1).fit(said).predict_proba(test)[:, 1]
        loss[model] = -np.log(chance[test.labels]).mean()
    assert loss["davidson"] < loss["half"] - 0.01


def test_without_marks_ties_are_half_wins(crowd):
    assert crowd.half.tied is None
    np.testing.assert_array_equal(crowd.half.weights, crowd.davidson.weights)
    likelihood = TrainingData.of(crowd.half).first_likelihood(ChoiceLoss())
    assert not isinstance(likelihood, DavidsonLikelihood)
    with pytest.raises(ValueError, match="tie_model"):
        Annotations.from_comparisons(["a"], ["x"], ["y"], [True], tie_model="rao")


def test_larger_sets_do_not_tie(crowd):
    ranking = Annotations.from_rankings([0], [[0, 1, 2]], **crowd.known)
    data = TrainingData.of(crowd.davidson.concat(ranking))
    likelihood = data.first_likelihood(ChoiceLoss())
    assert not isinstance(likelihood, DavidsonLikelihood)


def test_marks_are_selected_and_joined(crowd):
    said = crowd.davidson
    assert said.tied.sum() == 4 * crowd.pairs[3].sum()
    both = said[:10].concat(crowd.half[:6])
    np.testing.assert_array_equal(both.tied, np.append(said.tied[:10], np.zeros(6, np.bool_)))


def test_ties_of_nearby_items_are_likely_and_add_up_to_their_share(crowd, ranker):
    user, won, lost, tied = crowd.pairs
    a, b = crowd.features[won], crowd.features[lost]
    chance = ranker.probability_tied(a, b, user)
    assert chance.mean() == pytest.approx(tied.mean(), abs=0.02)
    assert chance[tied].mean() > chance[~tied].mean() + 0.02
    np.testing.assert_allclose(chance, ranker.probability_tied(b, a, user))
    same = ranker.probability_tied(a[:1], a[:1], user[:1])
    nu = ranker.prior_.likelihood.nu
    assert same == pytest.approx(nu / (nu + 2), rel=0.02)  # features do not tell they are one item


def test_newcomers_and_files_keep_nu(crowd, ranker, tmp_path):
    loaded = load(save(ranker, tmp_path / "pairs.likeminds"))
    assert loaded.prior_.likelihood == ranker.prior_.likelihood
    zoe = Annotations.from_comparisons(["zoe"] * 3, [0, 1, 2], [3, 4, 5], [0, 1, 1], **crowd.known)
    belief = loaded.newcomer(zoe)
    a, b = crowd.features[:1], crowd.features[1:2]
    assert 0.0 < belief.probability_tied(a, b)[0] < 1.0
    # Many ties bring the scores of two items together.
    low, *_, high = np.argsort(crowd.features @ ranker.consensus_)
    often = Annotations.from_comparisons(
        ["zoe"] * 50, [low] * 50, [high] * 50, [1] * 50, **crowd.known
    )
    beliefs = belief, loaded.newcomer(often)
    before, after = (abs(np.diff(one.decision_function(often[:2]))[0]) for one in beliefs)
    assert after < 0.5 * before


@pytest.mark.seconds
def test_updates_with_ties_are_fits_to_all(crowd, tmp_path):
    said, settings = crowd.davidson, {"n_groups": 0, "item_effects": False, "tol": 1e-10}
    part = HierarchicalRanker(**settings).fit(said[:2000])
    grown = load(save(part, tmp_path / "part.likeminds", with_data=True)).update(said[2000:])
    whole = HierarchicalRanker(**settings).fit(said)
    assert grown.prior_.likelihood.tie_share == pytest.approx(crowd.pairs[3].mean())
    assert grown.prior_.likelihood.nu == pytest.approx(whole.prior_.likelihood.nu, rel=1e-4)


@pytest.mark.seconds
@pytest.mark.parametrize(
    "settings", [{"draws": 20, "item_effects": False}, {"wide": True, "item_effects": False}]
)
def test_ties_go_with_simulated_and_wide_fits(crowd, settings):
    ranker = HierarchicalRanker(n_groups=1, max_iter=20, tol=1e-3, **settings).fit(crowd.davidson)
    assert ranker.prior_.likelihood.nu == pytest.approx(NU, rel=0.25)


def test_models_without_ties_have_no_probability_of_them(crowd):
    half = HierarchicalRanker(n_groups=0, item_effects=False, max_iter=3, tol=0.1).fit(crowd.half)
    with pytest.raises(TypeError, match="ties"):
        half.probability_tied(crowd.features[:1], crowd.features[1:2], [0])
