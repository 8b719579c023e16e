"""What makes a kind of shoe that kind: laces, seams, caps, elastic, tongues."""

from collections.abc import Callable

import numpy as np
from tools.sketch_shoes.curves import Points, band, between, ellipse, path, spline, xy
from tools.sketch_shoes.scene import Body, Ink, Layer, shade


def tongue(body: Body) -> list[Layer]:
    """Return the tongue behind the laces."""
    shoe, last = body.shoe, body.last
    if not shoe.laces or shoe.shaft > 0.3:
        return []
    start = last.top(shoe.throat)
    tip = start + xy(-0.06, 0.06)
    shape = spline(
        [
            last.top(shoe.throat + 0.1) - xy(0, 0.03),
            start + xy(0.012, 0.025),
            tip + xy(0.03, 0.012),
            tip,
            tip + xy(-0.012, -0.04),
            start + xy(-0.03, -0.04),
        ]
    )
    return [Layer([shape], body.upper_ink(4, 0.88))]


def laces(body: Body) -> list[Layer]:
    """Return rungs of laces over the instep, each from its eyelet."""
    shoe = body.shoe
    if not shoe.laces:
        return []
    edge = _instep_line(body)
    rungs, eyelets = [], []
    along = np.gradient(edge, axis=0)
    for k in np.linspace(2, len(edge) - 3, shoe.laces).astype(int):
        down = np.array([along[k, 1], -along[k, 0]]) / np.hypot(*along[k])
        start = edge[k] + 0.062 * down
        eyelets.append(ellipse(start, 0.008, n=10))
        rungs.append(
            band([start, edge[k] - 0.006 * down + 0.012 * along[k] / np.hypot(*along[k])], 0.017)
        )
    facing = path(edge, (edge + 0.085 * _aside(along))[::-1])
    seam = band(
        between(edge, 0, 1, 24) + 0.085 * _aside(np.gradient(between(edge, 0, 1, 24), axis=0)),
        0.005,
    )
    return [
        Layer([facing], _facing_ink(body), within="upper"),
        Layer([seam], body.upper_ink(0, 0.62), within="upper"),
        Layer(eyelets, Ink((0.25, 0.24, 0.23), "matte")),
        Layer(rungs, body.ink("laces", 1)),
    ]


def _facing_ink(body: Body) -> Ink:
    return body.ink("accent", 3) if body.shoe.trim == "sneaker" else body.upper_ink(3, 0.93)


def _aside(along: Points) -> Points:
    along = along / np.hypot(along[:, 0], along[:, 1])[:, np.newaxis]
    return np.stack([along[:, 1], -along[:, 0]], axis=1)


def _instep_line(body: Body) -> Points:
    """Return the edge that is laced: from the top of the shoe down towards the toe."""
    shoe, last = body.shoe, body.last
    if shoe.shaft:
        end = last.top(0.62)
        front = body.front_line
        near = np.argmin(np.hypot(*(front - end).T))
        return between(front[: near + 1], 0.06, 1.0, 24)
    places = np.linspace(shoe.throat, min(shoe.throat + 0.26, 0.72), 24)
    return np.array([last.top(place) for place in places])


def _stitch(line: Points, n: int) -> list[Points]:
    """Return dashes along a line."""
    dashes = between(line, 0, 1, 2 * n)
    return [band(dashes[k : k + 2], 0.005) for k in range(0, 2 * n - 1, 2)]


def _arc(body: Body, place: float, bulge: float, height: float = 1.02) -> Points:
    """Return a seam from the sole up over the foot at a place, bulging towards the toe."""
    last = body.last
    return spline(
        [
            last.bed(place - 0.03),
            last.above(place + bulge, 0.5 * last.instep(place)),
            last.above(place, height * last.instep(place)),
        ]
    )


def _sneaker(body: Body) -> list[Layer]:
    last = body.last
    accent = body.ink("accent", 3)
    cap = path(_arc(body, 0.86, -0.035), last.above(1.1, 0.3), last.above(1.05, -0.05))
    heel = path(
        [-0.1, 0.0], last.bed(0.16), last.above(0.12, 0.12), last.above(0.06, 0.30), [-0.1, 0.6]
    )
    layers = [
        Layer([heel], accent, within="upper"),
        Layer([cap], accent, within="upper"),
    ]
    layers.append(Layer(_sneaker_side(body), accent, within="upper"))
    seam = body.upper_ink(0, 0.7)
    layers.append(Layer(_stitch(_arc(body, 0.82, -0.035), 9), seam, within="upper"))
    return layers


