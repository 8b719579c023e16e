"""Curves that shoes are drawn with."""

import numpy as np
import pytest
from tools.sketch_shoes.curves import area, band, between, ellipse, spline


def test_splines_pass_through_their_points():
    points = np.array([[0.0, 0], [1, 2], [3, 1], [4, 4]])
    curve = spline(points, steps=5)
    np.testing.assert_allclose(curve[::5], points)


def test_bands_are_as_wide_as_asked():
    line = np.stack([np.linspace(0, 5, 20), np.zeros(20)], axis=1)
    assert abs(area(band(line, 0.5))) == pytest.approx(2.5)
    assert abs(area(band(line, (0.0, 1.0)))) == pytest.approx(2.5)


def test_a_piece_of_a_line_is_evenly_spaced():
    piece = between(np.array([[0.0, 0], [1, 0], [10, 0]]), 0.2, 0.8, 4)
    np.testing.assert_allclose(piece[:, 0], [2, 4, 6, 8])


def test_an_ellipse_has_its_area():
    assert area(ellipse([1, 2], 3, 2, tilt=0.4, n=200)) == pytest.approx(6 * np.pi, rel=1e-3)
