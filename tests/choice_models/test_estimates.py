"""Standard errors and statistics of the table against their definitions, written naively."""

import numpy as np
import pytest
from scipy.special import logsumexp, ndtr

from crowds import make_choices
from likeminds import HierarchicalRanker, load_electricity

pytestmark = pytest.mark.seconds

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
LOG_WEIGHTS = np.log(WEIGHTS / WEIGHTS.sum())


@pytest.fixture(scope="module")
def crowd():
    return make_choices([1.0], [[1.5]], n_users=60, n_sets=8)[0]


@pytest.fixture(scope="module")
def table(crowd):
    ranker = HierarchicalRanker(covariance="diagonal", draws=400).fit(crowd)
    return ranker.summary(draws=2000)


def log_likelihoods(crowd, mean, deviation):
    """Return the log-likelihood of each user's choices, by quadrature over one normal weight."""
    slopes = mean + deviation * NODES
    scores = crowd.X[:, :1] * slopes
    n_sets = crowd.choice_set_codes.max() + 1
    found = np.zeros((crowd.n_users, len(NODES)))
    for group in range(n_sets):
        rows = crowd.choice_set_codes == group
        chosen = scores[rows][crowd.labels[rows]][0] - logsumexp(scores[rows], axis=0)
        found[crowd.user_codes[rows][0]] += chosen
    return logsumexp(found + LOG_WEIGHTS, axis=1)


def differences(crowd, at, step=1e-3):
    """Return users' scores and the Hessian of the sum, by differences of values."""
    at, steps = np.asarray(at), step * np.eye(2)

    def value(x):
        return log_likelihoods(crowd, *x)

    scores = np.array([(value(at + e) - value(at - e)) / (2 * step) for e in steps]).T
    hessian = np.array(
        [
            [
                (
                    value(at + e + f) - value(at + e - f) - value(at - e + f) + value(at - e - f)
                ).sum()
                / (4 * step**2)
                for f in steps
            ]
            for e in steps
        ]
    )
    return scores, hessian


def test_standard_errors_are_those_of_the_hessian_and_the_sandwich(crowd, table):
    (row,) = table.rows
    scores, hessian = differences(crowd, [row["mean"], row["sd"]])
    inverse = np.linalg.inv(-hessian)
    plain = np.sqrt(np.diag(inverse))
    robust = np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse))
    assert [row["error"], row["sd error"]] == pytest.approx(plain, rel=0.03)
    assert [row["robust error"], row["sd robust error"]] == pytest.approx(robust, rel=0.05)
    assert row["z"] == pytest.approx(row["mean"] / row["error"])
    assert row["p"] == pytest.approx(2 * ndtr(-abs(row["z"])))
    assert any("Hessian" in note and "sandwich" in note for note in table.notes)


def test_statistics_by_definition(crowd, table):
    fit, log_l = table.fit, table.log_likelihood.value
    assert (fit.n_choices, fit.n_users, fit.n_parameters) == (480, 60, 2)
    assert fit.null_log_likelihood == pytest.approx(-480 * np.log(3))
    assert fit.aic == pytest.approx(2 * 2 - 2 * log_l)
    assert fit.bic == pytest.approx(2 * np.log(480) - 2 * log_l)
    assert fit.mcfadden_r2 == pytest.approx(1 - log_l / (-480 * np.log(3)))
    assert log_l == pytest.approx(
        log_likelihoods(crowd, table.rows[0]["mean"], table.rows[0]["sd"]).sum(), abs=0.5
    )
    assert table.to_dict()["aic"] == fit.aic
    assert "480 choices by 60 users" in str(table)


def test_parameters_of_every_form_are_counted():
    crowd, _ = make_choices([1.0, -1.0, 0.5], np.diag([1.0, 0.5, 0.8]), n_users=80, n_sets=6)
    counts = {}
    for kind in ("full", "diagonal", "low_rank"):
        ranker = HierarchicalRanker(covariance=kind, n_groups=1).fit(crowd)
        counts[kind] = ranker.summary(draws=40).fit.n_parameters
    assert counts == {"full": 3 + 6, "diagonal": 3 + 3, "low_rank": 3 + 3 + 1}
    fixed = HierarchicalRanker(covariance="diagonal", fixed=["size"], draws=40).fit(crowd)
    assert fixed.summary(draws=40).fit.n_parameters == 3 + 2


def test_a_full_covariance_has_errors_where_the_hessian_is_not_definite():
    crowd, _ = make_choices([0.5, -0.5], np.diag([0.02, 0.02]), n_users=40, n_sets=3)
    found = [
        HierarchicalRanker(covariance="full")
        .fit(crowd[crowd.user_codes % 4 != k])
        .summary(draws=60)
        for k in range(3)
    ]
    assert any(table.estimates.by == "scores" for table in found)
    for table in found:
        assert all(row["error"] > 0 and row["robust error"] > 0 for row in table.rows)
        by_scores = table.estimates.by == "scores"
        said = " ".join(table.notes)
        assert by_scores == ("BHHH" in said) == ("conditional on the correlations" in said)
        if by_scores:
            assert all(row["sd error"] > 0 for row in table.rows)


def test_a_published_model_is_within_its_standard_errors():
    # xlogit's documentation, 600 draws: log-likelihood -3888.413.
    means = [-0.9996, -0.2355, 2.231, 1.625, -9.607, -9.789]
    deviations = [0.236, 0.403, 1.926, 1.219, 2.335, 1.420]
    ranker = HierarchicalRanker(covariance="diagonal", draws=60).fit(load_electricity())
    table = ranker.summary(draws=100)
    for row, mean, deviation in zip(table.rows, means, deviations, strict=True):
        assert abs(row["mean"] - mean) < 2 * row["error"]
        assert abs(row["sd"] - deviation) < 3 * row["sd error"]
        assert 0.5 < row["robust error"] / row["error"] < 2
    assert table.fit.n_choices == 4308
    assert -3890 < table.fit.log_likelihood < -3875
    assert table.fit.mcfadden_r2 == pytest.approx(1 - 3882 / (4308 * np.log(4)), abs=2e-3)
