"""GIST, against its definition."""

import cmath
import math
import pickle

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_union
from sklearn.utils import get_tags

from likeminds.features import GIST, ColourHistogram

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
