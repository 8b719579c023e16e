"""The tables and pictures of a report; ``_util/templates/report.html`` has their order and text."""

import platform
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import sklearn

from likeminds import plots
from likeminds._util.array_types import Index
from likeminds._util.text_format import counted, signed
from likeminds._version import __version__
from likeminds.diagnostics import MEANINGS, UNUSUAL, Diagnostics
from likeminds.features.images import SUFFIXES, picture_of, png_bytes, thumbnail
from likeminds.metrics.by_user import MetricByUser
from likeminds.metrics.inter_annotator_agreement import Agreement
from likeminds.metrics.paired import PairedDifference
from likeminds.plots.figures import COLOURS, new_axes
from likeminds.plots.user_cards import describe
from likeminds.plots.user_maps import MOST_ITEMS
from likeminds.rankers.leaderboards import Leaderboard, leaderboard
from likeminds.rankers.ranker import Ranker
from likeminds.report.facts import ReportFacts, interval
from likeminds.report.page import PagePicture, ReportTable, inlined, picture
from likeminds.schools import JudgedItem, School, Schools
from likeminds.schools.result import LEVELS
from likeminds.schools.school_names import are_named, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DOUBTFUL = ("reversed", "constant", "random")
_ITEMS, _TEXT_ITEMS, _USERS_NAMED, _CARDS, MOST_ROWS = 8, 4, 12, 2, 300
# The number of an item's features that are named if it has no picture.
_FEATURES_NAMED, _LETTERS = 12, 140
# Leaderboards: the level of intervals, the number of pairs to ask next, the letters of a name, and
# the largest number of items for such pairs, which need matrices of items x items.
LEVEL, _NEXT, _LETTERS_OF_A_NAME, _MOST_COMPARED = 0.9, 3, 40, 1_000


def overview(parts: Mapping[Hashable, ReportFacts]) -> ReportTable:
    """Return a row per attribute."""
    rows = []
    for attribute, facts in parts.items():
        accuracy, found = facts.accuracy(), facts.diagnostics
        own, shared = ("", "") if accuracy is None else map(interval, accuracy[:2])
        n_schools = "" if facts.schools is None else str(len(facts.schools) or "none")
        counts = None if found is None else [found.counts[verdict] for verdict in _DOUBTFUL]
        check = "" if counts is None else str(sum(counts))
        rows.append([str(attribute), f"{facts.n_users:,}", n_schools, own, shared, check])
    header = ["attribute", "users", "schools", "AUC, own", "AUC, consensus", "to check"]
    return ReportTable.filled(header, rows)


def first_picture(facts: ReportFacts) -> PagePicture:
    """Return the first picture: the map of users, or the shares of items."""
    found = facts.schools
    assert found is not None
    if found.axes:
        draw = partial(plots.people_map, found, items=facts.items, images=facts.images)
        alt = "Map of people by school of thought"
        caption = "Each dot is a person; people near each other rank the items alike."
        if facts.are_pictures_telling(found.axes[0].strength):
            most = facts.verb.most(many=True)
            caption += f" Pictures show items that people at this end {most}, unlike others."
        if found.outlier.any():
            caption += " Rings mark outliers."
    else:
        draw = partial(plots.item_shares, found)
        caption = "Each dot is an item; its line is the 90 % interval of the share."
        alt = "Share of people who say yes to each item, in order"
    return picture(draw, alt, caption)


def boards_of(facts: ReportFacts) -> dict[str, Leaderboard]:
    """Return the leaderboards of everyone and of each school; none without comparisons."""
    labels, ranker = facts.annotations, facts.ranker
    compared = labels is not None and labels.n_choices > 0 and ranker._best_model.item_effects_
    if not compared or ranker.training_items() is None:
        return {}
    n_next = _NEXT if facts.n_items <= _MOST_COMPARED else 0
    make = partial(leaderboard, ranker, level=LEVEL, n_next=n_next)
    boards = {"everyone": make()}
    if facts.schools is not None:
        for school in facts.schools:
            boards[f"school {school.number}"] = make(facts.schools.members(school.number).tolist())
    return boards


def short_name(item: object) -> str:
    """Return the name of a compared item, shortened."""
    return shorten(str(item), _LETTERS_OF_A_NAME)


def boards_picture(boards: Mapping[str, Leaderboard]) -> PagePicture:
    """Return the scores of items, with intervals."""
    schools = " and each school" if len(boards) > 1 else ""
    alt = f"Scores of items with intervals, for everyone{schools}"
    return picture(partial(plots.leaderboards, boards), alt)


