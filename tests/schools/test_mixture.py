"""Examples of `likeminds.schools.mixture`."""

import numpy as np
import pytest

from likeminds.schools.mixture import divide


@pytest.mark.seconds
def test_divide():
    rng = np.random.default_rng(0)
    camps = np.repeat([[-3.0, 0.0], [3.0, 0.0]], 50, axis=0) + rng.standard_normal((100, 2))
    assert divide(camps, None, rng).membership.shape == (100, 2)
    assert divide(rng.standard_normal((100, 2)), None, rng).membership.shape == (100, 1)
