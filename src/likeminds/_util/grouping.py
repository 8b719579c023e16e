"""Group rows by a code."""

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import Index

_LOW_BITS = np.uint64(32)


def order_by(codes: Index, n_codes: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows in the order of their codes, and where each code begins.

    Rows of one code keep their order. Many codes and row numbers share one 64-bit key, because
    sorting plain numbers is several times faster than sorting positions by a key.

    Examples
    --------
    >>> order, offsets = order_by(np.array([2, 0, 2, 0]), 3)
    >>> order
    array([1, 3, 0, 2])
    >>> offsets
    array([0, 2, 2, 4])
    """
    offsets = np.zeros(n_codes + 1, dtype=np.intp)
    np.cumsum(np.bincount(codes, minlength=n_codes), out=offsets[1:])
    rows = np.arange(len(codes), dtype=np.intp)
    if (codes[1:] >= codes[:-1]).all():
        return rows, offsets
    if n_codes <= 1 << 16:  # numbers so short are put in order without comparing them
        return np.argsort(codes.astype(np.uint16), kind="stable"), offsets
    if max(len(codes), n_codes) >= 1 << 32:
        return np.argsort(codes, kind="stable"), offsets
    keys = codes.astype(np.uint64) << _LOW_BITS
    keys |= rows.view(np.uint64)
    keys.sort()
    keys &= np.uint64((1 << 32) - 1)
    return keys.view(np.intp), offsets
