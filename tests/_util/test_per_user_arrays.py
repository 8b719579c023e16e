"""What people have travels apart from the state that it belongs to, however deep it is."""

import numpy as np

from learned_model import GaussianPrior
from likeminds._util.per_user_arrays import of_users, put_together, take_apart
from likeminds.mixed_model.gaussian_prior import MeanShifts


def test_what_people_have_inside_of_what_people_have_is_taken_apart():
    z = np.arange(12.0).reshape(6, 2)
    prior = GaussianPrior(np.zeros(3), np.ones((3, 1)), np.ones(3), MeanShifts(z, np.ones((3, 2))))
    arrays = []
    apart = take_apart((prior, "state"), arrays)
    assert len(arrays) == 1
    assert arrays[0] is z
    again = put_together(apart, [z[:2]])[0]
    np.testing.assert_array_equal(again.shifts[np.array([1])], prior.shifts[np.array([1])])
    few = of_users(prior, np.array([4, 0]))
    np.testing.assert_array_equal(few.shifts.z, z[[4, 0]])
