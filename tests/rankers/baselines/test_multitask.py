"""The seven baselines, against other people's programs and against their definitions."""

import numpy as np
import pytest
from scipy.optimize import minimize

import naive
from crowds import make_crowd
from likeminds import Annotations, DecomposedRanker, Statistics, load, save
from likeminds.baselines import CMTL, COMT, JFL, RAMU, RMTFL, RMTL, LassoMTL
from likeminds.components import Consensus, Personal, Sparse

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*one class only:UserWarning"),
    pytest.mark.seconds,
]


@pytest.fixture
def crowd():
    """People with two labels and three features: still hard, but with an end in sight."""
    return make_crowd(np.random.default_rng(7), n_features=3)


PAPER_BASELINES = [RMTL, RMTFL, LassoMTL, JFL, CMTL, COMT, RAMU]
LOSSES = ["least_squares", "least_squares_raw", "auc"]
every_baseline = pytest.mark.parametrize("kind", PAPER_BASELINES)
every_loss = pytest.mark.parametrize("loss", LOSSES)


@pytest.mark.parametrize("case", [1, 2])
@pytest.mark.parametrize(
    ("kind", "name"),
    [(RMTL, "RMTL"), (RMTFL, "rMTFL"), (LassoMTL, "LASSO"), (JFL, "JFL"), (CMTL, "CMTL")],
)
def test_other_peoples_programs_agree(reference, kind, name, case):
    said = Annotations(
        users=reference["user"], items=None, labels=reference["y"], features=reference["X"]
    )
    parameters = reference[f"{name}_{case}_param"].tolist()
    if kind is CMTL:
        parameters[2] = int(parameters[2])
    exactly = {"loss": "least_squares_raw", "standardize": False, "tol": 1e-8, "max_iter": 10_000}
    ranker = kind(*parameters, **exactly).fit(said)
    theirs = float(reference[f"{name}_{case}_objective"])
    assert ranker.objective_ <= theirs * (1 + 1e-6)
    if ranker.objective_ >= theirs * (1 - 1e-6):
        np.testing.assert_allclose(ranker.coef_, reference[f"{name}_{case}_W"].T, atol=1e-3)
    else:
        assert kind is CMTL  # whose program stopped short of the minimum


@every_baseline
@every_loss
@pytest.mark.seconds
def test_objective_is_that_of_the_definition(crowd, kind, loss):
    ranker = kind(loss=loss, standardize=False, tol=1e-6, max_iter=20_000).fit(crowd)
    weights = sum(ranker.parts_.values())
    assert ranker.objective_ == pytest.approx(
        naive.total_loss(crowd, weights, loss) + naive_penalty(ranker), rel=1e-9
    )
    seen = ranker.users_ != "person-10"  # who has labels of one class only
    np.testing.assert_allclose(ranker.coef_[seen], weights[seen])
    np.testing.assert_allclose(ranker.consensus_, weights[seen].mean(axis=0))
    np.testing.assert_allclose(ranker.coef_[~seen], [ranker.consensus_])


def naive_penalty(ranker):
    """The formulas of the papers, spelled out, at the penalties that were used."""
    sigma = {name: np.linalg.svd(part, compute_uv=False) for name, part in ranker.parts_.items()}
    first, last = ranker.components_[0], ranker.components_[-1]
    columns = {name: np.linalg.norm(part, axis=0) for name, part in ranker.parts_.items()}
    users = {name: np.linalg.norm(part, axis=1) for name, part in ranker.parts_.items()}
    match ranker:
        case RMTL():
            penalty = first.alpha * sigma["low_rank"].sum() + last.alpha * users["personal"].sum()
        case RMTFL():
            penalty = first.alpha * columns["shared"].sum() + last.alpha * users["personal"].sum()
        case LassoMTL():
            penalty = first.alpha * np.abs(ranker.sparse_part_).sum()
        case JFL():
            penalty = first.alpha * columns["shared"].sum()
        case COMT():
            away = ranker.near_mean_part_ - ranker.near_mean_part_.mean(axis=0)
            tail = sigma["group"][last.n_groups :]
            penalty = first.alpha * np.sum(away**2) + last.alpha * np.sum(tail**2)
        case RAMU():
            penalty = first.alpha * np.minimum(sigma["low_rank"], first.threshold).sum()
        case CMTL():
            eta, W = first.rho2 / first.rho1, ranker.clustered_part_
            inner = np.linalg.inv(eta * np.eye(len(W)) + first.matrix(W))
            penalty = first.rho1 * eta * (1 + eta) * np.trace(W.T @ inner @ W)
    return penalty


def test_comt_agrees_with_alternating_minimisation(crowd):
    ranker = COMT(0.6, 0.3, 1, standardize=False, tol=1e-8, max_iter=50_000).fit(crowd)
    price = 0.6 * 0.3 / 0.9
    W = ranker.near_mean_part_ + ranker.group_part_
    theta, strong = W.mean(axis=0), np.zeros_like(W)
    users = list(naive.by_user(crowd))
    for _ in range(300):
        for _ in range(20):
            left, sigma, right = np.linalg.svd(W - theta, full_matrices=False)
            strong = sigma[0] * np.outer(left[:, 0], right[0])
            theta = (W - strong).mean(axis=0)
        W = np.array([near(*person, theta + strong[i], price) for i, person in enumerate(users)])
    value = naive.total_loss(crowd, W, "least_squares") + price * np.sum((W - theta - strong) ** 2)
    assert ranker.objective_ == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(ranker.near_mean_part_ + ranker.group_part_, W, atol=1e-3)


