"""Scores and intervals of the service agree with those of the ranker."""

import numpy as np

from likeminds import Annotations, HierarchicalRanker
from likeminds.service.catalogue import ItemCatalogue
from likeminds.service.scoring import AttributeScorer


def test_intervals_of_wide_features_include_the_part_beyond_the_coordinates():
    rng = np.random.default_rng(0)
    features, weights = rng.standard_normal((400, 200)), 0.3 * rng.standard_normal((40, 200))
    users = np.repeat(np.arange(40), 20)
    items = np.concatenate([rng.permutation(400)[:20] for _ in range(40)])
    scores = (features[items] * weights[users]).sum(axis=1)
    labels = scores + rng.logistic(size=len(users)) > 0
    crowd = Annotations(users, items, labels, features)
    ranker = HierarchicalRanker(wide=True, item_effects=False, n_groups=0).fit(crowd)
    assert ranker.prior_.design.beyond > 0
    scorer = AttributeScorer("", ranker, ItemCatalogue(np.arange(400), features))
    profile, shown = scorer.known(3), np.arange(60)
    expected = ranker.standard_error(features[shown], [3] * 60)
    np.testing.assert_allclose(scorer.errors(profile, shown), expected)
    # Ranks are drawn at random: intervals agree up to a few places of 60.
    low, high = ranker.rank_interval(3, features[shown])
    found = np.array(scorer.rank_intervals(profile, shown, shown))
    assert np.abs((found[:, 1] - found[:, 0]).mean() - (high - low).mean()) < 1.0
