"""Colour histograms: which colours a picture has, and how much of each."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import product
from typing import Any

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds.features.extractor import ImageExtractor, one_of, positive_integer
from likeminds.features.feature_cache import Rows
from likeminds.features.images import Image, Picture, read_image

SPACES = {
    "rgb": ("red", "green", "blue"),
    "hsv": ("hue", "saturation", "value"),
    "lab": ("lightness", "a", "b"),
    "opponent": ("red_green", "yellow_blue", "intensity"),
}
# Linear sRGB to XYZ (IEC 61966-2-1), each row divided by the white point D65.
_TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
_TO_XYZ = _TO_XYZ / _TO_XYZ.sum(axis=1, keepdims=True)
_STEPS = np.arange(256) / 255.0
# Pixels whose colours are computed together: in doubles, they take twenty times their bytes.
_AT_ONCE = 1 << 16
_LINEAR = np.where(_STEPS <= 0.04045, _STEPS / 12.92, ((_STEPS + 0.055) / 1.055) ** 2.4)


@dataclass(eq=False, repr=False)
class ColourHistogram(ImageExtractor):
    """The share of a picture's pixels that fall into each bin of a colour space.

    Parameters
    ----------
    space : {"lab", "rgb", "hsv", "opponent"}
        Each channel is divided into bins over its whole range: see `to_space`.
    bins : int
        The number of bins of a channel.
    joint : bool
        One histogram of all three channels together, ``bins``**3 values that sum to 1;
        otherwise one for each channel, 3 x ``bins`` values, of which each third does.
    size : int, optional
        Scale and cut the picture to a square of this side first; by default, count all
        pixels as they are.
    batch_size, cache, progress
        As in `likeminds.features.GIST`.

    Examples
    --------
    >>> red = np.full((2, 2, 3), [1.0, 0.0, 0.0])
    >>> ColourHistogram("rgb", bins=2).fit_transform([red])
    array([[0., 1., 1., 0., 1., 0.]], dtype=float32)
    >>> ColourHistogram("hsv", bins=4, joint=True).fit_transform([red]).argmax()
    np.int64(15)
    """

    space: str = "lab"
    bins: int = 10
    _: KW_ONLY
    joint: bool = False
    size: int | None = None

    def _check(self) -> None:
        super()._check()
        one_of(self.space, "space", list(SPACES))
        positive_integer(self.bins, "bins")
        if self.size is not None:
            positive_integer(self.size, "size")

    def _extractor(self) -> Callable[[Sequence[Any]], Rows]:
        return lambda images: np.stack([self._histogram(image) for image in images])

    def _histogram(self, image: Image) -> Rows:
        pixels = read_image(image, self.size).reshape(-1, 3)
        parts = range(0, len(pixels), _AT_ONCE)
        counts = sum(self._counts(pixels[start : start + _AT_ONCE]) for start in parts)
        return np.asarray(counts / len(pixels), dtype=np.float32)

    def _counts(self, pixels: Picture) -> Index:
        """Return how many of some pixels fall into each bin."""
        places = np.minimum(
            (to_space(pixels, self.space) * self.bins).astype(np.intp), self.bins - 1
        )
        offsets, length = (np.arange(3) * self.bins, 3 * self.bins)
        if self.joint:
            places = places @ [self.bins**2, self.bins, 1]
            offsets, length = np.zeros(1, dtype=np.intp), self.bins**3
        return np.bincount((places.reshape(len(pixels), -1) + offsets).ravel(), minlength=length)

    def _names(self) -> list[str]:
        channels, bins = SPACES[self.space], range(1, self.bins + 1)
        if not self.joint:
            return [f"{self.space}_{channel}_{place}" for channel in channels for place in bins]
        return [f"{self.space}_{a}_{b}_{c}" for a, b, c in product(bins, repeat=3)]


def to_space(pixels: Picture, space: str) -> Float:
    """Return colours in another space, every channel from 0 to 1.

    - ``rgb``: as they are, over 255.
    - ``hsv``: hue, saturation and value.
    - ``lab``: CIE L*a*b* under D65: L*/100, (a* + 128)/256 and (b* + 128)/256.
    - ``opponent``: (r - g + 1)/2, (r + g - 2b + 2)/4 and (r + g + b)/3.
    """
    if space == "lab":
        return _lab(pixels)
    rgb = pixels / 255.0
    if space == "rgb":
        return rgb
    if space == "hsv":
        return _hsv(rgb)
    red, green, blue = rgb.T
    return np.column_stack(
        [(red - green + 1) / 2, (red + green - 2 * blue + 2) / 4, (red + green + blue) / 3]
    )


def _hsv(rgb: Float) -> Float:
    red, green, blue = rgb.T
    value = rgb.max(axis=1)
    spread = value - rgb.min(axis=1)
    safe = np.where(spread, spread, 1.0)
    hue = np.select(
        [value == red, value == green],
        [(green - blue) / safe, 2 + (blue - red) / safe],
        4 + (red - green) / safe,
    )
    return np.column_stack([hue / 6 % 1, spread / np.where(value, value, 1.0), value])


def _lab(pixels: Picture) -> Float:
    xyz: Float = _LINEAR[pixels] @ _TO_XYZ.T
    x, y, z = _cube_root(xyz).T
    lightness = (116 * y - 16) / 100
    a, b = 500 * (x - y), 200 * (y - z)
    stacked: Float = np.column_stack([lightness, (a + 128) / 256, (b + 128) / 256])
    # Greys are 0.5 in a* and b*, an edge of bins: rounding in the product must not decide.
    return stacked.round(12).clip(0.0, 1.0)


def _cube_root(values: Float) -> Float:
    """Return CIE's cube root, which is a line near zero."""
    return np.where(values > (6 / 29) ** 3, np.cbrt(values), values * (29 / 6) ** 2 / 3 + 4 / 29)
