"""Descriptors of pictures: GIST (orientations and scales by block) and colour histograms."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from itertools import pairwise, product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from sklearn.utils._param_validation import StrOptions

from likeminds._util.array_types import Float, Index
from likeminds.features.extractor import POSITIVE, Extractor, Rows
from likeminds.features.images import Image, Picture, read_image

# The constants of Oliva and Torralba's program.
_PADDING = 32  # pixels mirrored at each border before the filters
_PREFILTER_PADDING = 5
_CUTOFF = 4.0  # of the prefilter, in cycles per picture
_CONTRAST_FLOOR = 0.2
_HIGHEST, _RATIO = 0.3, 1.85  # centre of the finest scale in cycles per pixel; scale to scale
_RADIAL = 3.5  # how narrow the filters are along the frequency
# Gains below this make no difference in single precision.
_NOTHING = 1e-7


@dataclass(eq=False, repr=False)
class GIST(Extractor):
    """The gist of a scene: energies of Gabor filters, averaged over the blocks of a grid.

    A picture is scaled, cropped to a square, converted to grey, and normalised to a uniform local
    contrast. Gabor filters are applied in the frequency domain. The magnitudes of the responses are
    averaged in each block. 4 scales x 8 orientations x 4 x 4 blocks give 512 values. One core
    transforms about a thousand pictures of 128 x 128 pixels per minute.

    Filters, prefilter, constants and the order of the values follow the program of Oliva and
    Torralba (scale, orientation, column of blocks, row of blocks; the last one changes fastest).
    The last digits differ from theirs, because of another scaling library and single precision.

    Parameters
    ----------
    size : int
        The side of the square, in pixels.
    orientations : tuple of int
        The number of orientations of each scale, from the finest to the coarsest.
    blocks : int
        The number of rows, and of columns, of the grid.
    batch_size : int
        The number of pictures in memory at a time.
    cache : path, optional
        A folder to store the values in: see `likeminds.features.extractor.FeatureCache`.
    progress : bool
        Show a progress bar with the time left.

    References
    ----------
    Oliva, A. and Torralba, A. (2001), "Modeling the shape of the scene: a holistic
    representation of the spatial envelope", International Journal of Computer Vision 42.

    Examples
    --------
    >>> stripes = np.indices((64, 64))[1] // 4 % 2 * 1.0
    >>> values = GIST(size=64).fit_transform([stripes, stripes.T])
    >>> values.shape
    (2, 512)
    >>> energies = values.reshape(2, 4, 8, 16).mean(axis=(1, 3))
    >>> energies.argmax(axis=1)        # across, and down: a quarter turn apart
    array([0, 4])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Extractor._parameter_constraints,
        "size": [POSITIVE],
        "blocks": [POSITIVE],
    }

    size: int = 128
    orientations: Sequence[int] = (8, 8, 8, 8)
    blocks: int = 4

    def _check(self) -> None:
        super()._check()
        if not len(self.orientations) or not all(map(POSITIVE.is_satisfied_by, self.orientations)):
            raise ValueError(
                f"orientations must have a positive integer per scale, but is {self.orientations}."
            )
        if self.blocks > self.size:
            raise ValueError(f"blocks must be at most size={self.size}, but is {self.blocks}.")

    def _extractor(self) -> Callable[[Sequence[Any]], Rows]:
        bands = _pass_bands(gabor_bank(self.size + 2 * _PADDING, tuple(self.orientations)))

        def extract(images: Sequence[Any]) -> Rows:
            grey = [_grey(read_image(image, self.size)) for image in images]
            return np.stack([_energies(image, bands, self.blocks) for image in prefilter(grey)])

        return extract

    def _names(self) -> list[str]:
        sides = range(1, self.blocks + 1)
        return [
            f"gist_scale{scale}_orientation{orientation}_column{column}_row{row}"
            for scale, number in enumerate(self.orientations, start=1)
            for orientation in range(1, number + 1)
            for column in sides
            for row in sides
        ]


@lru_cache(maxsize=4)
def gabor_bank(side: int, orientations: tuple[int, ...]) -> NDArray[np.float32]:
    """Return the filters' transfer functions, (n_filters, side, side), zero frequency first.

    A filter has a scale s (from 0) and an orientation o out of n. Its frequencies f are in cycles
    per pixel, its angles a in (-pi, pi]. Its gain is
    ``exp(-3.5 (f/f_s - 1)^2 - 2 pi (n/8)^2 (a + pi o/n)^2)``, with ``f_s = 0.3/1.85^s``. Filters
    are one-sided, so the size of the response is an envelope.
    """
    frequency = np.fft.fftfreq(side)
    radius = np.hypot(frequency[:, np.newaxis], frequency)
    angle = np.arctan2(frequency[:, np.newaxis], frequency[np.newaxis])
    bank = []
    for scale, number in enumerate(orientations):
        centre = _HIGHEST / _RATIO**scale
        for orientation in range(number):
            turned = angle + np.pi * orientation / number
            turned = np.where(turned > np.pi, turned - 2 * np.pi, turned)
            across = 2 * np.pi * (number / 8) ** 2 * turned**2
            bank.append(np.exp(-_RADIAL * (radius / centre - 1) ** 2 - across))
    return np.array(bank, dtype=np.float32)


