"""Draw the folders of the package in their layers, and who imports whom: docs/import-graph.png.

python -m tools.import_graph

The rows are the layers of the first contract in ``pyproject.toml``. Imports of one folder flow
together into one stream of its colour, the wider the more there are. Arrows point down, or to the
right within a row. ``__init__`` (which offers names of all folders) and ``_version`` are left
out; the imports of the lowest row, which all use, are counted in its box.
"""

import re
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grimp
from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon
from matplotlib.path import Path as Curve

from likeminds.plots.figures import COLOURS, GREY, new_axes

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "import-graph.png"
LEFT_OUT = {"_version"}
# In units of the picture: its width, the distance of rows, a folder's box, a stream's lane.
WIDTH, ROW = 22.0, 2.6
INCHES = 14.0
BOX, HEIGHT, LANE = 2.5, 0.9, 0.5
# Grey is for folders that none imports.
_CYCLE = [colour for colour in COLOURS if colour != GREY]

Imports = Counter[tuple[str, str]]


@dataclass
class Place:
    """A folder in its row, or the lane in which imports of it pass through a row above."""

    name: str
    row: int
    colour: str
    lane: bool = False
    x: float = 0.0
    above: "list[Place]" = field(default_factory=list)
    below: "Place | None" = None

    @property
    def width(self) -> float:
        """How much of the row it takes."""
        return LANE if self.lane else BOX

    @property
    def y(self) -> float:
        """Where its row is."""
        return -ROW * self.row

    def flow(self, target: str, imports: Imports) -> int:
        """Return how many imports of the target leave here."""
        if not self.lane:
            return imports[self.name, target]
        return sum(source.flow(target, imports) for source in self.above)


def main() -> None:
    """Write the picture."""
    rows, imports = layers(), count_imports()
    axes = new_axes(INCHES, 13)
    draw(axes, rows, imports)
    axes.figure.savefig(PICTURE, dpi=100)
    print(f"{PICTURE.relative_to(ROOT)}: {imports.total()} imports between {len(rows)} layers")


