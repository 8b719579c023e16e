"""Colour histograms, against NumPy's and tables of colours."""

import colorsys

import numpy as np
import pytest

from likeminds.features import ColourHistogram
from likeminds.features.descriptors import to_space

PICTURES = np.random.default_rng(1).integers(0, 256, (3, 16, 16, 3), dtype=np.uint8)


class TestColour:
    @pytest.mark.parametrize("space", ["rgb", "hsv", "lab", "opponent"])
    @pytest.mark.parametrize("bins", [1, 4, 7])
    def test_is_numpys_histogram(self, space, bins):
        colours = to_space(PICTURES[0].reshape(-1, 3), space)
        assert colours.min() >= 0
        assert colours.max() <= 1
        joint = ColourHistogram(space, bins, joint=True).transform(PICTURES[:1])[0]
        expected = np.histogramdd(colours, bins=bins, range=[(0, 1)] * 3)[0] / len(colours)
        np.testing.assert_allclose(joint, expected.ravel(), atol=1e-7)
        single = ColourHistogram(space, bins).transform(PICTURES[:1])[0].reshape(3, bins)
        for channel in range(3):
            counts = np.histogram(colours[:, channel], bins=bins, range=(0, 1))[0]
            np.testing.assert_allclose(single[channel], counts / len(colours), atol=1e-7)

    def test_hsv_is_the_standard_librarys(self):
        pixels = np.vstack([PICTURES[0].reshape(-1, 3), [[0, 0, 0], [9, 9, 9], [255, 0, 255]]])
        expected = [colorsys.rgb_to_hsv(*pixel) for pixel in pixels / 255]
        np.testing.assert_allclose(to_space(pixels, "hsv"), expected, atol=1e-12)

    def test_lab_is_the_tables(self):
        pixels = np.uint8(
            [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255], [0, 0, 0], [9, 9, 9]]
        )
        lab = to_space(pixels, "lab") * [100, 256, 256] - [0, 128, 128]
        expected = [
            [53.24, 80.09, 67.20],
            [87.73, -86.18, 83.18],
            [32.30, 79.19, -107.86],
            [100, 0, 0],
            [0, 0, 0],
            [2.46, 0, 0],
        ]
        np.testing.assert_allclose(lab, expected, atol=0.03)

    def test_all_greys_are_in_one_bin(self):
        greys = np.repeat(np.arange(256, dtype=np.uint8), 3).reshape(16, 16, 3)
        found = ColourHistogram("lab", bins=10).transform([greys])[0].reshape(3, 10)
        assert found[1:, 5].tolist() == [1, 1]

    def test_opponent_channels(self):
        colours = to_space(np.uint8([[255, 0, 0], [0, 0, 255], [255, 255, 255]]), "opponent")
        np.testing.assert_allclose(colours, [[1, 0.75, 1 / 3], [0.5, 0, 1 / 3], [0.5, 0.5, 1]])

    def test_names_go_with_the_values(self):
        red = np.full((2, 2, 3), [1.0, 0.0, 0.0])
        histogram = ColourHistogram("rgb", 3)
        named = dict(
            zip(histogram.get_feature_names_out(), histogram.transform([red])[0], strict=True)
        )
        assert [k for k, v in named.items() if v] == ["rgb_red_3", "rgb_green_1", "rgb_blue_1"]
        joint = ColourHistogram("rgb", 3, joint=True)
        place = joint.transform([red])[0].argmax()
        assert joint.get_feature_names_out()[place] == "rgb_3_1_1"

    def test_unknown_space_is_refused(self):
        with pytest.raises(ValueError):
            ColourHistogram("cmyk").fit(PICTURES)
