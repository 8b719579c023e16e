"""The learned prior cannot tell where its people are."""

import numpy as np
import pytest

from learned_model import PickledShards, responses_of
from likeminds import make_schools
from likeminds.mixed_model.fit_prior import learn
from likeminds.mixed_model.losses import PRIOR_LOSSES


@pytest.mark.seconds
@pytest.mark.parametrize("loss", ["logistic", "auc"])
def test_shards_that_are_sent_bytes_learn_the_same_prior(loss):
    said = make_schools(60, 12, 300, 8, n_schools=2, random_state=0).annotations
    responses, coordinates = responses_of(said, loss)
    shards = PickledShards(responses, 3)
    here, there = (
        learn(
            users,
            coordinates.n_weights,
            coordinates.size,
            1,
            likelihood=PRIOR_LOSSES[loss].likelihood,
            tol=1e-10,
            max_iter=500,
        )
        for users in (responses, shards)
    )
    found, its = here.model.prior, there.model.prior
    np.testing.assert_allclose(its.mean, found.mean, atol=1e-4)
    np.testing.assert_allclose(its.covariance, found.covariance, atol=1e-4)
    # What comes back of a visit does not grow with the number of people.
    assert shards.largest < 8 * 3 * coordinates.size**2 + 2000