def layers() -> list[list[str]]:
    """Return the folders of each layer, the highest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    rows = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return [[name for name in re.findall(r"\w+", row) if name not in LEFT_OUT] for row in rows]


def count_imports() -> Imports:
    """Return how often modules of one folder import modules of another."""
    graph = grimp.build_graph("likeminds")
    known = {name for row in layers() for name in row}
    imports: Imports = Counter()
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            one, other = ((*name.split("."), "")[1] for name in (module, imported))
            if one != other and {one, other} <= known:
                imports[one, other] += 1
    return imports


def arrange(rows: list[list[str]], imports: Imports) -> list[list[Place]]:
    """Return what stands in each row, from left to right, placed to keep streams short."""
    names = [name for row in rows for name in row]
    imported = [name for name in names if any(other == name for _, other in imports)]
    colours = dict.fromkeys(names, GREY) | {
        name: _CYCLE[k % len(_CYCLE)] for k, name in enumerate(imported)
    }
    boxes = {name: Place(name, r, colours[name]) for r, row in enumerate(rows) for name in row}
    places = [[boxes[name] for name in row] for row in rows]
    for name in names[: -len(rows[-1])]:
        sources = [boxes[one] for one, other in imports if other == name]
        highest = min((source.row for source in sources), default=len(rows))
        lane = boxes[name]
        for r in range(lane.row - 1, highest - 1, -1):
            lane.above += [source for source in sources if source.row == r]
            if r > highest:
                higher = Place(name, r, lane.colour, lane=True, below=lane)
                lane.above.append(higher)
                places[r].append(higher)
                lane = higher
    for row in places:
        _spread(row)
    for sweep in range(20):
        for row in places if sweep % 2 else reversed(places):
            _order(row)
            _spread(row)
    return places


def _order(row: list[Place]) -> None:
    """Put each lane among the folders, which keep their order, where its stream is shortest."""
    boxes = [place for place in row if not place.lane]
    lanes = [place for place in row if place.lane]
    for lane in lanes:
        near = [place.x for place in (*lane.above, lane.below) if place is not None]
        lane.x = sum(near) / len(near)
    if len(boxes) == 1:
        boxes[0].x = WIDTH / 2
    row[:] = sorted([*boxes, *lanes], key=lambda place: place.x)


def _spread(row: list[Place]) -> None:
    gap = (WIDTH - sum(place.width for place in row)) / (len(row) + 1)
    x = gap
    for place in row:
        place.x = x + place.width / 2
        x += place.width + gap


def draw(axes: Any, rows: list[list[str]], imports: Imports) -> None:
    """Draw folders as boxes and imports as streams."""
    places = arrange(rows, imports)
    ports = _ports(places)
    for row in places:
        boxes = [place for place in row if not place.lane]
        for place in row:
            for source in place.above:
                number = source.flow(place.name, imports)
                _stream(axes, ports[id(source), id(place)], source, place, number)
        for box in boxes:
            _box(axes, box, imports, lowest=box.row == len(rows) - 1)
        for k, one in enumerate(boxes):
            for other in boxes[k + 1 :]:
                _aside(axes, one, other, imports[one.name, other.name])
    axes.set(xlim=(0, WIDTH), ylim=(-ROW * (len(rows) - 1) - HEIGHT, HEIGHT))
    axes.set_axis_off()
    axes.set_title(
        "Imports between the folders of likeminds, a row for each layer: arrows point down, or to "
        "the right within a row.\nA stream has the colour of the folder it leads to; the wider, "
        "the more imports (their number is in the box).",
        loc="left",
        fontsize=14,
    )


def _box(axes: Any, box: Place, imports: Imports, *, lowest: bool) -> None:
    width = WIDTH * 0.96 if lowest else BOX
    corner = (box.x - width / 2, box.y - HEIGHT / 2)
    shape = FancyBboxPatch(
        corner, width, HEIGHT, boxstyle="round,pad=0,rounding_size=0.15", zorder=3
    )
    shape.set(facecolor="white", edgecolor=box.colour, linewidth=2.5)
    axes.add_patch(shape)
    number = sum(n for (_, other), n in imports.items() if other == box.name)
    said = f"imported {number} times" if number else "not imported"
    if lowest:
        said += " by the folders above (not drawn)"
    axes.text(box.x, box.y + 0.12, box.name, ha="center", va="center", fontsize=14, zorder=4)
    axes.text(box.x, box.y - 0.24, said, ha="center", va="center", fontsize=9, zorder=4)


def _ports(places: list[list[Place]]) -> dict[tuple[int, int], float]:
    """Return where each stream leaves what it comes from, in the order of where they go."""
    ports = {}
    streams = [(source, place) for row in places for place in row for source in place.above]
    for source in {id(source): source for source, _ in streams}.values():
        ends = sorted((end for start, end in streams if start is source), key=lambda end: end.x)
        for k, end in enumerate(ends):
            aside = 0.0 if source.lane else 0.8 * BOX * ((k + 1) / (len(ends) + 1) - 0.5)
            ports[id(source), id(end)] = source.x + aside
    return ports


def _stream(axes: Any, x: float, source: Place, place: Place, number: int) -> None:
    """Draw imports from one row to the next, along a curve that starts at x."""
    start = (x, source.y if source.lane else source.y - HEIGHT / 2)
    end = (place.x, place.y if place.lane else place.y + HEIGHT / 2)
    bend = (start[1] - end[1]) / 2
    points = [start, (x, start[1] - bend), (place.x, end[1] + bend), end]
    _arrow(axes, points, place.colour, number, pointed=not place.lane)


def _aside(axes: Any, one: Place, other: Place, number: int) -> None:
    """Draw imports within a row, over whatever stands between."""
    if number:
        start, end = (one.x + BOX / 4, one.y + HEIGHT / 2), (other.x - BOX / 4, one.y + HEIGHT / 2)
        points = [start, (start[0], one.y + 1.2), (end[0], one.y + 1.2), end]
        _arrow(axes, points, other.colour, number, pointed=True)


def _arrow(
    axes: Any, points: list[tuple[float, float]], colour: str, number: int, *, pointed: bool
) -> None:
    """Draw a curve whose width says how many imports there are, with a head where it ends."""
    points = list(points)
    width = 0.02 + 0.022 * number**0.7
    if pointed:
        (x, y), length = points[-1], 0.1 + 1.5 * width
        head = [(x, y), (x - 0.06 - width, y + length), (x + 0.06 + width, y + length)]
        axes.add_patch(Polygon(head, facecolor=colour, edgecolor="none", zorder=2))
        points[-1] = (x, y + length * 0.9)
    curve = PathPatch(Curve(points, [Curve.MOVETO, *[Curve.CURVE4] * 3]), zorder=1)
    # A unit of the picture is 72 points times its width in inches by its width in units.
    curve.set(facecolor="none", edgecolor=colour, linewidth=72 * INCHES / WIDTH * width)
    curve.set(capstyle="round", alpha=0.9)
    axes.add_patch(curve)


if __name__ == "__main__":
    main()
