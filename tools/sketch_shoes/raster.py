"""Polygons to pixels: exact across, eight scan lines down a pixel; and soft relief."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tools.sketch_shoes.curves import Float, Points, area

Pixels = NDArray[np.float32]

_SCANS = 8


def coverage(polygons: Sequence[Points], size: int) -> tuple[tuple[slice, slice], Pixels]:
    """Return the share of each pixel that the union of some polygons covers.

    Parameters
    ----------
    polygons : sequence of arrays of shape (n_corners, 2)
        Corners in pixels, x to the right and y downwards.
    size : int
        Height and width of the picture, in pixels.

    Returns
    -------
    window : pair of slices
        The rows and columns that the polygons can touch.
    share : array
        The share of each pixel in the window, from 0 to 1.

    Examples
    --------
    >>> window, share = coverage([np.array([[1.0, 1], [3.5, 1], [3.5, 2], [1, 2]])], size=8)
    >>> window
    (slice(1, 2, None), slice(1, 4, None))
    >>> share.tolist()
    [[1.0, 1.0, 0.5]]
    """
    start, end = _edges(polygons)
    everything = np.concatenate([start, end])
    low = np.clip(np.floor(everything.min(axis=0)), 0, size).astype(int)
    left, top = low.tolist()
    right, bottom = np.clip(np.ceil(everything.max(axis=0)), low, size).astype(int).tolist()
    window, width, height = (slice(top, bottom), slice(left, right)), right - left, bottom - top
    if not width or not height:
        return window, np.zeros((height, width), dtype=np.float32)
    x, scan, sign = _crossings(start - low, end - low, height)
    x = np.minimum(np.maximum(x, 0), width)
    column = x.astype(np.intp)
    rest = x - column
    place = (scan // _SCANS) * (width + 2) + column
    cells = height * (width + 2)
    sign = sign / _SCANS
    change = np.bincount(place, sign * (1 - rest), cells)
    change += np.bincount(place + 1, sign * rest, cells)
    winding = np.cumsum(change.reshape(height, width + 2), axis=1)[:, :width]
    return window, np.minimum(np.maximum(winding, 0), 1).astype(np.float32)


def _edges(polygons: Sequence[Points]) -> tuple[Points, Points]:
    """Return the ends of all edges; all polygons turn the same way, so none cancel."""
    same = [polygon if area(polygon) <= 0 else polygon[::-1] for polygon in polygons]
    ends = [part for polygon in same for part in (polygon[1:], polygon[:1])]
    return np.concatenate(same), np.concatenate(ends)


def _crossings(start: Points, end: Points, height: int) -> tuple[Points, NDArray[np.intp], Float]:
    """Return where edges cross the scan lines: the place, the scan line and the direction."""
    first = np.ceil(np.minimum(start[:, 1], end[:, 1]) * _SCANS - 0.5).astype(np.intp)
    last = np.ceil(np.maximum(start[:, 1], end[:, 1]) * _SCANS - 0.5).astype(np.intp)
    first, last = (np.minimum(np.maximum(k, 0), height * _SCANS) for k in (first, last))
    counts = last - first
    edge = np.repeat(np.arange(len(start)), counts)
    scan = np.arange(len(edge)) - np.repeat(np.cumsum(counts) - counts - first, counts)
    rise = end[:, 1] - start[:, 1]
    slope = (end[:, 0] - start[:, 0]) / np.where(rise == 0, 1, rise)
    x = start[edge, 0] + ((scan + 0.5) / _SCANS - start[edge, 1]) * slope[edge]
    return x, scan, np.sign(rise)[edge]


def relief(mask: Pixels, radius: int) -> tuple[Pixels, Pixels]:
    """Return heights as if the mask bulged, and how they rise from row to row, downwards.

    Heights are the mask after two passes of a moving average, with nothing outside; a slope
    of one is that of a straight edge.
    """
    from scipy.ndimage import uniform_filter1d  # noqa: PLC0415 - slow to import, and not for all

    margin, (height, width) = 2 * radius, mask.shape
    out = np.zeros((height + 2 * margin, width + 2 * margin), dtype=np.float32)
    out[margin:-margin, margin:-margin] = mask
    for axis in (0, 1, 0, 1):
        uniform_filter1d(out, 2 * radius + 1, axis=axis, output=out, mode="constant")
    columns = slice(margin, -margin)
    rise = out[margin + 1 : 1 - margin, columns] - out[margin - 1 : -margin - 1, columns]
    return out[margin:-margin, columns], rise * radius
