"""What all see in an item, divided between its features and its own effect."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from likeminds import Annotations, HierarchicalRanker
from likeminds.prior.apportioning import Regression, _cost, apportion
from likeminds.prior.items import OFF_ZERO
from likeminds.rankers import hierarchical


def test_the_cost_is_that_of_contrasts():
    """A and theta integrated out: the density of y without its weighted mean."""
    rng = np.random.default_rng(0)
    X, y, noise = rng.normal(size=(12, 3)), rng.normal(size=12), rng.random(12)
    contrasts = np.linalg.qr(np.column_stack([np.ones(12), rng.normal(size=(12, 11))]))[0][:, 1:]

    def by_definition(spread, variance):
        whole = spread * X @ X.T + np.diag(variance + noise)
        inner = contrasts.T @ whole @ contrasts
        density = multivariate_normal(np.zeros(11), inner).logpdf(contrasts.T @ y)
        return -density - 0.5 * OFF_ZERO * np.log(variance)

    first, second = (0.3, 0.7), (2.0, 0.1)
    wide = np.column_stack([X, np.ones(12)])
    apart = _cost(wide, y, noise, *first) - _cost(wide, y, noise, *second)
    assert apart == pytest.approx(by_definition(*first) - by_definition(*second))


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_features_get_what_is_theirs(strength):
    rng = np.random.default_rng(1)
    X, theta = rng.normal(size=(200, 5)), strength * np.array([1.0, -1.0, 0.5, 0.0, 0.0])
    noise = np.full(200, 0.1)
    y = 3.0 + X @ theta + rng.normal(0, 0.8, 200) + rng.normal(0, np.sqrt(0.1), 200)
    found = Regression.of(X, y, noise)
    assert found.added == pytest.approx(3.0, abs=0.2)
    assert np.abs(found.theta - theta).max() < 0.2
    assert found.variance == pytest.approx(0.64, abs=0.2)


@pytest.mark.slow
def test_known_items_keep_their_scores_and_features_lose_what_is_not_theirs(monkeypatch):
    """With few items and many features the point estimate fits noise, for which new items pay."""
    rng = np.random.default_rng(0)
    user, item = np.repeat(np.arange(60), 30), np.tile(np.arange(30), 60)
    lengths = []
    for _ in range(3):
        liked, X = rng.normal(0, 1.5, 30), rng.normal(size=(30, 26))
        said = rng.random(len(user)) < 1 / (1 + np.exp(-liked[item]))
        crowd = Annotations(user, item, said, X, item_ids=np.arange(30))
        found = []
        for divide in (apportion, lambda learned, *_: learned):
            monkeypatch.setattr(hierarchical, "apportion", divide)
            ranker = HierarchicalRanker(n_groups=0, n_item_factors=0).fit(crowd)
            found.append((X @ ranker.consensus_, X @ ranker.consensus_ + ranker.item_effect_))
        lengths.append([consensus.std() for consensus, _ in found])
        assert np.corrcoef(found[0][1], found[1][1])[0, 1] > 0.98
    divided, learned = np.mean(lengths, axis=0)
    assert divided < 0.6 * learned
