"""Rows grouped by a code."""

import numpy as np
import pytest

from likeminds._util.per_user_arrays import order_by


@pytest.mark.parametrize("n_codes", [3, 1 << 16, (1 << 16) + 1])
def test_rows_are_in_the_order_of_their_codes_and_else_as_they_were(n_codes):
    codes = np.random.default_rng(0).integers(n_codes, size=500)
    codes[:2] = n_codes - 1, 0
    order, offsets = order_by(codes, n_codes)
    np.testing.assert_array_equal(order, np.argsort(codes, kind="stable"))
    assert order.dtype == offsets.dtype == np.intp
    np.testing.assert_array_equal(offsets, np.append(0, np.bincount(codes).cumsum()))
