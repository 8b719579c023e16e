"""Make the pictures of docs/shared-items.md: python -m tools.shared_items_pictures.

A simulated conversation: 250 people in three camps vote on 30 statements, of which nothing is known
but who agrees; each user sees about 24 of them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from likeminds import Annotations, HierarchicalRanker, Schools, find_schools, plots
from likeminds._util.array_types import Float
from likeminds.plots.figures import BLUE, COLOURS, MARKERS, as_png, new_figure, set_title, wrap_text
from likeminds.schools import JudgedItem

DOCS = Path(__file__).parents[1] / "docs"
# What all think of a statement; how far cars and nights out set people apart about it; its text.
STATEMENTS = (
    (1.8, 0.0, 0.0, "Trees along the main street"),
    (1.5, 0.2, 0.0, "A crossing by the school"),
    (1.4, 0.0, 0.1, "Benches at every bus stop"),
    (1.2, -0.2, 0.0, "Mend the pavements first"),
    (1.0, 0.1, 0.0, "A fountain with drinking water"),
    (0.9, 0.0, 0.2, "Lamps on the path by the river"),
    (0.2, 2.2, 0.0, "No cars in the centre"),
    (0.1, 2.0, 0.0, "A speed limit of 30 everywhere"),
    (0.3, 1.8, 0.2, "Cycle lanes instead of parking"),
    (-0.2, 1.6, 0.0, "A charge for driving in"),
    (0.0, 1.4, 0.6, "Buses free of charge"),
    (0.4, 1.2, 0.0, "Close the ring road on Sundays"),
    (0.1, -2.2, 0.0, "A car park under the square"),
    (0.2, -2.0, 0.0, "Two hours of free parking"),
    (-0.1, -1.8, 0.0, "A second bridge for cars"),
    (0.0, -1.6, 0.2, "Green waves for commuters"),
    (-0.3, -1.4, 0.0, "Parking in front of the shops"),
    (0.2, 0.0, 2.2, "Bars open until three"),
    (0.0, 0.2, 2.0, "Concerts in the park"),
    (0.1, 0.3, 1.8, "Buses all night"),
    (-0.2, 0.0, 1.6, "A skate park by the river"),
    (0.3, 0.0, -1.8, "Quiet from ten in the evening"),
    (0.0, -0.2, -1.6, "No music on the square"),
    (0.2, 0.0, -1.4, "Lock the park at night"),
    (-0.8, 0.3, 0.0, "Move the market to Tuesdays"),
    (-1.0, 0.0, 0.0, "Paint the town hall blue"),
    (-1.2, -0.2, 0.0, "Charge for the public library"),
    (-1.4, 0.2, 0.0, "Fell the old oak"),
    (-1.6, 0.0, 0.0, "Sell the swimming pool"),
    (-1.8, 0.0, -0.2, "Fewer dustbins in the park"),
)
# How many people there are of each camp, and where it stands on cars and on nights out.
CAMPS = ((110, 1.0, -0.6), (80, -1.0, -0.6), (60, 0.0, 1.2))
TEXTS = {f"s{number:02d}": text for number, (*_, text) in enumerate(STATEMENTS, start=1)}
SEEN, SHOWN = 0.8, 6


def make_conversation(seed: int = 0) -> Annotations:
    """Return the votes of three camps."""
    rng = np.random.default_rng(seed)
    liked, *apart = np.array([statement[:3] for statement in STATEMENTS]).T
    place = np.repeat([camp[1:] for camp in CAMPS], [camp[0] for camp in CAMPS], axis=0)
    chance = 1 / (1 + np.exp(-(liked + place @ np.array(apart))))
    person, statement = np.nonzero(rng.random(chance.shape) < SEEN)
    labels = rng.random(len(person)) < chance[person, statement]
    ids = np.array(list(TEXTS), dtype=object)
    return Annotations([f"person {i}" for i in person], ids[statement], labels)


def draw_shares(schools: Schools) -> Any:
    """Draw the share that would say yes, by school: what all like, and what divides."""
    figure = new_figure(9.0, 5.0, shown=False)
    parts = (("What every school likes", schools.agreed), ("What divides people", schools.divisive))
    grid = figure.subplots(2, 1, sharex=True)
    for axes, (title, judged) in zip(grid, parts, strict=True):
        _draw_shares_of(axes, schools, judged[:SHOWN])
        set_title(axes, title, grid="x")
    grid[1].set_xlabel("share of each school that would say yes (bars: 90 % intervals)")
    handles, names = grid[1].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower left", fontsize="small", frameon=False)
    return figure


def _draw_shares_of(axes: Any, schools: Schools, judged: Sequence[JudgedItem]) -> None:
    soft = [schools.soft_labels.of_row(one.row) for one in judged]
    height = np.arange(len(judged))[::-1]
    for place, school in enumerate(schools.schools):
        share = np.array([one["by_school"][place] for one in soft])
        error = np.array([one["error_by_school"][place] for one in soft])
        axes.errorbar(
            share,
            height + 0.12 * (0.5 - place),
            xerr=1.645 * error,
            fmt=MARKERS[place],
            color=COLOURS[place],
            label=wrap_text(f"{school.number}. ({school.size}) {school.name}", 110, 2),
        )
    axes.set_yticks(height, [one.text for one in judged], fontsize="small")
    axes.set_xlim(0, 1)
    axes.axvline(0.5, color="0.6", linewidth=1)


def draw_ranks(ranker: HierarchicalRanker, votes: Annotations, person: str) -> Any:
    """Draw the rank of each statement for a user, with its interval."""
    shown = Annotations([person] * votes.n_items, votes.item_ids, np.arange(votes.n_items) % 2 > 0)
    low, high = ranker.rank_interval(person, shown)
    scores = ranker.decision_function(shown)
    order = np.argsort(-scores, kind="stable")
    judged = np.isin(votes.item_ids, votes.of_user(person).items)[order]
    figure = new_figure(8.0, 5.6, shown=False)
    axes = figure.add_subplot()
    rank = np.arange(1, len(order) + 1)
    errors = _whiskers(rank, low[order], high[order])
    for those, face, label in ((judged, BLUE, "voted on"), (~judged, "white", "not seen yet")):
        axes.errorbar(
            rank[those],
            rank[those],
            xerr=errors[:, those],
            fmt="o",
            color=BLUE,
            markerfacecolor=face,
            label=label,
        )
    axes.set_yticks(rank, [TEXTS[item] for item in votes.item_ids[order]], fontsize="small")
    axes.invert_yaxis()
    axes.set_xlabel("rank (bars: 90 % intervals)")
    axes.legend(frameon=False, loc="upper right")
    set_title(axes, f"How {person} would rank the statements, and how sure that is", grid="x")
    return figure


def _whiskers(rank: Float, low: Float, high: Float) -> Float:
    return np.maximum(np.stack([rank - low, high - rank]), 0)


def main() -> int:
    """Draw everything."""
    votes = make_conversation()
    ranker = HierarchicalRanker().fit(votes)
    schools = find_schools(ranker, votes, texts=TEXTS)
    users = plots.people_map(schools).figure
    shares, ranks = draw_shares(schools), draw_ranks(ranker, votes, "person 207")
    for name, figure in (("map", users), ("shares", shares), ("ranks", ranks)):
        path = DOCS / f"shared-items-{name}.png"
        path.write_bytes(as_png(figure, dpi=90))
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