def _sneaker_side(body: Body) -> list[Points]:
    """Return one of three decorations of a sneaker's side: stripes, a swoosh or a wave."""
    last, style = body.last, body.shoe.seed % 3
    if style == 0:
        return [
            band([last.above(p, 0.0), last.above(p + 0.075, 0.2)], 0.028)
            for p in (0.33, 0.40, 0.47)
        ]
    if style == 1:
        places = ((0.22, 0.13), (0.36, 0.06), (0.52, 0.08), (0.66, 0.15))
        swoosh = spline([last.above(*place) for place in places])
        return [band(swoosh, (0.012, 0.07, 0.03, 0.01))]
    places = ((0.12, 0.05), (0.4, 0.085), (0.7, 0.05), (0.9, 0.03))
    wave = spline([last.above(*place) for place in places])
    return [path(wave, last.bed(np.linspace(0.95, 0.1, 20)))]


def _oxford(body: Body) -> list[Layer]:
    cap, quarter = _arc(body, 0.80, 0.02), _arc(body, 0.60, 0.03)
    dark = body.upper_ink(0, 0.6)
    return [
        Layer([band(cap, 0.007), band(quarter, 0.007)], dark, within="upper"),
        Layer(
            [ellipse(p, 0.006, n=8) for p in between(cap + xy(0.016, 0), 0.05, 0.95, 9)],
            dark,
            within="upper",
        ),
        Layer(
            [ellipse(p, 0.006, n=8) for p in between(quarter + xy(0.016, 0), 0.05, 0.95, 11)],
            dark,
            within="upper",
        ),
    ]


def _loafer(body: Body) -> list[Layer]:
    last, shoe = body.last, body.shoe
    places = np.linspace(shoe.throat - 0.02, 0.93, 7)
    lift = np.linspace(0.62, 0.72, 7)
    apron = spline(
        [last.above(p, s * last.instep(min(p, 0.88))) for p, s in zip(places, lift, strict=True)]
    )
    saddle = path(_arc(body, shoe.throat + 0.0, 0.01), _arc(body, shoe.throat + 0.10, 0.02)[::-1])
    dark = body.upper_ink(0, 0.6)
    return [
        Layer([band(apron, 0.007)], dark, within="upper"),
        Layer(_stitch(apron + xy(0, 0.014), 14), body.upper_ink(0, 0.75), within="upper"),
        Layer([saddle], body.upper_ink(3, 0.9), within="upper"),
        Layer(
            [
                band(_arc(body, shoe.throat + 0.0, 0.01), 0.006),
                band(_arc(body, shoe.throat + 0.10, 0.02), 0.006),
            ],
            dark,
            within="upper",
        ),
    ]


