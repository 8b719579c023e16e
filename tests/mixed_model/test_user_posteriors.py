"""What is known of each person in the end."""

import numpy as np

from learned_model import GaussianPrior, PickledShards, WarmStarts, coordinates_of, find_mode
from likeminds import Annotations, HierarchicalRanker, make_schools
from likeminds.mixed_model.likelihoods import LogisticLikelihood
from likeminds.mixed_model.losses import PRIOR_LOSSES
from likeminds.mixed_model.user_posteriors import (
    _approximate_reduction,
    _variance_reduction,
    posterior_of,
)


def test_what_is_nearly_known_claims_no_more_than_labels_say():
    rng = np.random.default_rng(1)
    n_users, n_labels, size, rank = 6, 20, 24, 6
    said = Annotations(
        users=np.repeat(np.arange(n_users), n_labels),
        items=None,
        labels=rng.random(n_users * n_labels) < 0.5,
        features=rng.normal(size=(n_users * n_labels, size)),
    )
    coordinates = coordinates_of(said, standardize=False, intercept=False)
    prior = GaussianPrior(np.zeros(size), rng.normal(size=(size, 3)), np.full(size, 0.4))
    data = PRIOR_LOSSES["logistic"].responses(said, coordinates).data(0)
    mode = find_mode(data, prior, LogisticLikelihood())
    found = _approximate_reduction(mode, prior, rank).astype(np.float64)
    best = _variance_reduction(mode.system, mode.derivatives.curvature, rank) @ prior.root.T
    for person in range(len(data.users)):
        rows = mode.derivatives.curvature.times_root_back(data.rows)[person]
        exact = np.linalg.inv(np.linalg.inv(prior.covariance) + rows.T @ rows)
        claimed = prior.covariance - found[person].T @ found[person]
        assert np.linalg.eigvalsh(claimed - exact).min() > -1e-4
        told = np.trace(found[person].T @ found[person])
        assert told > 0.85 * np.trace(best[person].T @ best[person])


def test_points_of_people_in_shards_are_asked_for():
    said = make_schools(40, 12, 200, 8, n_schools=2, random_state=1).annotations
    ranker = HierarchicalRanker(n_groups=1, item_effects=False).fit(said)
    crowd = ranker.prior_
    responses = PRIOR_LOSSES["logistic"].responses(said, crowd.design)
    here, there = (
        posterior_of(users, said.n_users, crowd, warm_starts=WarmStarts(), rank=4)
        for users in (responses, PickledShards(responses, 3))
    )
    np.testing.assert_allclose(there[0], here[0], atol=1e-7)
    np.testing.assert_allclose(
        there[1].transpose(0, 2, 1) @ there[1], here[1].transpose(0, 2, 1) @ here[1], atol=1e-5
    )
