"""GIST and colour histograms against their definitions, and the cache that both use."""

import cmath
import colorsys
import math
import pickle

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file
from sklearn.base import clone
from sklearn.pipeline import make_union
from sklearn.utils import get_tags

from likeminds.features import GIST, ColourHistogram
from likeminds.features.cache import FeatureCache
from likeminds.features.colour import to_space

PICTURES = np.random.default_rng(1).integers(0, 256, (3, 16, 16, 3), dtype=np.uint8)


def dft(values, sign):
    """The definition of the discrete Fourier transform, in two dimensions."""
    n = len(values)
    basis = np.array(
        [[cmath.exp(sign * 2j * math.pi * j * k / n) for k in range(n)] for j in range(n)]
    )
    return basis @ values @ basis.T / (n * n if sign > 0 else 1)


def mirrored(values, before, after):
    """Mirror at the borders, border included: position -1 is position 0, and so on."""
    n = len(values)
    places = [k % (2 * n) for k in range(-before, n + after)]
    places = [k if k < n else 2 * n - 1 - k for k in places]
    return values[np.ix_(places, places)]


def signed(k, n):
    return k - n if k >= n / 2 else k


def naive_gist(picture, orientations, blocks):
    side = len(picture)
    grey = picture.mean(axis=2)
    grey = np.log(1 + 255 * (grey - grey.min()) / (grey.max() - grey.min()))
    padded = mirrored(grey, 5, 5)
    n = len(padded)
    s1 = 4 / math.sqrt(math.log(2))
    low = np.array(
        [
            [math.exp(-(signed(j, n) ** 2 + signed(k, n) ** 2) / s1**2) for k in range(n)]
            for j in range(n)
        ]
    )
    details = padded - dft(dft(padded, -1) * low, 1).real
    spread = np.sqrt(np.abs(dft(dft(details**2, -1) * low, 1)))
    even = (details / (0.2 + spread))[5:-5, 5:-5]
    padded = mirrored(even, 32, 32)
    n = len(padded)
    spectrum = dft(padded, -1)
    values = []
    for scale, number in enumerate(orientations):
        for orientation in range(number):
            transfer = np.empty((n, n))
            for j in range(n):
                for k in range(n):
                    fy, fx = signed(j, n), signed(k, n)
                    angle = math.atan2(fy, fx) + math.pi / number * orientation
                    angle += 2 * math.pi * (angle < -math.pi) - 2 * math.pi * (angle > math.pi)
                    radius = math.hypot(fx, fy) / n / (0.3 / 1.85**scale)
                    width = 16 * number**2 / 32**2
                    transfer[j, k] = math.exp(
                        -10 * 0.35 * (radius - 1) ** 2 - 2 * width * math.pi * angle**2
                    )
            size = np.abs(dft(spectrum * transfer, 1))[32:-32, 32:-32]
            cut = [int(side * b / blocks) for b in range(blocks + 1)]
            values += [
                size[cut[r] : cut[r + 1], cut[c] : cut[c + 1]].mean()
                for c in range(blocks)
                for r in range(blocks)
            ]
    return values


class TestGIST:
    def test_is_its_definition(self):
        values = GIST(16, (3, 2), 3).transform(PICTURES[:2])
        for row, picture in zip(values, PICTURES, strict=False):
            np.testing.assert_allclose(row, naive_gist(picture, (3, 2), 3), rtol=2e-4)

    def test_has_512_values_in_single_precision(self):
        gist = GIST(size=32)
        values = gist.fit_transform(PICTURES)
        assert values.shape == (3, 512)
        assert values.dtype == np.float32
        names = gist.get_feature_names_out()
        assert len(set(names)) == 512
        assert names[1] == "gist_scale1_orientation1_column1_row2"

    def test_sees_orientation_place_and_scale(self):
        stripes = np.zeros((64, 64))
        stripes[:, :32] = np.indices((64, 32))[1] % 4 < 2
        broad = np.indices((64, 64))[1] % 16 < 8
        values = GIST(64).transform([stripes, stripes.T, broad * 1.0]).reshape(3, 4, 8, 4, 4)
        fine, turned, coarse = values
        assert fine.mean(axis=(0, 2, 3)).argmax() == 0
        assert turned.mean(axis=(0, 2, 3)).argmax() == 4
        assert fine[:, 0, 0].sum() > 5 * fine[:, 0, 3].sum()  # the first column of blocks
        np.testing.assert_allclose(fine[:, 0].swapaxes(1, 2), turned[:, 4], atol=0.01)
        assert coarse.mean(axis=(1, 2, 3)).argmax() > fine.mean(axis=(1, 2, 3)).argmax()

    def test_brightness_and_contrast_do_not_matter(self):
        dim = np.random.default_rng(0).integers(0, 100, (32, 32), dtype=np.uint8)
        plain, brighter, starker = GIST(32).transform([dim, dim + 50, dim * 2])
        np.testing.assert_allclose(brighter, plain, rtol=1e-3)
        np.testing.assert_allclose(starker, plain, rtol=1e-3)

    def test_a_picture_of_one_colour_has_no_energy(self):
        np.testing.assert_allclose(GIST(16).transform([np.full((16, 16), 0.7)]), 0, atol=1e-6)

    def test_batches_change_nothing(self):
        one, all_at_once = (GIST(17, batch_size=size).transform(PICTURES) for size in (1, 9))
        np.testing.assert_array_equal(one, all_at_once)


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