def boards_table(boards: Mapping[str, Leaderboard]) -> ReportTable:
    """Return a row per drawn item, in the order of everyone's leaderboard."""
    first = boards["everyone"]
    n_shown = min(len(first), MOST_ITEMS)
    ranks = [
        dict(zip(b.items.tolist(), zip(b.rank_low, b.rank_high, strict=True), strict=True))
        for b in boards.values()
    ]
    rows = []
    for k, item in enumerate(first.items[:n_shown].tolist()):
        score = f"{first.scores[k]:.2f} ({first.low[k]:.2f} to {first.high[k]:.2f})"
        ends = (found[item] for found in ranks)
        spans = [f"{low}" if low == high else f"{low} to {high}" for low, high in ends]
        rows.append([short_name(item), f"{first.comparisons[k]:,.0f}", score, *spans])
    header = ["item", "comparisons", "score, everyone", *(f"ranks, {who}" for who in boards)]
    cut = "" if n_shown == len(first) else f", the best {n_shown} of {len(first):,}"
    return ReportTable(header, rows, f"Items in the order of everyone{cut}")


def axes_table(found: Schools) -> ReportTable:
    """Return the directions in which users differ."""
    rows = [[axis.low, axis.high, f"{axis.share:.0%}"] for axis in found.axes]
    header = ["at one end, a person", "at the other, a person", "share of the differences"]
    return ReportTable(header, rows)


def halves_table(halves: Schools) -> ReportTable:
    """Return the best two schools if none are separate, with their stability."""
    rows = [[f"{s.size:,}", s.name, f"{s.stability:.2f}"] for s in halves]
    caption = (
        "The best division into two. The adjusted Rand index with divisions of resampled users is "
        f"{halves.agreement:.2f}"
    )
    return ReportTable(["users", "distinguished by", "stability"], rows, caption)


def heatmap(facts: ReportFacts) -> PagePicture:
    """Return the weights of all users."""
    caption = (
        "Red raises an item's score as the feature grows, blue lowers it. Correlated features can "
        "cancel each other out."
    )
    assert facts.schools is not None
    draw = partial(plots.heatmap, facts.ranker, facts.schools, facts.items, facts.images)
    alt = "Heat map of all people's weights, people and features ordered by school"
    return picture(draw, alt, caption)


def colour_of(school: School) -> str:
    """Return the colour of a school on the map."""
    return COLOURS[(school.number - 1) % len(COLOURS)]


def named_features(school: School) -> str:
    """Return the features that distinguish a school, if their names have a meaning."""
    named = {name: value for name, value in school.features.items() if are_named([name])}
    return ", ".join(f"{name.replace('_', ' ')} {signed(v, 2)}" for name, v in named.items())


def strip(
    facts: ReportFacts, judged: Sequence[JudgedItem]
) -> Iterator[tuple[str, str | None, float]]:
    """Yield the text, the picture and the value of the first items."""
    assert facts.items is not None
    for item in judged[: _TEXT_ITEMS if facts.images is None else _ITEMS]:
        shown = picture_of(facts.images, item.item, item.row)
        if shown is None:
            yield ", ".join(describe(facts.items, item, _FEATURES_NAMED)), None, item.value
            continue
        file = Path(str(item.item))
        name = str(file.with_suffix("") if file.suffix.lower() in SUFFIXES else item.item)
        yield (
            name if item.text is None else shorten(item.text, _LETTERS),
            inlined(png_bytes(thumbnail(shown))),
            item.value,
        )


def shares_table(facts: ReportFacts, judged: Sequence[JudgedItem]) -> ReportTable:
    """Return the share of yes for each item."""
    found, items = facts.schools, facts.items
    assert found is not None
    assert found.soft_labels is not None
    assert items is not None
    rows = []
    for one in judged:
        soft = found.soft_labels.of_row(one.row)
        name = ", ".join(describe(items, one, _FEATURES_NAMED))
        cells = [(soft["share"], soft["error"])]
        cells += zip(soft["by_school"], soft["error_by_school"], strict=True)
        shown = [f"{share:.0%} \N{PLUS-MINUS SIGN} {100 * error:.0f}" for share, error in cells]
        rows.append([name, f"{soft['votes']:,}", *shown])
    header = ["item", "votes", "everyone", *(f"school {s.number}" for s in found)]
    return ReportTable(header, rows, f"Share that {facts.verb.would()}, and its standard error")


def levels_table(found: Schools) -> ReportTable:
    """Return the shares of consensus, group and personal level over users."""
    quantiles = np.quantile(found.level_shares, [0.1, 0.5, 0.9], axis=0).T
    rows = [
        [name, *(f"{value:.0%}" for value in row)]
        for name, row in zip(LEVELS, quantiles, strict=True)
    ]
    header = ["level", "10th percentile", "median", "90th percentile"]
    return ReportTable(header, rows, "Share of each level in the variance of a person's scores")


def accuracy_table(
    own: MetricByUser, shared: MetricByUser, difference: PairedDifference
) -> ReportTable:
    """Return the accuracy on held-out labels."""
    mean, low, high = map(signed, (difference.mean, difference.low, difference.high))
    rows = [["each person's own ranking", interval(own)], ["the consensus", interval(shared)]]
    rows.append(["difference", f"{mean} ({low} to {high})"])
    caption = f"Mean AUC of {counted(own.n_defined, 'person', 'people')}, 95 % interval over people"
    return ReportTable(["ranked by", "mean AUC"], rows, caption)