def prefilter(images: Sequence[Rows]) -> Rows:
    """Return grey pictures of equal size (0 to 255) with their local contrast made uniform.

    Subtracts low frequencies from the logarithm, and divides the rest by its local standard
    deviation plus 0.2.
    """
    stack = np.log1p(np.stack(images))
    side = stack.shape[1]
    pad = _PREFILTER_PADDING
    after = pad + side % 2  # an even number of pixels, as in the original
    padded = np.pad(stack, ((0, 0), (pad, after), (pad, after)), mode="symmetric")
    low = _low_pass(padded.shape[1])
    details = padded - _apply_filter(padded, low)
    spread = np.sqrt(np.abs(_apply_filter(details**2, low)))
    uniform = (details / (_CONTRAST_FLOOR + spread)).astype(np.float32, copy=False)
    return uniform[:, pad : pad + side, pad : pad + side]


@lru_cache(maxsize=4)
def _low_pass(side: int) -> Rows:
    """Return a Gaussian that is one half at the cutoff, for real transforms."""
    down = fft.fftfreq(side, 1 / side)[:, np.newaxis]
    across = fft.rfftfreq(side, 1 / side)
    gain: Rows = np.exp(-(down**2 + across**2) * np.log(2) / _CUTOFF**2).astype(np.float32)
    return gain


def _apply_filter(images: Rows, gain: Rows) -> Rows:
    result: Rows = fft.irfft2(fft.rfft2(images) * gain, s=images.shape[1:])
    return result


def _grey(pixels: NDArray[np.uint8]) -> Rows:
    """Return the mean of the channels, stretched to 0..255; a uniform picture is 0."""
    grey: Rows = pixels.mean(axis=2, dtype=np.float32)
    grey -= grey.min()
    highest = grey.max()
    return grey * (np.float32(255) / highest) if highest else grey


def _pass_bands(bank: NDArray[np.float32]) -> list[tuple[NDArray[np.intp], NDArray[np.float32]]]:
    """Return, for each filter, the rows of frequencies in its pass band, and its gains."""
    bands = [np.flatnonzero(transfer.max(axis=1) > _NOTHING) for transfer in bank]
    return [(rows, transfer[rows]) for rows, transfer in zip(bands, bank, strict=True)]


def _energies(
    image: Rows, bands: list[tuple[NDArray[np.intp], NDArray[np.float32]]], blocks: int
) -> Rows:
    side = len(image)
    spectrum = fft.fft2(np.pad(image, _PADDING, mode="symmetric"))
    inside = slice(_PADDING, _PADDING + side)
    edges = np.linspace(0, side, blocks + 1).astype(int)
    means = np.zeros((blocks, side), dtype=np.float32)
    for row, (start, end) in zip(means, pairwise(edges), strict=True):
        row[start:end] = 1 / (end - start)
    values = np.empty((len(bands), blocks, blocks), dtype=np.float32)
    # One filter at a time stays in the processor's cache. Along the rows, only frequencies in the
    # pass band are transformed; along the columns, only pixels inside the picture.
    half = np.zeros((len(spectrum), side), dtype=np.complex64)
    for value, (rows, gains) in zip(values, bands, strict=True):
        half[:] = 0
        half[rows] = fft.ifft(spectrum[rows] * gains, axis=1, overwrite_x=True)[:, inside]
        sizes = np.abs(fft.ifft(half, axis=0)[inside])
        value[:] = (means @ sizes @ means.T).T  # down the columns first
    return values.ravel()


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
class ColourHistogram(Extractor):
    """The share of a picture's pixels in each bin of a colour space.

    Parameters
    ----------
    space : {"lab", "rgb", "hsv", "opponent"}
        Each channel is divided into bins over its whole range: see `to_space`.
    bins : int
        The number of bins of a channel.
    joint : bool
        Whether to make one histogram of all channels together: ``bins``**3 values that sum to 1.
        By default, one per channel: 3 x ``bins`` values, which sum to 1 in each channel.
    size : int, optional
        Scale and crop the picture to a square of this side first; by default, use all pixels.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Extractor._parameter_constraints,
        "space": [StrOptions(set(SPACES))],
        "bins": [POSITIVE],
        "size": [POSITIVE, None],
    }

    space: str = "lab"
    bins: int = 10
    _: KW_ONLY
    joint: bool = False
    size: int | None = None

    def _extractor(self) -> Callable[[Sequence[Any]], Rows]:
        return lambda images: np.stack([self._histogram(image) for image in images])

    def _histogram(self, image: Image) -> Rows:
        pixels = read_image(image, self.size).reshape(-1, 3)
        parts = range(0, len(pixels), _AT_ONCE)
        counts = sum(self._counts(pixels[start : start + _AT_ONCE]) for start in parts)
        return np.asarray(counts / len(pixels), dtype=np.float32)

    def _counts(self, pixels: Picture) -> Index:
        """Return the number of pixels in each bin."""
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
    # CIE's cube root is a line near zero.
    line = xyz * (29 / 6) ** 2 / 3 + 4 / 29
    x, y, z = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), line).T
    lightness = (116 * y - 16) / 100
    a, b = 500 * (x - y), 200 * (y - z)
    stacked: Float = np.column_stack([lightness, (a + 128) / 256, (b + 128) / 256])
    # Greys are 0.5 in a* and b*, an edge of bins: rounding in the product must not decide.
    return stacked.round(12).clip(0.0, 1.0)
