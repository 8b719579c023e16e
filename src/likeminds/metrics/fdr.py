"""Many tests at once: which of them are discoveries."""

import numpy as np

from likeminds._util.array_types import Bool, Float


def discoveries(p_values: Float, level: float) -> Bool:
    """Return which p-values are discoveries, with the false discovery rate at most ``level``.

    The procedure of Benjamini and Hochberg (1995); NaN is no test, and no discovery.
    """
    tested = np.isfinite(p_values)
    n = int(tested.sum())
    ordered = np.sort(p_values[tested])
    below = np.flatnonzero(ordered <= level * np.arange(1, n + 1) / max(n, 1))
    if not below.size:
        return np.zeros(len(p_values), dtype=np.bool_)
    return np.asarray(tested & (p_values <= ordered[below[-1]]))