def _chelsea(body: Body) -> list[Layer]:
    top = body.topline
    height = min(body.shoe.shaft - 0.1, 0.24)
    left, right = top[len(top) // 2] + xy(-0.055, 0.03), top[len(top) // 2] + xy(0.065, 0.03)
    middle = (left + right) / 2
    panel = spline(
        [
            left,
            left + xy(0.012, -0.5 * height),
            middle + xy(0, -height),
            right + xy(-0.012, -0.5 * height),
            right,
        ]
    )
    ribs = [band([[x, 0], [x, 2]], 0.003) for x in np.arange(left[0], right[0], 0.012)]
    dark = shade(body.shoe.colours["upper"], 0.5)
    layers = [
        Layer([panel], Ink(dark, "matte", relief=2), name="panel", within="upper"),
        Layer(ribs, Ink(shade(dark, 0.7)), within="panel"),
    ]
    return layers + _back_tab(body)


def _back_tab(body: Body) -> list[Layer]:
    loop = band(
        spline(
            [
                body.topline[0] + xy(0.01, -0.03),
                body.topline[0] + xy(-0.006, 0.03),
                body.topline[0] + xy(0.03, 0.012),
            ]
        ),
        0.014,
    )
    return [Layer([loop], body.upper_ink(1, 0.75))]


def _cowboy(body: Body) -> list[Layer]:
    last, shoe = body.last, body.shoe
    base = float(last.bed(0.0)[1])
    x = body.topline[:, 0].mean()
    seams = []
    for size in (1.0, 0.7, 0.42):
        low, high = base + 0.34, base + shoe.shaft - 0.05
        middle, half = (low + high) / 2, (high - low) / 2 * size
        seams.append(
            spline(
                [
                    [x, middle + half],
                    [x + 0.09 * size, middle + 0.3 * half],
                    [x, middle - half],
                    [x - 0.09 * size, middle + 0.3 * half],
                    [x, middle + half],
                ]
            )
        )
    over = _arc(body, 0.56, 0.05, 1.1)
    toe = spline(
        [
            last.above(0.62, 0.9 * last.instep(0.62)),
            last.above(0.72, 0.04),
            last.above(0.80, 0.8 * last.instep(0.8)),
        ]
    )
    accent = body.ink("accent", 0)
    dark = body.upper_ink(0, 0.62)
    return [
        Layer([band(seam, 0.008) for seam in [*seams, toe]], accent, within="upper"),
        Layer([band(over, 0.008)], dark, within="upper"),
        *_back_tab(body),
    ]


def _hiker(body: Body) -> list[Layer]:
    last = body.last
    cap = path(_arc(body, 0.83, -0.02), last.above(1.1, 0.3), last.above(1.05, -0.05))
    heel = path(
        [-0.1, 0.0], last.bed(0.2), last.above(0.15, 0.1), last.above(0.0, 0.17), [-0.1, 0.4]
    )
    collar = body.topline - xy(0, 0.035)
    return [
        Layer([cap, heel], body.ink("accent", 4), within="upper"),
        Layer(
            [path(body.topline + xy(0, 0.01), collar[::-1])], body.ink("accent", 3), within="upper"
        ),
        Layer(_stitch(_arc(body, 0.79, -0.02), 9), body.upper_ink(0, 0.65), within="upper"),
    ]


def _fur(body: Body) -> list[Layer]:
    top = between(body.topline, -0.02, 1.02, 11)
    fluff = [
        ellipse(p + xy(0, 0.012 * (-1) ** k - 0.005), 0.034, 0.04, n=14) for k, p in enumerate(top)
    ]
    seam = band(_arc(body, 0.42, 0.08, 0.9), 0.008)
    pale = Ink((0.93, 0.89, 0.81), "suede", relief=3)
    return [Layer([seam], body.upper_ink(0, 0.75), within="upper"), Layer(fluff, pale)]


def _zip(body: Body) -> list[Layer]:
    last = body.last
    base, high = float(last.bed(0.0)[1]), float(body.topline[:, 1].mean())
    x = float(body.topline[:, 0].mean()) - 0.02
    line = spline([[x, high - 0.01], [x - 0.008, 0.5 * (base + high)], [0.13, base + 0.12]])
    return [
        Layer([band(line, 0.005)], body.upper_ink(0, 0.55), within="upper"),
        Layer([ellipse(line[0] - xy(0, 0.03), 0.007, 0.02, n=10)], body.ink("metal", 1)),
        *_folds(body),
    ]


def _folds(body: Body) -> list[Layer]:
    """Return the creases of a shaft at the ankle."""
    last = body.last
    creases = []
    for place, length in ((0.42, 0.13), (0.38, 0.10), (0.47, 0.09)):
        start = last.top(place) - xy(0.01, 0.0)
        middle, end = start - xy(0.5 * length, 0.028), start - xy(length, 0.022)
        creases.append(band(spline([start, middle, end]), (0.012, 0.008, 0.002)))
    return [Layer(creases, body.upper_ink(0, 0.84), within="upper")]


def _clog(body: Body) -> list[Layer]:
    nails = [
        ellipse(p + xy(0, 0.012), 0.008, n=10)
        for p in body.last.bed(np.linspace(body.shoe.rear + 0.03, 0.95, 12))
    ]
    return [Layer(nails, body.ink("metal", 1))]


def _plain(body: Body) -> list[Layer]:
    if body.shoe.rear > 0 or not body.has_upper or body.shoe.shaft:
        return []
    side = spline([body.last.bed(0.36), body.last.above(0.37, 0.6)])
    return [Layer([band(side, 0.004)], body.upper_ink(0, 0.78), within="upper")]


TRIMS: dict[str, Callable[[Body], list[Layer]]] = {
    "sneaker": _sneaker,
    "oxford": _oxford,
    "loafer": _loafer,
    "chelsea": _chelsea,
    "cowboy": _cowboy,
    "hiker": _hiker,
    "fur": _fur,
    "zip": _zip,
    "clog": _clog,
    "espadrille": _plain,
    "plain": _plain,
    "none": lambda body: _folds(body) if body.shoe.shaft else [],
}
