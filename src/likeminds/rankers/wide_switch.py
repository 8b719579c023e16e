"""Which way a prior is learned: with matrices of features x features, or in the space of rows."""

import warnings
from collections.abc import Mapping

import numpy as np

from likeminds._util.checks import listing
from likeminds.data.annotations import Annotations

# More coordinates than this are learned in the space of rows. Where items have effects of their
# own, which takes matrices, so many more are worth it.
WIDE, WIDE_SHARED = 256, 512
# Matrices of features x features that are held at once, about.
_MATRICES = 12


def directions_of(annotations: Annotations) -> int:
    """Return how many directions labelled items can differ in."""
    labelled = np.zeros(len(annotations.features), dtype=np.bool_)
    labelled[annotations.feature_rows] = True
    return min(annotations.n_features, int(labelled.sum()))


def choose_way(
    asked: bool | str, size: int, needs_matrices: Mapping[str, bool], shared: bool
) -> bool:
    """Say whether a prior is learned in the space of rows.

    Parameters
    ----------
    asked : bool or "auto"
        What the caller wants.
    size : int
        How many directions the labelled items can differ in.
    needs_matrices : mapping from what may be asked for to bool
        Whether it is, and needs matrices of features x features.
    shared : bool
        Whether items would have effects of their own, where there are matrices.
    """
    needs = [name for name, is_asked in needs_matrices.items() if is_asked]
    if asked is True and needs:
        raise ValueError(
            f"wide=True learns without matrices of features x features, which {listing(needs)} "
            "need: leave out either, or reduce the features (likeminds.features.Reduce)."
        )
    if asked != "auto":
        return bool(asked)
    if size <= (WIDE_SHARED if shared else WIDE):
        return False
    if needs:
        taken = _MATRICES * 8 * size**2 / (1 << 30)
        warnings.warn(
            f"{listing(needs)} need matrices of features x features: with {size:,} of them about "
            f"{taken:.1f} GiB, and time that grows with their square (a minute for 500 people with "
            "20 labels and 256 features). Reduce the features first (likeminds.features.Reduce), "
            "or leave that out, to learn in the space of the labels instead.",
            UserWarning,
            stacklevel=7,
        )
        return False
    if shared:
        warnings.warn(
            f"With {size:,} features, items have no effects of their own: reduce them to "
            f"{WIDE_SHARED} or fewer (likeminds.features.Reduce) for that. item_effects=False says "
            "that none are wanted.",
            UserWarning,
            stacklevel=7,
        )
    return True
