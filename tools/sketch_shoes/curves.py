"""Closed curves: splines, bands along a path, ellipses."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float = NDArray[np.float64]

Points = Float


@lru_cache(maxsize=16)
def _weights(steps: int) -> Points:
    """Weights of four control points at evenly spaced places between the middle two."""
    t = np.arange(steps)[:, np.newaxis] / steps
    powers = np.concatenate([np.ones_like(t), t, t**2, t**3], axis=1)
    matrix = np.array([[0, 2, 0, 0], [-1, 0, 1, 0], [2, -5, 4, -1], [-1, 3, -3, 1]]) / 2
    return np.asarray(powers @ matrix)


def spline(points: ArrayLike, steps: int = 8) -> Points:
    """Return a smooth curve through the points (Catmull-Rom), both ends included.

    Examples
    --------
    >>> spline([[0, 0], [1, 1], [2, 0]], steps=2).tolist()
    [[0.0, 0.0], [0.4375, 0.5625], [1.0, 1.0], [1.5625, 0.5625], [2.0, 0.0]]
    """
    given = np.asarray(points, dtype=np.float64)
    padded = np.concatenate([given[:1], given, given[-1:]])
    windows = np.stack([padded[k : k + len(given) - 1] for k in range(4)], axis=1)
    inner = np.matmul(_weights(steps), windows).reshape(-1, 2)
    return np.concatenate([inner, given[-1:]])


def xy(x: float, y: float) -> Points:
    """Return a point, or a shift."""
    return np.array([x, y], dtype=np.float64)


def path(*pieces: ArrayLike) -> Points:
    """Join curves (or single points) one after the other: corners where they meet."""
    return np.concatenate([np.atleast_2d(np.asarray(piece, dtype=np.float64)) for piece in pieces])


def band(line: ArrayLike, width: float | Sequence[float]) -> Points:
    """Return the outline of a band along a line; its width may change evenly along it.

    Examples
    --------
    >>> band([[0, 0], [4, 0]], 2).tolist()
    [[0.0, 1.0], [4.0, 1.0], [4.0, -1.0], [0.0, -1.0]]
    """
    middle = np.asarray(line, dtype=np.float64)
    along = np.gradient(middle, axis=0)
    along /= np.maximum(np.hypot(along[:, 0], along[:, 1]), 1e-12)[:, np.newaxis]
    ends = (width, width) if isinstance(width, int | float) else width
    half = np.interp(np.linspace(0, 1, len(middle)), np.linspace(0, 1, len(ends)), ends) / 2
    aside = np.stack([-along[:, 1], along[:, 0]], axis=1) * half[:, np.newaxis]
    return np.concatenate([middle + aside, (middle - aside)[::-1]])


def ellipse(
    centre: ArrayLike, rx: float, ry: float | None = None, tilt: float = 0.0, n: int = 24
) -> Points:
    """Return an ellipse (a circle without ``ry``), tilted by an angle in radians."""
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    flat = np.stack([rx * np.cos(angle), (rx if ry is None else ry) * np.sin(angle)], axis=1)
    return np.asarray(np.asarray(centre, dtype=np.float64) + turn(flat, tilt))


def turn(points: ArrayLike, angle: float) -> Points:
    """Turn points around the origin, counter-clockwise."""
    c, s = np.cos(angle), np.sin(angle)
    return np.asarray(np.asarray(points, dtype=np.float64) @ np.array([[c, s], [-s, c]]))


def between(line: Points, first: float, last: float, n: int = 12) -> Points:
    """Return the piece of a line between two shares of its length, as n points."""
    steps = np.hypot(*np.diff(line, axis=0).T)
    length = np.concatenate([[0.0], np.cumsum(steps)])
    places = np.linspace(first, last, n) * length[-1]
    return np.stack([np.interp(places, length, line[:, k]) for k in (0, 1)], axis=1)


def area(polygon: Points) -> float:
    """Return the signed area: positive where the corners go counter-clockwise (y upwards)."""
    x, y = polygon[:, 0], polygon[:, 1]
    twice = x[:-1] @ y[1:] - y[:-1] @ x[1:] + x[-1] * y[0] - y[-1] * x[0]
    return float(twice) / 2
