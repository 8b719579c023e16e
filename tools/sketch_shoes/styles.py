"""Shoes at random: a kind, its parameters, colours that go together."""

import colorsys
from dataclasses import fields

import numpy as np
from numpy.random import Generator
from tools.sketch_shoes.kinds import KINDS, Recipe
from tools.sketch_shoes.scene import shade
from tools.sketch_shoes.shoe import Colour, Shoe

# Families of colours: hue, saturation and value, each a range, and how common they are.
_FAMILIES: dict[
    str, tuple[tuple[float, float], tuple[float, float], tuple[float, float], float]
] = {
    "black": ((0.0, 1.0), (0.0, 0.15), (0.13, 0.22), 0.17),
    "chocolate": ((0.03, 0.07), (0.45, 0.7), (0.24, 0.38), 0.11),
    "cognac": ((0.05, 0.075), (0.6, 0.8), (0.48, 0.65), 0.10),
    "tan": ((0.075, 0.1), (0.38, 0.55), (0.66, 0.8), 0.09),
    "taupe": ((0.06, 0.1), (0.15, 0.3), (0.45, 0.62), 0.06),
    "cream": ((0.09, 0.14), (0.06, 0.2), (0.86, 0.95), 0.07),
    "grey": ((0.0, 1.0), (0.0, 0.08), (0.45, 0.75), 0.06),
    "red": ((0.97, 1.01), (0.7, 0.88), (0.62, 0.82), 0.08),
    "burgundy": ((0.95, 1.0), (0.55, 0.75), (0.32, 0.45), 0.04),
    "pink": ((0.9, 0.98), (0.3, 0.6), (0.85, 0.95), 0.06),
    "blue": ((0.56, 0.65), (0.45, 0.8), (0.35, 0.8), 0.08),
    "green": ((0.25, 0.45), (0.35, 0.65), (0.35, 0.65), 0.04),
    "yellow": ((0.12, 0.15), (0.6, 0.85), (0.85, 0.95), 0.03),
    "purple": ((0.74, 0.83), (0.35, 0.65), (0.4, 0.7), 0.03),
}
_METALS: tuple[Colour, ...] = ((0.83, 0.69, 0.36), (0.78, 0.79, 0.81), (0.62, 0.47, 0.30))
_GOLD_SILVER: tuple[Colour, ...] = ((0.80, 0.68, 0.42), (0.72, 0.73, 0.76), (0.76, 0.56, 0.48))
_JEWELS: tuple[Colour, ...] = (
    (0.75, 0.12, 0.2),
    (0.15, 0.35, 0.7),
    (0.1, 0.55, 0.4),
    (0.85, 0.9, 0.95),
)
_PATTERNS = ("stripes", "plaid", "dots", "leopard", "snake", "floral")
_LEATHERY: Colour = (0.80, 0.66, 0.48)
_WOOD: Colour = (0.80, 0.62, 0.42)
_ROPE: Colour = (0.84, 0.74, 0.56)
_DARK: Colour = (0.17, 0.16, 0.16)
_WHITE: Colour = (0.94, 0.94, 0.93)


def draw_shoe(number: int, seed: int = 0, kind: str | None = None) -> Shoe:
    """Draw the shoe with a number: always the same for the same number and seed.

    Parameters
    ----------
    number, seed : int
        Both not negative.
    kind : str, optional
        One of `kinds.KINDS`; by default any.

    Examples
    --------
    >>> draw_shoe(3) == draw_shoe(3)
    True
    >>> draw_shoe(3, kind="clog").kind
    'clog'
    """
    if kind is not None and kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, but is {kind!r}.")
    rng = np.random.default_rng([seed, number])
    drawn = str(rng.choice(sorted(KINDS)))
    recipe = KINDS[drawn if kind is None else kind]
    values: Recipe = {name: _draw_value(rng, recipe[name]) for name in _NAMES if name in recipe}
    if values.get("counter"):  # what else would hold it
        values["ankle_strap"] = True
    values["pattern"], odds = "plain", recipe.get("pattern_odds", 0.13)
    if rng.random() < odds and values.get("material") != "metallic":
        values["pattern"] = str(rng.choice(_PATTERNS))
    if values.get("ornament", "none") != "none":
        values["ornament_size"] = rng.uniform(0.05, 0.085)
    if rng.random() < recipe.get("stud_odds", 0.13):
        values["studs"] = int(rng.integers(5, 12))
    colours = _colours(rng, values)
    return Shoe(kind=kind or drawn, colours=colours, seed=int(rng.integers(1 << 16)), **values)


