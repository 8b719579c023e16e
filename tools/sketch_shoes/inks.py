"""A canvas, and how leather, suede, patent and patterns look on it."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from tools.sketch_shoes.curves import Float, Points
from tools.sketch_shoes.raster import Pixels, coverage, relief
from tools.sketch_shoes.scene import Ink

Window = tuple[slice, slice]

_PAPER = 0.965
# How strongly edges round, and how fine the grain is, by material.
_ROUNDING = {"leather": 0.34, "suede": 0.22, "patent": 0.42, "metallic": 0.5, "fabric": 0.24}
_GRAIN = {"leather": 0.012, "suede": 0.04, "patent": 0.0, "metallic": 0.02, "fabric": 0.02}


class Canvas:
    """A picture in the making.

    Parameters
    ----------
    size : int
        Height and width in pixels.
    scale : float
        Pixels per length of a foot: relief and patterns grow with the picture.
    seed : int
        Shifts grain and patterns.
    """

    def __init__(self, size: int, scale: float, seed: int) -> None:
        self.size, self.seed = size, seed
        self.grow = size / 256
        self.scale = scale
        self.pixels = np.full((size, size, 3), _PAPER, dtype=np.float32)
        self.masks: dict[str, tuple[Window, Pixels]] = {}

    def ground(self, level: float, length: float) -> None:
        """Draw the soft shadow under the shoe."""
        y = (np.arange(self.size, dtype=np.float32)[:, np.newaxis] - level) / (5 * self.grow)
        x = (np.arange(self.size, dtype=np.float32) - self.size / 2) / (0.5 * length)
        across = np.clip(1.08 - np.abs(x) ** 4, 0, 1)
        rows = slice(max(0, int(level - 16 * self.grow)), int(level + 16 * self.grow))
        shadow = 0.20 * np.exp(-(y[rows] ** 2)) * across
        self.pixels[rows] *= (1 - shadow)[:, :, np.newaxis]

    def paint(self, curves: Sequence[Points], ink: Ink, name: str = "", within: str = "") -> None:
        """Paint closed curves, cut to an earlier layer where ``within`` names one."""
        window, mask = coverage(curves, self.size)
        if not mask.size:
            return
        if within:
            if within not in self.masks:
                return
            mask = mask * self._cut_mask(within, window)
        if name:
            self.masks[name] = window, mask
        under = self.pixels[window]
        under += mask[:, :, np.newaxis] * (self._blend_ink(window, mask, ink) - under)

    def picture(self) -> NDArray[np.uint8]:
        """Return the picture as bytes."""
        return (np.clip(self.pixels, 0, 1) * 255 + 0.5).astype(np.uint8)

    def _cut_mask(self, name: str, window: Window) -> Pixels:
        """Return the part of a named layer's mask that lies in a window."""
        (rows, columns), mask = self.masks[name]
        out = np.zeros((self.size, self.size), dtype=np.float32)
        out[rows, columns] = mask
        return out[window]

    def _blend_ink(self, window: Window, mask: Pixels, ink: Ink) -> Pixels:
        colour = np.asarray(ink.colour, dtype=np.float32)
        field: Pixels = np.broadcast_to(colour, (*mask.shape, 3))
        if ink.pattern != "plain":
            share = self._tile(ink.pattern, window)[:, :, np.newaxis]
            field = field + share * (np.asarray(ink.accent, dtype=np.float32) - field)
        grain = _GRAIN.get(ink.material, 0.0)
        if ink.relief:
            shade, shine = self._light(mask, ink)
            if grain:
                shade = shade + grain * self._tile("grain", window)
            field = field * shade[:, :, np.newaxis]
            if shine is not None:
                field = field + shine[:, :, np.newaxis] * (1 - field)
        return np.asarray(field)

    def _light(self, mask: Pixels, ink: Ink) -> tuple[Pixels, Pixels | None]:
        """Return shading as if the layer bulged, lit from above, and its highlights."""
        radius = max(1, round(ink.relief * self.grow))
        inner, slope = relief(mask, radius)
        amount = _ROUNDING.get(ink.material, 0.25)
        lit = 1 + amount * np.minimum(slope, 0.55) - 0.16 * np.minimum(1 - inner, 0.6)
        shade = np.asarray(lit, dtype=np.float32)
        if ink.material not in {"patent", "metallic"}:
            return shade, None
        peak = np.exp(-(((slope - 0.42) / 0.13) ** 2)) * np.clip(2 * inner - 0.9, 0, 1)
        if ink.material == "metallic":  # a second, broad reflection from below
            peak += 0.5 * np.exp(-(((slope + 0.3) / 0.2) ** 2)) * np.clip(2 * inner - 0.9, 0, 1)
        return shade, np.asarray(0.75 * peak, dtype=np.float32)

    def _tile(self, name: str, window: Window) -> Pixels:
        """Return a piece of an endless pattern, shifted by the seed."""
        tile = _pattern(name, max(1, round(self.grow * 4)))
        rows, columns = window
        down, right = self.seed * 37 % 256, self.seed * 101 % 256
        return tile[
            np.ix_(
                (np.arange(rows.start, rows.stop) + down) % len(tile),
                (np.arange(columns.start, columns.stop) + right) % len(tile),
            )
        ]


@lru_cache(maxsize=64)
def _pattern(name: str, quarter: int) -> Pixels:
    """Return a square tile of a pattern: the share of the accent colour, or grain."""
    n = 64 * quarter
    y, x = np.mgrid[0:n, 0:n] * (256 / n)
    wave = 2 * np.pi / 256
    across = np.sin(wave * 9 * (x + y)) * np.sin(wave * 9 * (x - y))
    rng = np.random.default_rng(0)
    made = {
        "grain": lambda: np.clip(_noise(rng, n, 0.7 * quarter / 4), -2.5, 1.2),
        "stripes": lambda: _soft(np.sin(wave * 16 * x)),
        "plaid": lambda: 0.5 * _soft(np.sin(wave * 10 * x)) + 0.4 * _soft(np.sin(wave * 10 * y)),
        "dots": lambda: _soft(2.6 * (np.sin(wave * 14 * x) * np.sin(wave * 14 * y) - 0.45)),
        "leopard": lambda: _soft(3 * (0.75 - np.abs(_noise(rng, n, 2.6 * quarter / 4) - 1.1))),
        "snake": lambda: 0.8 * _soft(3 * (np.abs(across) - 0.32)),
        "floral": lambda: _soft(4 * (_noise(rng, n, 5.0 * quarter / 4) - 0.75)),
        "rope": lambda: 0.8 * _soft(np.sin(wave * 40 * y + 0.9 * np.sin(wave * 48 * x))),
        "wood": lambda: (
            0.45 * _soft(np.sin(wave * 22 * y + 2.2 * _noise(rng, n, 14 * quarter / 4)))
        ),
    }
    return np.asarray(made[name](), dtype=np.float32)


def _noise(rng: np.random.Generator, n: int, sigma: float) -> Float:
    """Return smooth noise that continues at the edges: sigma is the width of its blur."""
    frequency = np.fft.fftfreq(n)
    keep = np.exp(-2 * (np.pi * sigma * frequency) ** 2)
    spectrum = np.fft.fft2(rng.standard_normal((n, n))) * keep[:, np.newaxis] * keep
    made = np.fft.ifft2(spectrum).real
    return np.asarray(made / made.std())


def _soft(values: Float) -> Float:
    """Return 0 below, 1 above zero, with soft edges."""
    return np.clip(0.5 + 1.6 * values, 0, 1)