class Counting(ColourHistogram):
    """Counts the pictures it looks at."""

    seen = 0
    stop_after = 10**9

    def _histogram(self, image):
        if type(self).seen >= self.stop_after:
            raise KeyboardInterrupt
        type(self).seen += 1
        return super()._histogram(image)


class TestCache:
    @pytest.fixture(autouse=True)
    def _count_from_zero(self):
        Counting.seen, Counting.stop_after = 0, 10**9

    def test_content_counts_not_the_name(self, tmp_path):
        for name in "ab":
            Image.fromarray(PICTURES[0]).save(tmp_path / f"{name}.png")
        histogram = Counting(cache=tmp_path / "cache")
        first = histogram.transform([tmp_path / "a.png", PICTURES[1], PICTURES[1]])
        assert Counting.seen == 2
        np.testing.assert_array_equal(first, ColourHistogram().transform(PICTURES[[0, 1, 1]]))
        again = histogram.transform([PICTURES[1], PICTURES[2], tmp_path / "b.png"])
        assert Counting.seen == 3
        np.testing.assert_array_equal(again, ColourHistogram().transform(PICTURES[[1, 2, 0]]))
        Image.fromarray(PICTURES[2]).save(tmp_path / "a.png")
        changed = histogram.transform([tmp_path / "a.png"])
        np.testing.assert_array_equal(changed, again[1:2])

    def test_other_parameters_are_another_file(self, tmp_path):
        few = Counting(bins=2, cache=tmp_path).transform(PICTURES)
        assert Counting(bins=3, cache=tmp_path).transform(PICTURES).shape == (3, 9)
        Counting(bins=2, cache=tmp_path, batch_size=1).transform(PICTURES)
        assert Counting.seen == 6
        files = sorted(tmp_path.iterdir())
        assert len(files) == 2
        stored = [load_file(file)["rows"] for file in files]
        assert any(np.array_equal(rows, few) for rows in stored)

    def test_an_interrupt_loses_nothing_that_is_done(self, tmp_path):
        Counting.stop_after = 2
        histogram = Counting(cache=tmp_path, batch_size=1)
        with pytest.raises(KeyboardInterrupt):
            histogram.transform(PICTURES)
        Counting.stop_after = 3
        histogram.transform(PICTURES)
        assert Counting.seen == 3

    def test_rows_are_written_once_a_minute(self, tmp_path, monkeypatch):
        monkeypatch.setattr("likeminds.features.cache._SECONDS_BETWEEN_SAVES", -1.0)
        cache = FeatureCache(tmp_path, {"features": "x"})
        cache.add([b"0" * 16], np.ones((1, 2), np.float32))
        assert b"0" * 16 in FeatureCache(tmp_path, {"features": "x"})

    def test_a_damaged_file_is_made_anew(self, tmp_path):
        histogram = Counting(cache=tmp_path)
        before = histogram.transform(PICTURES)
        (file,) = tmp_path.iterdir()
        for damage in (b"damaged", file.read_bytes()[:-8]):
            file.write_bytes(damage)
            with pytest.warns(UserWarning, match="damaged"):
                np.testing.assert_array_equal(histogram.transform(PICTURES), before)
        np.testing.assert_array_equal(histogram.transform(PICTURES), before)
        assert Counting.seen == 9

    def test_progress_goes_to_the_error_stream(self, capsys, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        ColourHistogram(progress=True).transform(PICTURES)
        shown = capsys.readouterr()
        assert not shown.out
        assert "ColourHistogram" in shown.err
        ColourHistogram().transform(PICTURES)
        assert not capsys.readouterr().err


def test_they_are_scikit_learn_transformers():
    assert not get_tags(GIST()).requires_fit
    both = make_union(GIST(16), ColourHistogram(bins=4))
    values = both.fit_transform(PICTURES)
    assert values.shape == (3, 524)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(clone(both))).fit(PICTURES).transform(PICTURES), values
    )
    frame = ColourHistogram(bins=2).set_output(transform="pandas").fit_transform(PICTURES)
    assert list(frame.columns)[:2] == ["lab_lightness_1", "lab_lightness_2"]