def accuracy_picture(found: Diagnostics) -> PagePicture:
    """Return the accuracy by user."""

    def draw(width: float | None = None) -> "Axes":
        return plots.auc_by_user(found, ax=None if width is None else new_axes(width, width))

    return picture(draw, "AUC of every person with intervals")


def verdicts_table(found: Diagnostics) -> ReportTable:
    """Return the number of annotators with each verdict."""
    counts = [[verdict, f"{n:,}", MEANINGS[verdict]] for verdict, n in found.counts.items()]
    return ReportTable(["verdict", "users", "meaning"], counts)


def agreement_table(found: Agreement) -> ReportTable:
    """Return the coefficients of inter-annotator agreement."""
    rows = [
        [one.name, _finite(one.value), _finite(one.low, f"{{:.2f}} to {one.high:.2f}")]
        for one in found.coefficients
    ]
    return ReportTable.filled(["coefficient", "value", "95 % interval"], rows, found._headline())


def unusual_tables(found: Diagnostics) -> Iterator[ReportTable]:
    """Yield the users of each unusual verdict, the largest gain in AUC by own rankings first."""
    for verdict in UNUSUAL:
        rows = np.flatnonzero(found.verdict == verdict)
        if len(rows):
            order = rows[np.argsort((found.consensus_auc - found.own_auc)[rows], kind="stable")]
            title = f"{verdict.capitalize()}: {counted(len(rows), 'person', 'people')}"
            yield _users_table(found, order[:_USERS_NAMED], title)


def users_table(found: Diagnostics) -> ReportTable:
    """Return the first users, with their verdicts."""
    return _users_table(found, np.arange(len(found.users))[:MOST_ROWS], None)


def _users_table(found: Diagnostics, rows: Index, caption: str | None) -> ReportTable:
    kappa = None if found.agreement is None else found.agreement.kappa_by_user
    cells = [
        {
            "user": found.users[i],
            "verdict": found.verdict[i] if caption is None else "",  # captions have these facts
            "labels": f"{found.n_labels[i]:,}",
            "positive": f"{found.positive_share[i]:.0%}",
            "yes where others are divided": _finite(found.yes_where_divided[i], "{:.0%}"),
            "AUC, own": _finite(found.own_auc[i]),
            "interval": _finite(found.low[i], f"{{:.2f}} to {found.high[i]:.2f}"),
            "AUC, consensus": _finite(found.consensus_auc[i]),
            "mean kappa": "" if kappa is None else _finite(kappa[i]),
        }
        for i in rows
    ]
    return ReportTable.filled([*cells[0]], [[*row.values()] for row in cells], caption)


def _finite(value: float, form: str = "{:.2f}") -> str:
    return form.format(value) if np.isfinite(value) else ""


def user_cards(facts: ReportFacts) -> Iterator[PagePicture]:
    """Yield cards of the users with the largest gain in AUC by their own ranking."""
    found = facts.diagnostics
    if facts.schools is None or facts.annotations is None or found is None:
        return
    gain = np.where(found.verdict == "different", found.own_auc - found.consensus_auc, -np.inf)
    best = [i for i in np.argsort(-gain, kind="stable")[:_CARDS] if np.isfinite(gain[i])]
    for user in found.users[best]:
        if user in facts.schools.user_ids.tolist():
            card = plots.user_card(facts.ranker, user, facts.annotations, facts.images)
            alt = f"Card of {user}: own weights compared with the consensus, and the items on top"
            yield picture(card, alt)


def parameters_table(ranker: Ranker) -> ReportTable:
    """Return the parameters of a ranker, and the values that its fit chose."""
    fitted = ranker._best_model
    found = ranker.get_params(deep=False)
    rows = [[name, _plain(value)] for name, value in sorted(found.items())]
    chosen = ranker.best_params_ or {}
    rows += [[f"{name} (chosen)", _plain(value)] for name, value in sorted(chosen.items())]
    found = {"directions of the group level": fitted.n_groups_, "iterations": fitted.n_iter_}
    found |= {"converged": fitted.converged_, "objective": fitted.objective_}
    rows += [[name, _plain(value)] for name, value in found.items() if value is not None]
    return ReportTable([type(ranker).__name__, "value"], rows)


def _plain(value: object) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    shown = str(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def fit_pictures(ranker: Ranker) -> Iterator[PagePicture]:
    """Yield plots of a search over parameters, and of a solver's iterations."""
    if ranker.cv_results_:
        surface = plots.cv_surface(ranker)
        yield picture(surface, "Cross-validated scores over the parameters searched")
    trace = ranker._best_model.objective_trace_
    if trace is not None and len(trace) > 2:
        yield picture(plots.convergence(ranker._best_model), "Objective by iteration")


def versions() -> str:
    """Return the versions of the libraries that a model depends on."""
    return (
        f"likeminds {__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"scikit-learn {sklearn.__version__}."
    )
