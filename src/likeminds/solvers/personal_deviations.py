"""Each person's deviation from what is shared, eliminated exactly.

The weak directions of the group level and the personal level act on a person alone, and
only their sum V_i matters to the loss. Minimised over how it is divided, their penalties are
a Huber function of |V_i|: quadratic with the factor ``tail`` up to the knee, linear with the
slope ``corner`` after it. In the eigenbasis of A_i the best V_i for given shared weights m_i is
a division before the knee, and a scalar equation after it. What is left,

    phi_i(m) = min over V of  l_i(m + V) + Huber(|V|),

is smooth and convex in m. Coordinates here are those of the eigenbasis: x_i = Q_i m_i.
"""

from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds._util.batched_linalg import row_dots
from likeminds.components import Consensus, Group, Personal

# Penalties of zero leave a level unbounded: a small multiple of the curvature bounds it.
_WHIFF = 1e-12
_TINY = 1e-300


@dataclass(frozen=True)
class Penalty:
    """The three levels' penalties, in the form that the eliminations need.

    Attributes
    ----------
    ridge : float
        On |theta|^2.
    tail, corner : float
        The Huber function's curvature before its knee and slope after it.
    head : float
        On |H|^2, where H is the part of the group level in its strong directions.
    n_groups : int
        The rank of H.
    """

    ridge: float
    tail: float
    corner: float
    head: float
    n_groups: int

    @classmethod
    def of(cls, consensus: Consensus, group: Group, personal: Personal, bend: float) -> "Penalty":
        """Translate the components; ``bend`` is the size of the loss's curvature."""
        tail = max(float(group.alpha), _WHIFF * bend)
        corner = max(float(personal.alpha), _WHIFF * np.sqrt(bend))
        if group.shrinkage >= group.alpha:
            # Strong and weak directions cost the same: nothing is special about any.
            return cls(float(consensus.alpha), tail, corner, 0.0, 0)
        # G = H + E with head |H|^2 + tail |E|^2 costs `shrinkage` where H is free to share.
        head = group.shrinkage * group.alpha / (group.alpha - group.shrinkage)
        return cls(float(consensus.alpha), tail, corner, float(head), group.n_groups)

    @property
    def knee(self) -> float:
        """The length of V_i beyond which the personal level sets in."""
        return self.corner / (2.0 * self.tail)


@dataclass(frozen=True)
class Deviations:
    """phi_i and its derivatives at given shared weights.

    Attributes
    ----------
    value : array of shape (p,)
        phi_i, less its constant c_i / 2.
    stiffness : array of shape (p,)
        mu_i with V_i = (A_i + mu_i)^-1 (b_i - A_i m_i): twice the tail before the knee, the
        corner over |V_i| after it.
    v : array of shape (p, r)
        The deviations. The gradient of phi_i is -mu_i v_i.
    bend, flat : arrays of shape (p, r)
        The Hessian of phi_i is diag(bend) - flat flat'; flat is zero before the knee.
        diag(bend) alone is the curvature of a parabola that lies above phi_i.
    """

    value: Float
    stiffness: Float
    v: Float
    bend: Float
    flat: Float

    @property
    def gradient(self) -> Float:
        """The gradient of phi_i."""
        return -self.stiffness[:, None] * self.v

    def replace(self, where: Index, other: "Deviations", which: Index) -> None:
        """Overwrite some people's entries with those of others."""
        for name in ("value", "stiffness", "v", "bend", "flat"):
            getattr(self, name)[where] = getattr(other, name)[which]


def deviate(curvature: Float, slope: Float, x: Float, penalty: Penalty) -> Deviations:
    """Find everybody's best deviation, given the shared weights x in eigen-coordinates.

    Parameters
    ----------
    curvature, slope : arrays of shape (p, r)
        The people, as in `Spectrum`.
    x : array of shape (p, r)
        Their shared weights.
    penalty : Penalty
        The penalty of deviations.
    """
    pull = slope - curvature * x
    stiffness = np.full(len(x), 2.0 * penalty.tail)
    v = pull / (curvature + stiffness[:, None])
    past = np.flatnonzero(row_dots(v, v) > penalty.knee**2)
    if past.size:
        length = _length_past_knee(curvature[past], pull[past], penalty)
        stiffness[past] = penalty.corner / length
        v[past] = pull[past] / (curvature[past] + stiffness[past, None])
    length = np.sqrt(row_dots(v, v))
    huber = penalty.tail * length**2
    huber[past] = penalty.corner * (length[past] - penalty.knee / 2.0)
    w = x + v
    value = 0.5 * row_dots(curvature * w - 2.0 * slope, w) + huber
    kept = curvature / (curvature + stiffness[:, None])
    flat = np.zeros_like(v)
    unit = v[past] / length[past, None]
    along = kept[past] * unit
    size = np.sqrt(stiffness[past] / np.maximum(row_dots(unit, along), _TINY))
    flat[past] = along * size[:, None]
    return Deviations(value, stiffness, v, stiffness[:, None] * kept, flat)


def _length_past_knee(curvature: Float, pull: Float, penalty: Penalty) -> Float:
    """Solve |pull / (curvature s + corner)| = 1 for s = |V|.

    One over the left side is concave and increasing in s, so that Newton's method from the
    knee climbs to the root without overshooting.
    """
    s = np.full(len(curvature), penalty.knee)
    for _ in range(60):
        total = curvature * s[:, None] + penalty.corner
        squares = (pull / total) ** 2
        norm = squares.sum(axis=1)
        slope = np.maximum(row_dots(squares, curvature / total), _TINY)
        step = (np.sqrt(norm) - 1.0) * norm / slope
        s += step
        if np.all(step <= 1e-14 * s):
            break
    return s
