"""The section of a report about leaderboards, for models of comparisons."""

from collections.abc import Hashable
from functools import partial

from likeminds import plots
from likeminds.plots.user_maps import MOST_ITEMS
from likeminds.rankers.leaderboards import Leaderboard, leaderboard
from likeminds.report.facts import ReportFacts
from likeminds.report.page import PHONE_WIDTH, Block, ReportTable, Section, picture
from likeminds.schools.school_names import shorten

_LEVEL, _NEXT, _LETTERS = 0.9, 3, 40
_EVERYONE = "everyone"
# With more items, no pairs are proposed: that takes matrices of items x items.
_MOST_COMPARED = 1_000


def leaderboard_section(facts: ReportFacts) -> Section | None:
    """Return the leaderboards of everyone and of each school, and the comparisons to ask next."""
    labels, ranker = facts.annotations, facts.ranker
    compared = labels is not None and labels.n_choices > 0 and ranker._best_model.item_effects_
    if not compared or ranker.training_items() is None:
        return None
    n_next = _NEXT if facts.n_items <= _MOST_COMPARED else 0
    make = partial(leaderboard, ranker, level=_LEVEL, n_next=n_next)
    boards = {_EVERYONE: make()}
    for school in facts.schools or ():
        assert facts.schools is not None
        boards[f"school {school.number}"] = make(facts.schools.members(school.number).tolist())
    several = len(boards) > 1
    intro = (
        "Scores are log-odds of beating the average item. Each interval holds the true value with "
        f"a probability of {_LEVEL:.0%}, given the model. Items whose ranks overlap are not told "
        "apart."
    )
    if several:
        intro += (
            " Scores of a school are shrunk, so its intervals are somewhat narrow: in simulations "
            "they held 82 to 89 % of the true scores, and 97 to 99 % of the true ranks."
        )
    draw = partial(plots.leaderboards, boards)
    alt = "Scores of items with intervals, for everyone" + (" and each school" if several else "")
    names = {item: shorten(str(item), _LETTERS) for item in boards[_EVERYONE].items.tolist()}
    asked: list[Block] = [
        f"Most informative comparisons for {who}: "
        + ", ".join(f"{names[a]} or {names[b]}" for a, b in board.ask_next)
        + "."
        for who, board in boards.items()
        if board.ask_next
    ]
    parts: list[Block] = [
        intro,
        picture(draw(), alt, narrow=draw(width=PHONE_WIDTH)),
        _table(boards, names),
        *asked,
    ]
    return Section("Leaderboards", parts)


def _table(boards: dict[str, Leaderboard], names: dict[Hashable, str]) -> ReportTable:
    """Return a row per drawn item, in the order of everyone's leaderboard."""
    first = boards[_EVERYONE]
    n_shown = min(len(first), MOST_ITEMS)
    ranks = {
        who: dict(zip(b.items.tolist(), zip(b.rank_low, b.rank_high, strict=True), strict=True))
        for who, b in boards.items()
    }
    rows = []
    for k, item in enumerate(first.items[:n_shown].tolist()):
        score = f"{first.scores[k]:.2f} ({first.low[k]:.2f} to {first.high[k]:.2f})"
        ends = (found[item] for found in ranks.values())
        spans = [f"{low}" if low == high else f"{low} to {high}" for low, high in ends]
        rows.append([names[item], f"{first.comparisons[k]:,.0f}", score, *spans])
    header = ["item", "comparisons", "score, everyone", *(f"ranks, {who}" for who in boards)]
    cut = "" if n_shown == len(first) else f", the best {n_shown} of {len(first):,}"
    return ReportTable(header, rows, f"Items in the order of everyone{cut}")
