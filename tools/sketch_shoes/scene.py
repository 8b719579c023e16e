"""From a shoe to layers of closed curves, the farthest first."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tools.sketch_shoes.curves import Points, band, between, ellipse, path, spline, xy
from tools.sketch_shoes.last import Last
from tools.sketch_shoes.shoe import Colour, Shoe


@dataclass(frozen=True)
class Ink:
    """How a layer is painted: its colour, what it is made of, how far its edges round."""

    colour: Colour
    material: str = "leather"
    pattern: str = "plain"
    accent: Colour = (1.0, 1.0, 1.0)
    relief: int = 0


@dataclass(frozen=True)
class Layer:
    """Some closed curves in one ink, cut to the layer named ``within`` if there is one."""

    curves: Sequence[Points]
    ink: Ink
    name: str = ""
    within: str = ""


def shade(colour: Colour, factor: float) -> Colour:
    """Return a darker colour (factor below 1), or a lighter one."""
    r, g, b = (min(max(value * factor, 0.0), 1.0) for value in colour)
    if factor > 1:
        r, g, b = (value + (1 - value) * 0.25 * (factor - 1) for value in (r, g, b))
    return r, g, b


class Body:
    """The large parts of a shoe: sole, heel, upper, shaft and what can be seen inside."""

    def __init__(self, shoe: Shoe) -> None:
        self.shoe, self.last = shoe, Last(shoe)
        self.topline = self._topline()
        self.front_line = self._front()
        self.outline = self._outline()

    def ink(self, part: str, relief: int = 3, factor: float = 1.0) -> Ink:
        """Return the ink of a part in plain leather."""
        return Ink(shade(self.shoe.colours[part], factor), relief=relief)

    def upper_ink(self, relief: int = 9, factor: float = 1.0) -> Ink:
        """Return the ink of the upper: its material and pattern."""
        shoe = self.shoe
        colour, accent = shoe.colours["upper"], shoe.colours["accent"]
        return Ink(shade(colour, factor), shoe.material, shoe.pattern, accent, relief)

    def _topline(self) -> Points:
        """Return the edge that the foot goes in by, from the back to the throat."""
        shoe, last = self.shoe, self.last
        if shoe.shaft:
            return self._shaft_top()
        throat = last.top(shoe.throat)
        if shoe.rear > 0:
            foot = last.above(shoe.rear, 0.012)
            lean = last.above(
                0.6 * shoe.rear + 0.4 * shoe.throat, 0.55 * last.instep(shoe.throat) + 0.012
            )
            return spline([foot, lean, throat])
        start = last.above(0.0, shoe.back) + xy(0.012, 0)
        dip = shoe.throat * 0.55
        low = last.above(dip, shoe.side + 0.25 * max(shoe.back - shoe.side, 0.0))
        lowest = last.above(shoe.throat * 0.83, max(shoe.side, 0.02))
        return spline([start, low, lowest, throat])

    def _shaft_top(self) -> Points:
        shoe, last = self.shoe, self.last
        rise = float(last.bed(0.0)[1]) + shoe.shaft
        wide = min(max((shoe.shaft - 0.35) / 0.6, 0.0), 1.0)
        back = xy(0.02 - 0.05 * wide, rise)
        front = np.array([back[0] + shoe.flare, rise - 0.012])
        dip = 0.075 if shoe.trim == "cowboy" else 0.022
        return spline([back, 0.5 * (back + front) - xy(0, dip), front])

    def _outline(self) -> Points:
        """Return the outline of the upper, a boot's shaft included."""
        shoe, last = self.shoe, self.last
        lower = last.bed(np.linspace(shoe.front, shoe.rear, 30))
        return path(self._rear(), self.topline, self.front_line, lower)

    def _rear(self) -> Points:
        shoe, last = self.shoe, self.last
        if shoe.rear > 0:
            return last.bed(shoe.rear)
        heel = last.bed(0.0) - xy(0.004, 0)
        if not shoe.shaft:
            belly = last.above(0.0, 0.5 * shoe.back) - xy(0.022, 0)
            return spline([heel, belly, self.topline[0]])
        belly = last.above(0.0, 0.10) - xy(0.022, 0)
        ankle = last.above(0.0, min(0.30, 0.7 * shoe.shaft)) + xy(0.03, 0)
        calf = []
        if shoe.shaft > 0.55:
            middle = last.above(0.0, 0.5 * (0.3 + shoe.shaft))
            calf = [np.array([self.topline[0, 0] - 0.022, middle[1] + 0.06])]
        return spline([heel, belly, ankle, *calf, self.topline[0]])

    def _front(self) -> Points:
        """Return the curve from the topline's end over the foot to the bed."""
        shoe, last = self.shoe, self.last
        if shoe.front < 1:
            over = [last.top(p) for p in np.linspace(shoe.throat, shoe.front - 0.03, 5)]
            bow = last.above(shoe.front + 0.004, 0.55 * last.instep(shoe.front))
            return path(spline(over), spline([over[-1], bow, last.bed(shoe.front)]))
        if not shoe.shaft:
            return last.toe(shoe.throat)
        bend = last.top(0.42)
        shin = [np.array([bend[0] - 0.085, bend[1] + 0.13])] if shoe.shaft > 0.5 else []
        return path(spline([self.topline[-1], *shin, bend, last.top(0.5)]), last.toe(0.55))

    def inside(self) -> list[Layer]:
        """Return what is seen through the openings: lining and foot-bed."""
        shoe, last = self.shoe, self.last
        layers = []
        free = shoe.rear > 0 or shoe.front < 1 or not self.has_upper
        if free:
            lift = 0.035 * np.sin(np.pi * np.clip(last.knots, 0, 1)) ** 0.6
            far = last.bed_line + np.stack([np.zeros(41), lift], axis=1)
            layers.append(Layer([path(last.bed_line, far[::-1])], self.ink("bed", 2)))
        if not self.has_upper:
            return layers
        line = self.topline
        depth = 0.055 if shoe.shaft else 0.05
        hump = np.sin(np.pi * np.linspace(0, 1, len(line)))[:, np.newaxis] ** 0.7
        far = line + hump * xy(0.0, depth)
        if shoe.rear > 0:  # the far side of an open upper lies behind, not above
            far = line + hump * xy(-0.045, 0.02)
        layers.append(Layer([path(line, far[::-1])], self.ink("lining", 4)))
        if shoe.front < 1:
            edge = between(self.front_line, 0.55, 1.0)
            hump = np.sin(np.pi * np.linspace(0, 1, len(edge)))[:, np.newaxis] ** 0.7
            layers.append(
                Layer([path(edge, (edge + hump * xy(0.03, 0.012))[::-1])], self.ink("lining", 3))
            )
        return layers

    @property
    def has_upper(self) -> bool:
        """Whether there is an upper at all, not only straps."""
        return self.shoe.front > self.shoe.rear

    def bottom(self) -> list[Layer]:
        """Return heel and sole."""
        shoe, last = self.shoe, self.last
        layers = []
        if not shoe.wedge and shoe.heel + shoe.platform > 0.004:
            layers.append(Layer([last.heel()], self.ink("heel", 5), name="heel"))
            layers += self._heel_details()
        pattern = {"espadrille": "rope", "clog": "wood"}.get(shoe.trim, "plain")
        ink = Ink(shoe.colours["sole"], "matte", pattern, shade(shoe.colours["sole"], 0.72), 4)
        layers.append(Layer([last.sole()], ink, name="sole"))
        layers += self._sole_details()
        return layers

    def _heel_details(self) -> list[Layer]:
        shoe = self.shoe
        top = 0.016
        left, right = shoe.heel_set - 0.03, shoe.heel_set + shoe.heel_tip + 0.03
        piece = np.array([[left, 0], [right, 0], [right, top], [left, top]])
        dark = Ink((0.16, 0.15, 0.15), "matte")
        layers = [Layer([piece], dark, within="heel")]
        if shoe.heel_tip > 0.14 and shoe.trim in {"oxford", "loafer", "cowboy", "chelsea"}:
            lines = [
                band([[-0.1, y], [0.5, y]], 0.003) for y in np.arange(0.035, shoe.heel + 0.02, 0.02)
            ]
            ink = Ink(shade(shoe.colours["heel"], 0.72))
            layers.append(Layer(lines, ink, within="heel"))
        return layers

    def _sole_details(self) -> list[Layer]:
        shoe, last = self.shoe, self.last
        dark = Ink(shade(shoe.colours["sole"], 0.62), "matte")
        lift = xy(0.0, 1.0)
        if shoe.trim == "sneaker":
            middle = last.bed_line - 0.45 * (shoe.sole + shoe.platform) * lift
            return [Layer([band(middle, 0.007)], self.ink("accent", 0), within="sole")]
        if shoe.trim == "hiker":
            x = np.arange(-0.02, last.length + 0.05, 0.055)
            cuts = [
                np.array([[a, -0.02], [a + 0.022, -0.02], [a + 0.016, 0.03], [a, 0.03]]) for a in x
            ]
            light = Ink((0.93, 0.93, 0.92), "matte")
            return [Layer(cuts, light, within="sole"), Layer([band(last.bed_line, 0.014)], dark)]
        if shoe.wedge and shoe.platform + shoe.sole > 0.03:
            return [Layer([band(last.bed_line - 0.006 * lift, 0.007)], dark, within="sole")]
        welt = between(last.bed_line, 0.0, 1.0, 40) - 0.003 * lift
        return [Layer([band(welt, 0.006)], dark, within="sole")]

    def upper(self) -> list[Layer]:
        """Return the upper with its edge."""
        if not self.has_upper:
            return []
        layers = [Layer([self.outline], self.upper_ink(), name="upper")]
        edge = band(self.topline, 0.012)
        layers.append(Layer([edge], self.upper_ink(0, 0.72), within="upper"))
        return layers

    def cup(self) -> list[Layer]:
        """Return a sandal's heel cup."""
        shoe, last = self.shoe, self.last
        if not shoe.counter:
            return []
        height = shoe.counter
        heel = last.bed(0.0) - xy(0.004, 0)
        belly = last.above(0.0, 0.5 * height) - xy(0.02, 0)
        peak = last.above(0.0, height) + xy(0.008, 0)
        rear = spline([heel, belly, peak])
        slope = spline(
            [peak + xy(0.03, 0.0), last.above(0.11, 0.4 * height), last.above(0.24, 0.012)]
        )
        far = path(slope, (slope + xy(0.03, 0.012))[::-1])
        outline = path(rear, slope, last.bed(np.linspace(0.24, 0, 8)))
        return [
            Layer([far], self.ink("lining", 2)),
            Layer([outline], self.upper_ink(5), name="cup"),
        ]


def dots(line: Points, n: int, radius: float) -> list[Points]:
    """Return circles evenly along a line."""
    return [ellipse(point, radius, n=10) for point in between(line, 0.06, 0.94, n)]
