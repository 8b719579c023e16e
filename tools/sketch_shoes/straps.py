"""Straps: over the foot, around the ankle and the heel, between the toes."""

import numpy as np
from tools.sketch_shoes.curves import Points, band, ellipse, spline, xy
from tools.sketch_shoes.scene import Body, Layer
from tools.sketch_shoes.shoe import Strap


def far_straps(body: Body) -> list[Layer]:
    """Return the far halves of all straps, which the foot-bed and the near halves cover."""
    shoe, last = body.shoe, body.last
    lines = []
    for strap in shoe.straps:
        peak, lean = _peak(body, strap), 0.045 if strap.base > strap.top else -0.045
        beyond = strap.top + 0.35 * (strap.top - strap.base)
        foot = last.bed(beyond) + xy(-lean, 0.03)
        knee = 0.5 * (peak + foot) + xy(-0.5 * lean, 0.02)
        line = spline([peak - xy(-0.5 * lean, 0.012), peak, knee, foot])
        lines.append(band(line, 0.9 * strap.width))
    if shoe.ankle_strap:
        lines.append(band(_ring(body)[:13], 0.024))
    if shoe.sling:
        lines.append(band(_sling(body)[24:], 0.02))
    return [Layer(lines, body.ink("lining", 2))] if lines else []


def near_straps(body: Body) -> list[Layer]:
    """Return the near halves of all straps."""
    shoe, last = body.shoe, body.last
    lines = [_near(body, strap) for strap in shoe.straps]
    if shoe.ankle_strap:
        lines.append(band(_ring(body)[12:], 0.026))
        if not (body.has_upper or shoe.counter):
            lines.append(
                band(spline([last.bed(0.03), last.above(0.0, 0.15), _ring(body)[12]]), 0.03)
            )
    if shoe.sling:
        lines.append(band(_sling(body)[:26], 0.024))
    if shoe.thong:
        post = last.above(0.86, 0.085)
        for base in (0.42, 0.56):
            side = spline([last.bed(base), 0.5 * (last.bed(base) + post) + xy(0.0, 0.06), post])
            lines.append(band(side, (0.05, 0.03)))
        lines.append(band(spline([post, last.above(0.885, 0.04), last.bed(0.885)]), 0.022))
    if not lines:
        return []
    # Each strap rounds on its own: a layer each.
    layers = [Layer([line], body.upper_ink(3)) for line in lines]
    layers[0] = Layer([lines[0]], body.upper_ink(3), name="strap")
    if shoe.ankle_strap:
        layers += buckle(body, _ring(body)[19], 0.022)
    return layers


def buckle(body: Body, place: Points, size: float) -> list[Layer]:
    """Return a square buckle with its pin."""
    x, y = place
    outer = np.array([[-1, -1.15], [1, -1.15], [1, 1.15], [-1, 1.15]]) * size
    inner = outer * 0.55
    metal = body.ink("metal", 1)
    pin = band([[x - size, y], [x + size, y]], 0.006)
    return [
        Layer([outer + place], metal),
        Layer([inner + place], body.upper_ink(0, 0.8)),
        Layer([pin], metal),
    ]


def _peak(body: Body, strap: Strap) -> Points:
    share = 0.74 if body.has_upper else 0.86
    return body.last.above(strap.top, share * body.last.instep(strap.top))


def _near(body: Body, strap: Strap) -> Points:
    """Return a band that leaves the sole steeply and bends over the instep."""
    last = body.last
    foot, peak = last.bed(strap.base), _peak(body, strap)
    low = last.above(0.75 * strap.base + 0.25 * strap.top, 0.45 * last.instep(strap.top))
    lean = 0.02 if strap.base > strap.top else -0.02
    line = spline([foot - xy(0, 0.004), low, peak, peak + xy(-lean, 0.002)])
    return band(line, (strap.width * 1.2, strap.width, 0.75 * strap.width))


def _ring(body: Body) -> Points:
    """Return the ellipse around the ankle: the far half first, from front to back."""
    last = body.last
    height = 0.335 if body.has_upper or not body.shoe.counter else body.shoe.counter + 0.01
    back = last.above(0.0, height) + xy(0.012, 0)
    width = 0.27
    centre = back + xy(width / 2, -0.005)
    return ellipse(centre, width / 2, 0.03, tilt=-0.06, n=25)


def _sling(body: Body) -> Points:
    """Return the loop around the heel: the near half first, from the side to the back."""
    last = body.last
    side = max(body.shoe.rear, 0.3) + 0.06
    near = [last.above(side, 0.075), last.above(0.2, 0.115), last.above(0.045, 0.14)]
    back = last.above(0.0, 0.165) + xy(-0.004, 0)
    far = [last.above(0.06, 0.178), last.above(0.22, 0.155), last.above(side + 0.02, 0.10)]
    return spline([*near, back, *far])