def near(rows, labels, weights, centre, price):
    """The weights of one person who is drawn to a centre: least squares with an intercept."""
    share = weights / weights.sum()
    y = np.where(labels, 1.0, -1.0)
    x = rows - share @ rows
    y = y - share @ y
    A, b = (x.T * share) @ x, (x.T * share) @ y
    return np.linalg.solve(A + 2 * price * np.eye(len(b)), b + 2 * price * centre)


@every_baseline
@every_loss
@pytest.mark.slow
def test_standardising_is_measuring_in_other_units(crowd, kind, loss):
    scale = Statistics.from_annotations(crowd).feature_scale()
    scaled = Annotations(
        users=crowd.users,
        items=None,
        labels=crowd.labels,
        features=crowd.X / scale,
        weights=crowd.weights,
    )
    exactly = {"loss": loss, "tol": 1e-7, "max_iter": 20_000}
    ranker = kind(standardize=True, **exactly).fit(crowd)
    other = kind(standardize=False, **exactly).fit(scaled)
    np.testing.assert_allclose(ranker.coef_ * scale, other.coef_, atol=1e-4)
    assert ranker.objective_ == pytest.approx(other.objective_, rel=1e-6)


@every_baseline
def test_a_warm_start_continues(crowd, kind):
    ranker = kind(warm_start=True, tol=1e-6, max_iter=20_000).fit(crowd)
    first = ranker.n_iter_
    assert ranker.fit(crowd).n_iter_ <= min(3, first)


@every_baseline
def test_labels_can_be_added(crowd, kind):
    rng = np.random.default_rng(0)
    one, two = np.split(rng.permutation(len(crowd)), [70])
    exactly = {"tol": 1e-7, "max_iter": 50_000}
    if kind in (COMT, RAMU):  # not convex: another start may lead elsewhere
        exactly |= {"n_groups": 0} if kind is COMT else {"threshold": np.inf}
    # Penalties are given, so that they do not follow the data that is seen first.
    own = {name: 0.2 for name in kind().get_params() if name.startswith(("alpha", "rho"))}
    grown = kind(**own, **exactly).partial_fit(crowd[one]).update(crowd[two])
    whole = kind(**own, **exactly).fit(crowd)
    place = [np.flatnonzero(grown.users_ == person)[0] for person in whole.users_]
    np.testing.assert_allclose(grown.coef_[place], whole.coef_, atol=2e-4)


@every_baseline
def test_saved_and_loaded(crowd, kind, tmp_path):
    ranker = kind().fit(crowd)
    again = load(save(ranker, tmp_path / "m"))
    assert again.get_params() == ranker.get_params()
    for name, part in ranker.parts_.items():
        np.testing.assert_array_equal(again.parts_[name], part)
    np.testing.assert_array_equal(again.decision_function(crowd), ranker.decision_function(crowd))


@every_baseline
@every_loss
@pytest.mark.slow
def test_candidates_are_parameters_from_strong_to_weak(crowd, kind, loss):
    grid = kind(loss=loss)._default_grid(Statistics.from_annotations(crowd))
    assert len(grid) >= 8
    strongest, weakest = (
        kind(loss=loss, tol=1e-3).set_params(**candidate).fit(crowd)
        for candidate in grid[:: len(grid) - 1]
    )
    assert np.linalg.norm(strongest.coef_) < np.linalg.norm(weakest.coef_)


def test_penalties_that_leave_nothing_leave_nothing(crowd):
    statistics = Statistics.from_annotations(crowd)
    for kind in (LassoMTL, JFL):
        strongest = kind()._default_grid(statistics)[0]["alpha"]
        assert not kind(2.001 * strongest).fit(crowd).coef_.any()
        assert kind(1.99 * strongest).fit(crowd).coef_.any()


def test_bad_parameters_are_refused(crowd):
    with pytest.raises(ValueError):
        RMTL(-1.0).fit(crowd)
    with pytest.raises(ValueError):
        JFL(loss="hinge").fit(crowd)
    with pytest.raises(ValueError):
        CMTL(0.0).fit(crowd)


# Components of one's choice


@pytest.mark.slow
def test_components_of_ones_choice_are_minimised(crowd):
    ranker = DecomposedRanker(
        [Consensus(0.4), Personal(0.3)], loss="auc", standardize=False, tol=1e-8, max_iter=20_000
    ).fit(crowd)

    def cost(flat):
        theta, P = flat[:3], flat[3:].reshape(12, 3)
        lengths = np.sqrt(np.sum(P**2, axis=1) + 1e-12)
        return naive.total_loss(crowd, theta + P, "auc") + 0.4 * theta @ theta + 0.3 * lengths.sum()

    ours = np.concatenate([ranker.consensus_part_, ranker.personal_part_.ravel()])
    assert cost(ours) <= minimize(cost, ours + 0.01, tol=1e-6).fun + 1e-5
    assert list(ranker.parts_) == ["consensus", "personal"]


def test_what_is_no_component_is_refused(crowd):
    with pytest.raises(TypeError):
        DecomposedRanker([3.0]).fit(crowd)
    with pytest.raises(ValueError):
        DecomposedRanker([Sparse(1.0), Sparse(2.0)]).fit(crowd)
    with pytest.raises(ValueError):
        DecomposedRanker([]).fit(crowd)
    with pytest.raises(ValueError):
        DecomposedRanker(Sparse(1.0)).fit(crowd)


def test_components_cannot_be_saved_and_the_message_says_so(crowd, tmp_path):
    with pytest.raises(TypeError):
        save(DecomposedRanker([Sparse(0.1)]).fit(crowd), tmp_path / "m")
