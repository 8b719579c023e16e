"""From polygons to the share of each pixel that they cover."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.sketch_shoes.curves import area
from tools.sketch_shoes.raster import coverage


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 12))
def test_sums_to_the_area(seed, n):
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0, 2 * np.pi, n))
    radius = rng.uniform(3, 14, n)[:, np.newaxis]
    polygon = 16 + radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    # Star-shaped around the centre only where no gap is wider than half a turn.
    gaps = np.diff(np.concatenate([angle, angle[:1] + 2 * np.pi]))
    if gaps.max() < np.pi:
        _, share = coverage([polygon], 32)
        assert share.sum() == pytest.approx(abs(area(polygon)), rel=0.02, abs=0.3)
        assert share.min() >= 0
        assert share.max() <= 1


def test_polygons_that_overlap_are_a_union_whichever_way_they_turn():
    square = np.array([[2.0, 2], [10, 2], [10, 10], [2, 10]])
    shifted = square + np.array([4, 0])
    for other in (shifted, shifted[::-1]):
        window, share = coverage([square, other], 32)
        assert window == (slice(2, 10), slice(2, 14))
        np.testing.assert_allclose(share, 1)


def test_is_cut_at_the_edge_of_the_picture():
    window, share = coverage([np.array([[-5.0, -5], [3, -5], [3, 40], [-5, 40]])], 32)
    assert window == (slice(0, 32), slice(0, 3))
    np.testing.assert_allclose(share, 1)
    _, nothing = coverage([np.array([[40.0, 40], [50, 40], [50, 50]])], 32)
    assert nothing.size == 0
