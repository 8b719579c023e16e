"""Ornaments: bows, flowers, buckles, tassels, fringes, pompons and studs."""

from collections.abc import Callable

import numpy as np
from tools.sketch_shoes.curves import (
    Points,
    band,
    between,
    ellipse,
    path,
    spline,
    turn,
    xy,
)
from tools.sketch_shoes.scene import Body, Ink, Layer, dots
from tools.sketch_shoes.straps import buckle

# A bow's right loop and tail, in units of its size.
_LOOP = ((0.0, 0.0), (0.7, 0.55), (1.25, 0.5), (1.2, -0.1), (1.0, -0.45), (0.0, 0.0))
_TAIL = ((0.0, 0.0), (0.35, -0.5), (0.8, -1.15))


def place_of(body: Body) -> Points:
    """Return where an ornament sits: on the vamp, or on the strap that is most in front."""
    shoe, last = body.shoe, body.last
    if shoe.shaft:
        return last.above(0.12, min(0.32, 0.8 * shoe.shaft)) + xy(0.06, 0)
    if not body.has_upper and shoe.straps:
        front = max(shoe.straps, key=lambda strap: strap.top)
        return last.top(front.top) - xy(0.0, 0.03)
    if shoe.thong:
        return last.above(0.85, 0.085)
    place = min(shoe.throat + 0.035, 0.9)
    return last.above(place, 0.86 * last.instep(place))


def ornaments(body: Body) -> list[Layer]:
    """Return all ornaments of a shoe."""
    shoe = body.shoe
    layers = [] if shoe.ornament == "none" else _ORNAMENTS[shoe.ornament](body, place_of(body))
    if shoe.studs:
        layers += _studs(body)
    return layers


def _bow(body: Body, place: Points) -> list[Layer]:
    size = body.shoe.ornament_size
    loop = spline(np.array(_LOOP)) * size
    tails = [
        band(spline(xy(s, 1) * np.array(_TAIL)) * size, (0.3 * size, 0.42 * size)) for s in (1, -1)
    ]
    mirrored = loop * xy(-1, 1)
    ink = body.ink("accent", 3)
    return [
        Layer([place + turn(tail, -0.35) for tail in tails], body.ink("accent", 2, 0.85)),
        Layer([place + turn(loop, -0.35)], ink),
        Layer([place + turn(mirrored, -0.35)], ink),
        Layer([ellipse(place, 0.26 * size, 0.32 * size, n=14)], body.ink("accent", 2, 0.85)),
    ]


def _flower(body: Body, place: Points) -> list[Layer]:
    size = body.shoe.ornament_size
    petals = []
    for k in range(6):
        angle = k * np.pi / 3
        out = xy(np.cos(angle), np.sin(angle)) * 0.62 * size
        petals.append(
            Layer(
                [ellipse(place + out, 0.5 * size, 0.36 * size, angle, n=16)], body.ink("accent", 2)
            )
        )
    return [*petals, Layer([ellipse(place, 0.3 * size, n=14)], body.ink("metal", 2))]


def _buckle(body: Body, place: Points) -> list[Layer]:
    if not body.shoe.shaft:
        return buckle(body, place, 0.5 * body.shoe.ornament_size)
    y = float(place[1])
    belt = band([[-0.2, y + 0.012], [0.8, y - 0.012]], 0.045)
    return [Layer([belt], body.upper_ink(3, 0.8), within="upper"), *buckle(body, place, 0.034)]


def _tassel(body: Body, place: Points) -> list[Layer]:
    size = body.shoe.ornament_size
    knot = Layer([ellipse(place, 0.22 * size, n=12)], body.upper_ink(2, 0.8))
    tails = []
    for lean in (-0.75, 0.5):
        for spread in np.linspace(-0.3, 0.3, 5):
            end = place + xy(lean + spread, -1.3) * size
            tails.append(
                band([place + xy(lean * 0.45, -0.35) * size, end], (0.10 * size, 0.15 * size))
            )
    return [Layer(tails, body.upper_ink(1, 0.72)), knot]


def _fringe(body: Body, place: Points) -> list[Layer]:
    size = body.shoe.ornament_size
    if body.shoe.shaft:
        top = body.topline[[0, -1]] - xy(0, 0.06)
        line = between(path(top[0] - xy(0.01, 0), top[1] + xy(0.01, 0)), 0, 1, 22)
        drop = 1.6 * size
    else:
        line = between(np.array([place + xy(-0.07, 0.02), place + xy(0.09, -0.025)]), 0, 1, 12)
        drop = 1.1 * size
    tails = [
        band([p, p + xy(0.004 * (-1) ** k, -drop * (1 + 0.12 * (-1) ** k))], (0.008, 0.013))
        for k, p in enumerate(line)
    ]
    return [
        Layer(tails, body.upper_ink(1, 0.78), within="upper"),
        Layer([band(line, 0.02)], body.upper_ink(1, 0.65), within="upper"),
    ]


def _pompon(body: Body, place: Points) -> list[Layer]:
    size = 0.75 * body.shoe.ornament_size
    fluff = [
        ellipse(place + turn([size * 0.55, 0], a), 0.5 * size, n=12) for a in np.arange(0, 6.2, 0.7)
    ]
    return [Layer(fluff, Ink(body.shoe.colours["accent"], "suede", relief=4))]


def _jewel(body: Body, place: Points) -> list[Layer]:
    size = 0.55 * body.shoe.ornament_size
    ring = [
        ellipse(place + turn([size, 0], a), 0.3 * size, n=8) for a in np.arange(0, 6.2, np.pi / 5)
    ]
    stone = Ink(body.shoe.colours["jewel"], "patent", relief=2)
    return [Layer(ring, body.ink("metal", 1)), Layer([ellipse(place, 0.75 * size, n=18)], stone)]


def _studs(body: Body) -> list[Layer]:
    shoe = body.shoe
    metal = body.ink("metal", 1)
    if body.has_upper and not shoe.shaft:
        return [Layer(dots(body.topline - xy(0, 0.028), shoe.studs, 0.010), metal, within="upper")]
    if shoe.shaft:
        line = body.last.bed(np.linspace(0.02, 0.9, 20)) + xy(0, 0.035)
        return [Layer(dots(line, shoe.studs + 4, 0.010), metal, within="upper")]
    rows = []
    for strap in shoe.straps:
        foot, peak = body.last.bed(strap.base), body.last.top(strap.top)
        low = body.last.above(
            0.75 * strap.base + 0.25 * strap.top, 0.45 * body.last.instep(strap.top)
        )
        rows += dots(spline([foot, low, peak]), 5, min(0.009, 0.3 * strap.width))
    return [Layer(rows, metal)] if rows else []


_ORNAMENTS: dict[str, Callable[[Body, Points], list[Layer]]] = {
    "bow": _bow,
    "flower": _flower,
    "buckle": _buckle,
    "tassel": _tassel,
    "fringe": _fringe,
    "pompon": _pompon,
    "jewel": _jewel,
}
