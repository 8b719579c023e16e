"""Features of pictures, from their pixels alone: edges, silhouette and colours."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from likeminds._support.arrays import Float, FloatArray

Pictures = NDArray[np.uint8]
Features = Callable[[Pictures], FloatArray]

_SIDE = 64  # pictures are first reduced to this size
_CELLS = 8
_ANGLES = 6
_LEVELS = 4


def describe(pictures: Pictures) -> Float:
    """Return edges by place and direction, silhouettes and colours of pictures.

    Parameters
    ----------
    pictures : array of shape (n, size, size, 3)
        At least 64 pixels high and wide, on a plain light background.

    Returns
    -------
    array of shape (n, 544): 384 edges (8 x 8 places, 6 directions), 96 of the silhouette
    (upper edge, lower edge and filled share of 32 columns), 64 colours (4 x 4 x 4)

    Examples
    --------
    >>> describe(np.full((2, 128, 128, 3), 246, dtype=np.uint8)).shape
    (2, 544)
    """
    small = _reduce(pictures)
    corner = small[:, :2, :2].mean(axis=(1, 2), keepdims=True)
    ink = np.clip(np.abs(small - corner).max(axis=3) / 0.2, 0, 1)
    parts = [_edges(small.mean(axis=3)), _silhouette(ink), _colours(small, ink)]
    return np.concatenate([_as_block(part) for part in parts], axis=1)


def reduce(features: FloatArray, n_components: int) -> Float:
    """Return the principal components, at most as many as there are columns.

    Examples
    --------
    >>> reduce(np.array([[0.0, 0], [1, 1], [2, 2]]), n_components=1).round(2).ravel().tolist()
    [-1.41, 0.0, 1.41]
    """
    centred = features - features.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    vectors = vectors[:, ::-1][:, :n_components]
    largest = np.abs(vectors).argmax(axis=0)
    vectors = vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return np.asarray(centred @ vectors, dtype=np.float64)


def _as_block(part: Float) -> Float:
    """Flatten, and make the blocks comparable: many columns do not count more than few."""
    flat = part.reshape(len(part), -1)
    return np.asarray(flat / np.sqrt(flat.shape[1]))


def _reduce(pictures: Pictures) -> Float:
    n, size = pictures.shape[:2]
    if pictures.ndim != 4 or size < _SIDE or pictures.shape[2] != size:
        raise ValueError(
            f"pictures must have the shape (n, size, size, 3) with a size of at least {_SIDE}, "
            f"but have the shape {pictures.shape}."
        )
    step = size // _SIDE
    first = (size - step * _SIDE) // 2
    inside = slice(first, first + step * _SIDE)
    cut = pictures[:, inside, inside].reshape(n, _SIDE, step, _SIDE, step, 3)
    return np.asarray(cut.mean(axis=(2, 4)) / 255)


def _edges(grey: Float) -> Float:
    down, right = np.gradient(grey, axis=(1, 2))
    strength = np.hypot(down, right)
    angle = np.mod(np.arctan2(down, right), np.pi) / np.pi * _ANGLES
    low = np.floor(angle)
    share = angle - low
    bins = np.zeros((*grey.shape, _ANGLES))
    where = low.astype(np.intp)[..., np.newaxis] % _ANGLES
    np.put_along_axis(bins, where, (strength * (1 - share))[..., np.newaxis], axis=3)
    after = np.take_along_axis(bins, (where + 1) % _ANGLES, axis=3)
    np.put_along_axis(bins, (where + 1) % _ANGLES, after + (strength * share)[..., np.newaxis], 3)
    step = _SIDE // _CELLS
    cells = bins.reshape(-1, _CELLS, step, _CELLS, step, _ANGLES).mean(axis=(2, 4))
    return np.asarray(3 * np.sqrt(cells))


def _silhouette(ink: Float) -> Float:
    """Return where the shoe begins and ends in each pair of columns, and how full they are."""
    columns = ink.reshape(-1, _SIDE, _SIDE // 2, 2).mean(axis=3)
    any_ink = columns > 0.3
    top = np.where(any_ink.any(axis=1), any_ink.argmax(axis=1), _SIDE) / _SIDE
    end = np.where(any_ink.any(axis=1), any_ink[:, ::-1].argmax(axis=1), _SIDE) / _SIDE
    return np.stack([top, end, columns.mean(axis=1)], axis=2)


def _colours(small: Float, ink: Float) -> Float:
    """Return the shares of colours among what is not background, softly binned."""
    n, cells = len(small), _LEVELS**3
    shown = np.nonzero(ink)  # most of a picture is not
    weight = (ink / np.maximum(ink.sum(axis=(1, 2), keepdims=True), 1e-9))[shown]
    place = np.clip(small[shown], 0, 1) * (_LEVELS - 1)
    low = np.minimum(place.astype(np.intp), _LEVELS - 2)
    share = place - low
    out = np.zeros(n * cells)
    for corner in np.ndindex(2, 2, 2):
        at = low + corner
        code = shown[0] * cells + (at[:, 0] * _LEVELS + at[:, 1]) * _LEVELS + at[:, 2]
        near = np.where(np.array(corner) == 1, share, 1 - share).prod(axis=1)
        out += np.bincount(code, weight * near, len(out))
    return np.sqrt(out.reshape(n, cells))
