"""The last: the form a shoe is built around, from the heel's back to the tip of the toe."""

import numpy as np
from tools.sketch_shoes.curves import Points, path, spline, xy
from tools.sketch_shoes.shoe import Shoe

# Height of a foot's instep above its bed, from the ankle (0.3 of the length) to the toes.
_INSTEP_AT = (0.0, 0.28, 0.36, 0.45, 0.55, 0.66, 0.78, 0.88)
_INSTEP = (0.42, 0.40, 0.345, 0.285, 0.225, 0.17, 0.13, 0.115)

# Pieces of the curve between two points of a table.
_PIECES = 32


class Last:
    """Places on a shoe; x towards the toe, y upwards, the ground at 0.

    Parameters
    ----------
    shoe : Shoe
    """

    def __init__(self, shoe: Shoe) -> None:
        self.shoe = shoe
        base = shoe.platform + shoe.sole
        # A lifted heel brings the ball of the foot nearer to it.
        shrink = np.sqrt(max(0.0, 1 - (shoe.heel / 0.66) ** 2))
        self.ball = 0.66 * shrink
        self.length = self.ball + 0.30 + 0.09 * shoe.point
        spring = 0.018 + 0.012 * shoe.point
        self.spring = spring
        x = np.array([0, 0.17 * shrink, 0.42 * shrink, self.ball, self.ball + 0.16, self.length])
        rise = np.array([1, 0.86, 0.47, 0.03, 0.0, 0.0]) * shoe.heel
        y = base + rise + spring * np.array([0, 0, 0, 0, 0.2, 1])
        self._table = _monotone(x, y)
        self.knots = np.linspace(0, 1, 41)
        self.bed_line = self.bed(self.knots)

    def bed(self, places: float | Points) -> Points:
        """Return points of the foot-bed; places run from 0 (heel) to 1 (tip)."""
        x = np.asarray(places, dtype=np.float64) * self.length
        return np.stack([x, np.interp(x, *self._table)], axis=-1)

    def above(self, place: float, height: float) -> Points:
        """Return the point at a height above a place of the foot-bed."""
        return np.asarray(self.bed(place) + xy(0.0, height))

    def instep(self, place: float) -> float:
        """Return how high the foot is above its bed."""
        shoe = self.shoe
        foot = float(np.interp(place, _INSTEP_AT, _INSTEP))
        share = min(max((place - 0.62) / 0.3, 0.0), 1.0)
        return foot + share * (shoe.bulk - 0.115 - 0.035 * shoe.point)

    def top(self, place: float) -> Points:
        """Return the point on top of the foot at a place."""
        return self.above(place, self.instep(place))

    def toe(self, start: float) -> Points:
        """Return the curve over the toes, from a place on the instep down to the tip."""
        shoe = self.shoe
        places = np.linspace(start, 0.88, 4 if start < 0.75 else 2)
        over = [self.top(place) for place in places]
        box, blunt = self.instep(0.88), 1 - shoe.point
        near = self.above(0.955, box * (0.50 + 0.36 * blunt))
        tip = self.above(1.0, box * (0.10 + 0.28 * blunt)) - xy(0.004, 0)
        corner = self.above(1.0, 0.0) - xy(0.012 * blunt, 0)
        return spline([*over, near, tip, corner])

    def under(self, places: Points) -> Points:
        """Return the underside of the outsole: along the bed, or on the ground."""
        shoe = self.shoe
        bed = self.bed(places)
        x = bed[:, 0]
        ahead = np.clip((x - self.ball - 0.06) / (self.length - self.ball - 0.06), 0, 1)
        ground = self.spring * ahead**2
        if shoe.wedge:
            behind = np.clip(1 - x / 0.12, 0, 1)
            return np.stack([x, ground + 0.006 * behind**2], axis=1)
        reach = np.clip((x - self.ball + 0.2) / 0.22, 0, 1)
        reach = reach**2 * (3 - 2 * reach)
        thick = shoe.sole + shoe.platform * reach
        return np.stack([x, np.maximum(bed[:, 1] - thick, ground)], axis=1)

    def sole(self) -> Points:
        """Return the outline of the outsole (and of a wedge)."""
        bed, under = self.bed_line.copy(), self.under(self.knots)
        edge = 0.006 + 0.3 * min(self.shoe.platform + self.shoe.sole, 0.05)
        bed[0, 0] -= edge * 0.6
        under[0, 0] -= edge * 0.3
        front = spline([bed[-1], [self.length + edge, (bed[-1, 1] + under[-1, 1]) / 2], under[-1]])
        return path(bed, front, under[::-1])

    def heel(self) -> Points:
        """Return the outline of the heel, from the sole to the ground."""
        shoe = self.shoe
        width = shoe.heel_top
        top = self.bed(np.linspace(0, width / self.length, 8))
        lift = top[0, 1]
        slim = 1 - shoe.heel_tip / max(width, 1e-6)
        back = shoe.heel_set
        rear = spline(
            [
                top[0] - xy(0.004, 0.0),
                [back * 0.35 - 0.004, 0.78 * lift],
                [back * 0.78, 0.45 * lift],
                [back, 0.0],
            ]
        )
        toe_side = back + shoe.heel_tip
        joint = top[-1, 1] - shoe.sole
        if lift < 0.19:  # a curved breast needs room
            return path(rear, [toe_side, 0.0], [0.4 * toe_side + 0.6 * width, joint], top[::-1])
        breast = spline(
            [
                [toe_side, 0.0],
                [toe_side + (width - toe_side) * (0.5 - 0.44 * slim), 0.45 * lift],
                [toe_side + (width - toe_side) * (0.75 - 0.48 * slim), 0.72 * joint],
                [width, joint],
            ]
        )
        return path(rear, breast, top[::-1])


def _monotone(x: Points, y: Points) -> tuple[Points, Points]:
    """Return a table of a smooth curve that rises and falls only where the points do.

    Fritsch and Carlson's cubic: slopes are harmonic means, and zero at turning points.
    """
    step, rise = np.diff(x), np.diff(y)
    slope = rise / step
    before, after = slope[:-1], slope[1:]
    same = before * after > 0
    mean = np.zeros(len(before))
    mean[same] = 2 * before[same] * after[same] / (before[same] + after[same])
    ends = np.concatenate([slope[:1], mean, slope[-1:]])
    t = np.linspace(0, 1, _PIECES, endpoint=False)[np.newaxis]
    left, right = (ends[:-1] * step)[:, np.newaxis], (ends[1:] * step)[:, np.newaxis]
    up = rise[:, np.newaxis]
    made = y[:-1, np.newaxis] + t * (left + t * (3 * up - 2 * left - right))
    made += t**3 * (left + right - 2 * up)
    places = x[:-1, np.newaxis] + t * step[:, np.newaxis]
    return np.append(places, x[-1]), np.append(made, y[-1])
