"""What takes long to find out about a crowd, kept with its ranker.

How people divide, and which shares of them would say yes to each item, change only when weights,
items or labels do: a mark of these says whether what was kept still holds.
"""

import hashlib
from typing import Any

import numpy as np

from likeminds._util.array_types import Float
from likeminds.data.annotations import Annotations
from likeminds.schools.items import Items
from likeminds.schools.mixture import MixturePartition
from likeminds.schools.school_soft_labels import SoftLabels
from likeminds.schools.weight_levels import WeightLevels

# The fitted attribute that holds it.
NAME = "kept_schools_"
# The arrays of `SoftLabels`, and what they are called in files.
_SHARES = {
    **{name: name for name in ("n_votes", "share", "error", "by_school", "error_by_school")},
    "at_ends": "ends",
    "error_at_ends": "doubt",
}


def mark_of(levels: WeightLevels, items: Items, said: Annotations | None) -> str:
    """Return a checksum of everything that the division and the shares depend on."""
    digest = hashlib.sha256()
    parts: list[Any] = [levels.consensus, levels.group, levels.personal, items.features, items.rows]
    if said is not None:
        parts += [said.user_codes, said.item_codes, said.labels]
        parts += [] if said.weights is None else [said.weights]
    for part in parts:
        array = np.ascontiguousarray(part)
        digest.update(f"{array.dtype.str} {array.shape} ".encode())
        digest.update(array.data)
    return digest.hexdigest()


def keep(
    ranker: Any, mark: str, division: MixturePartition, soft: SoftLabels | None, apart: Float
) -> None:
    """Give a ranker what was found about its crowd; ``apart`` is how items divide it."""
    tried = sorted(division.criterion)
    values = np.array([division.criterion[k] for k in tried])
    known = np.isfinite(values)
    held: dict[str, Any] = {
        "mark": mark,
        "membership": division.membership,
        "stability": division.stability,
        "agreement": float(division.agreement),
        # Infinity stands for what is ruled out, and no file holds it.
        "tried": np.array(tried),
        "ruled_out": ~known,
        "criterion": np.where(known, values, 0.0),
        "apart": apart,
    }
    if soft is not None:
        held |= {kept_as: getattr(soft, name) for name, kept_as in _SHARES.items()}
    setattr(ranker, NAME, held)


def kept(
    ranker: Any, mark: str, items: Items
) -> tuple[MixturePartition, SoftLabels | None, Float] | None:
    """Return what was found about the crowd, as it was kept, if it still holds; else None."""
    held = ranker._learned(NAME)
    if held is None or held["mark"] != mark:
        return None
    values = np.where(held["ruled_out"], np.inf, held["criterion"])
    criterion = dict(zip(held["tried"].tolist(), values.tolist(), strict=True))
    division = MixturePartition(held["membership"], criterion, held["stability"], held["agreement"])
    if "share" not in held:
        return division, None, held["apart"]
    shares = {name: held[kept_as] for name, kept_as in _SHARES.items()}
    return division, SoftLabels(items.ids, items.rows, **shares), held["apart"]
