"""What a person sees of a shoe, as numbers."""

import colorsys
from collections.abc import Sequence

import numpy as np
from tools.sketch_shoes.curves import Float
from tools.sketch_shoes.shoe import Colour, Shoe

from likeminds.datasets.sketch_shoes import TRAITS


def traits_of(shoes: Sequence[Shoe]) -> Float:
    """Return the visible traits of shoes, a row each, in the order of ``TRAITS``.

    Examples
    --------
    >>> from tools.sketch_shoes.styles import draw_shoe
    >>> flat, high = traits_of([draw_shoe(0, kind="ballet flat"), draw_shoe(0, kind="stiletto")])
    >>> bool(flat[TRAITS.index("heel")] < high[TRAITS.index("heel")])
    True
    """
    rows = [_form(shoe) | _decoration(shoe) | _colour(shoe) for shoe in shoes]
    return np.array([[row[name] for name in TRAITS] for row in rows], dtype=np.float64)


def _form(shoe: Shoe) -> dict[str, float]:
    strappy = shoe.front <= shoe.rear
    thin = 0.0 if shoe.wedge else max(0.0, 1 - shoe.heel_tip / 0.15) * min(1.0, shoe.heel / 0.12)
    low_cut = max(0.0, 1 - shoe.side / 0.2) * (shoe.throat > 0.55) * (not shoe.shaft)
    if strappy:
        back = 0.3 if shoe.counter else 0.7 if shoe.ankle_strap else 1.0
    else:
        back = 0.0 if shoe.rear == 0 else 0.6 if shoe.sling else 1.0
    return {
        "heel": shoe.heel,
        "thin_heel": thin,
        "platform": shoe.platform + shoe.sole,
        "roomy": shoe.bulk - 0.05 * shoe.point + 0.3 * shoe.sole * shoe.wedge,
        "toe_open": 1.0 if strappy else 0.7 if shoe.front < 1 else 0.0,
        "back_open": back,
        "side_open": 1.0 if strappy else 0.5 if shoe.rear > 0 else 0.6 * low_cut,
        "shaft": shoe.shaft,
        "point": shoe.point,
        "laces": float(shoe.laces > 0),
    }


def _decoration(shoe: Shoe) -> dict[str, float]:
    size = 0.0 if shoe.ornament == "none" else shoe.ornament_size / 0.085
    buckled = 0.25 * shoe.ankle_strap
    return {
        "ornament": max(size, buckled),
        "studs": min(shoe.studs / 10, 1.0) + 0.6 * (shoe.ornament == "jewel"),
        "pattern": float(shoe.pattern != "plain"),
        "shine": {"patent": 1.0, "metallic": 1.0, "leather": 0.2}.get(shoe.material, 0.0),
    }


def _colour(shoe: Shoe) -> dict[str, float]:
    upper = shoe.colours["upper"]
    _, saturation, value = colorsys.rgb_to_hsv(*upper)
    brown, tan, reddish = _browns(upper)
    soles = [shoe.colours["sole"], shoe.colours["sole"] if shoe.wedge else shoe.colours["heel"]]
    return {
        "light": value,
        "vivid": saturation * value * (1 - brown),
        "brown": brown,
        "tan": tan,
        "reddish": reddish,
        "brown_sole": float(np.mean([max(_browns(colour)[:2]) for colour in soles])),
    }


def _browns(colour: Colour) -> tuple[float, float, float]:
    """Return how brown a colour is, how tan and how reddish, each from 0 to 1."""
    hue, saturation, value = colorsys.rgb_to_hsv(*colour)
    apart = abs((hue - 0.065 + 0.5) % 1.0 - 0.5)
    orange = float(np.exp(-((apart / 0.04) ** 2)))
    deep = float(np.clip((saturation - 0.12) / 0.3, 0, 1) * np.clip((0.92 - value) / 0.3, 0, 1))
    tan = float(np.clip((value - 0.5) / 0.2, 0, 1) * np.clip((saturation - 0.1) / 0.2, 0, 1))
    red = float(np.exp(-((((hue - 0.98 + 0.5) % 1.0 - 0.5) / 0.035) ** 2)))
    return orange * deep, orange * tan, red * saturation