_NAMES = [each.name for each in fields(Shoe) if each.name not in {"kind", "colours", "seed"}]


def _draw_value(rng: Generator, wanted: object) -> object:
    if isinstance(wanted, list):
        return wanted[int(rng.integers(len(wanted)))]
    if (
        isinstance(wanted, tuple)
        and all(isinstance(each, float | int) for each in wanted)
        and wanted
    ):
        return float(rng.uniform(*wanted))
    return wanted


def _colours(rng: Generator, values: Recipe) -> dict[str, Colour]:
    """Return the colours of all parts."""
    names = list(_FAMILIES)
    odds = np.array([family[3] for family in _FAMILIES.values()])
    name = str(rng.choice(names, p=odds / odds.sum()))
    other = str(rng.choice(names, p=odds / odds.sum()))
    upper = _of_family(rng, name)
    if values.get("material") == "metallic":
        upper = _GOLD_SILVER[int(rng.integers(len(_GOLD_SILVER)))]
    accent = _of_family(rng, other)
    if abs(sum(accent) - sum(upper)) < 0.45:  # an accent is to be seen
        accent = shade(upper, 0.45) if sum(upper) > 1.2 else (0.9, 0.87, 0.8)
    if values.get("pattern") == "plain" and values.get("trim") != "sneaker" and rng.random() < 0.4:
        accent = shade(upper, 0.7 if sum(upper) > 0.8 else 1.9)  # tone in tone
    trim, wedge = values.get("trim", "plain"), bool(values.get("wedge"))
    sole, heel = _sole_colours(rng, trim, wedge, upper)
    inside = _LEATHERY if rng.random() < 0.7 else shade(accent, 0.9)
    return {
        "upper": upper,
        "accent": accent,
        "sole": sole,
        "heel": heel,
        "lining": shade(inside, 0.62),
        "bed": shade(inside, 1.05),
        "metal": _METALS[int(rng.integers(len(_METALS)))],
        "jewel": _JEWELS[int(rng.integers(len(_JEWELS)))],
        "laces": _WHITE if trim == "sneaker" or rng.random() < 0.3 else shade(upper, 0.55),
    }


def _sole_colours(rng: Generator, trim: str, wedge: bool, upper: Colour) -> tuple[Colour, Colour]:
    """Return the colours of the sole and of the heel."""
    if trim == "espadrille":
        return _ROPE, _ROPE
    if trim == "clog":
        return _WOOD, _WOOD
    if trim == "sneaker":
        return (_WHITE if rng.random() < 0.75 else _DARK), _WHITE
    if trim == "hiker":
        return _DARK, _DARK
    if wedge:
        choices = [_ROPE, shade(upper, 0.85), _WOOD, _DARK, (0.45, 0.30, 0.2)]
        return (chosen := choices[int(rng.integers(len(choices)))]), chosen
    sole = [_DARK, _LEATHERY, shade(upper, 0.6)][int(rng.integers(3))]
    heel = [shade(upper, 0.92), shade(upper, 0.92), _DARK, (0.42, 0.27, 0.17)][int(rng.integers(4))]
    return sole, heel


def _of_family(rng: Generator, name: str) -> Colour:
    hue, saturation, value, _ = _FAMILIES[name]
    return colorsys.hsv_to_rgb(
        float(rng.uniform(*hue)) % 1.0, float(rng.uniform(*saturation)), float(rng.uniform(*value))
    )
