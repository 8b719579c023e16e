"""Schools of thought: a matrix whose weak directions are penalised."""

from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float
from likeminds.components.component import PerUser
from likeminds.components.singular import top_directions


@dataclass(frozen=True)
class Group(PerUser):
    """The group level, one row per person: a matrix whose weak directions are penalised.

    The penalty is alpha times the sum of the squared singular values after the first
    ``n_groups``, which co-clusters people and features, plus ``shrinkage`` times the sum of
    the first ``n_groups`` (0 in the paper: the strong directions are free there).

    Examples
    --------
    >>> group = Group(alpha=0.5, n_groups=1)
    >>> part = np.array([[3.0, 0.0], [0.0, 1.0]])
    >>> group.value(part)
    0.5
    >>> group.prox(part, step=1.0)
    array([[3. , 0. ],
           [0. , 0.5]])
    """

    alpha: float
    n_groups: int
    shrinkage: float = 0.0
    name: str = "group"

    def __post_init__(self) -> None:
        if self.shrinkage > self.alpha:
            raise ValueError(
                f"group_shrinkage ({self.shrinkage:g}) must not be larger than alpha_group "
                f"({self.alpha:g}): the strong directions would then cost more than the weak ones."
            )

    def value(self, part: Float) -> float:
        """Return alpha * (weak directions) + shrinkage * (strong directions), squared."""
        strong = float(np.sum((part @ top_directions(part, self.n_groups)) ** 2))
        return self.alpha * (float(np.vdot(part, part)) - strong) + self.shrinkage * strong

    def prox(self, point: Float, step: float) -> Float:
        """Shrink the weak directions, and the strong ones by their own factor."""
        return self._scale_directions(
            point,
            strong=1.0 / (1.0 + 2.0 * step * self.shrinkage),
            weak=1.0 / (1.0 + 2.0 * step * self.alpha),
        )

    def residual(self, part: Float, gradient: Float) -> float:
        """Return |gradient + 2 shrinkage strong part + 2 alpha weak part|."""
        slope = self._scale_directions(part, strong=2.0 * self.shrinkage, weak=2.0 * self.alpha)
        return float(np.linalg.norm(gradient + slope))

    def _scale_directions(self, part: Float, *, strong: float, weak: float) -> Float:
        # Only the strong directions are needed, never a whole SVD: U diag(s) V' with the
        # first n_groups scaled by one factor and the rest by another is
        # weak * part + (strong - weak) * part B B'.
        directions = top_directions(part, self.n_groups)
        scaled: Float = weak * part
        scaled += (strong - weak) * (part @ directions) @ directions.T
        return scaled
