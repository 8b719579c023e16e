"""The sections of a report."""

import platform
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import sklearn

from likeminds import plots
from likeminds._util.array_types import Index
from likeminds._util.text_format import counted, signed
from likeminds._version import __version__
from likeminds.diagnostics import MEANINGS, UNUSUAL, Diagnostics
from likeminds.features.images import SUFFIXES, picture_of, png_bytes, thumbnail
from likeminds.metrics.inter_annotator_agreement import Agreement
from likeminds.plots.figures import COLOURS, new_axes
from likeminds.plots.user_cards import describe
from likeminds.report.facts import ReportFacts, interval
from likeminds.report.page import (
    PHONE_WIDTH,
    Block,
    Card,
    Cards,
    Details,
    PagePicture,
    Paragraph,
    ReportTable,
    Section,
    Strip,
    StripItem,
    inlined,
    picture,
)
from likeminds.schools import JudgedItem, School, Schools
from likeminds.schools.result import LEVELS
from likeminds.schools.school_names import are_named, shorten

_ITEMS, _TEXT_ITEMS, _PEOPLE_NAMED, _CARDS, _MOST_ROWS = 8, 4, 12, 2, 300
# Features of an item that are named where it has no picture.
_FEATURES_NAMED, _LETTERS = 12, 140


def schools_section(facts: ReportFacts) -> Section | None:
    """Return the schools, their features, and examples."""
    found = facts.schools
    if found is None:
        return None
    parts: list[Block] = [_how_found(found)]
    if found:
        parts.append(Cards([_school_card(facts, school) for school in found]))
    elif found.axes:
        rows = [[axis.low, axis.high, f"{axis.share:.0%}"] for axis in found.axes]
        header = ["at one end, a person", "at the other, a person", "share of the differences"]
        parts += [ReportTable(header, rows), *_halves(facts)]
    if found.axes:
        parts.append(_heatmap(facts, found))
    title = "Schools of thought" if found else "How people differ"
    return Section(title, parts)


def _halves(facts: ReportFacts) -> list[Block]:
    """Return the best two schools where none stand apart, with their stability."""
    halves = facts.explained.halves
    if halves is None:
        return []
    rows = [[f"{s.size:,}", s.name, f"{s.stability:.2f}"] for s in halves]
    caption = (
        "The best division in two all the same, with the share of each that comes back in "
        f"resampled crowds (adjusted Rand index {halves.agreement:.2f})"
    )
    return [ReportTable(["users", "what sets them apart", "stability"], rows, caption)]


def _how_found(found: Schools) -> str:
    if not found.axes:
        return (
            "People's rankings were compared with the consensus. With this number of labels, the "
            "remaining differences are not larger than chance. People may differ more than this "
            "shows."
        )
    if not found:
        directions = "Its longest direction is" if len(found.axes) == 1 else "Its directions are"
        return (
            "People were divided by how their rankings deviate from the consensus. No division "
            "stands apart clearly enough to speak of schools: opinions are one cloud. "
            f"{directions} below."
        )
    how = "suggested by the data" if found.suggested else "requested"
    return (
        f"People were divided by how their rankings deviate from the consensus; {len(found)} "
        f"schools were {how}. When people are drawn again at random, the same division comes "
        f"back with an adjusted Rand index of {found.agreement:.2f} (1 is the same, 0 is chance)."
    )


def _heatmap(facts: ReportFacts, found: Schools) -> PagePicture:
    caption = (
        "Red raises an item's score as the feature grows, blue lowers it. Features that go "
        "together in the items can cancel each other out."
    )
    alt = "Heat map of all people's weights, people and features ordered by school"
    draw = partial(plots.heatmap, facts.ranker, found, facts.items, facts.images)
    return picture(draw(), alt, caption, narrow=draw(width=PHONE_WIDTH))


def _school_card(facts: ReportFacts, school: School) -> Card:
    found = facts.schools
    assert found is not None
    members = found.members(school.number)[:_PEOPLE_NAMED].tolist()
    named = {name: value for name, value in school.features.items() if are_named([name])}
    features = ", ".join(f"{name.replace('_', ' ')} {signed(v, 2)}" for name, v in named.items())
    apart = f" Set apart by: {features}." if features else ""
    shown = facts.are_pictures_telling(found.strength[school.number - 1])
    name = f"School {school.number}" if shown else f"School {school.number}: {school.name}"
    parts = [
        f"{counted(school.size, 'person', 'people')}, {school.share:.0%} of all; stability "
        f"{school.stability:.2f} ({_stable(school.stability)}).{apart}",
        *_items(facts, f"What it {facts.verb.most()}", school.typical),
        *_differences(facts, school),
        Paragraph(f"Surest members: {_and_more(members, school.size)}.", "note"),
    ]
    colour = COLOURS[(school.number - 1) % len(COLOURS)]  # as on the map
    return Card(colour, name, parts)


def _and_more(names: Sequence[object], total: int) -> str:
    """List names, and the number of further ones."""
    more = total - len(names)
    return ", ".join(map(str, names)) + (f" and {more:,} more" if more else "")


def _differences(facts: ReportFacts, school: School) -> list[Block]:
    """Return the items that a school places higher, and lower, than all others do."""
    if facts.images is None:

        def placed(value: float) -> str:
            return f"placed {abs(value):.0%} {'higher' if value > 0 else 'lower'}"

        return _items(facts, "Where it differs most from all others", school.divisive, placed)
    blocks: list[Block] = []
    for title, sign in (("higher", 1.0), ("lower", -1.0)):
        judged = [one for one in school.divisive if one.value * sign > 0]
        text = f"Places {title} than all others do"
        blocks += _items(facts, text, judged, lambda value: f"by {abs(value):.0%}")
    return blocks


def _stable(stability: float) -> str:
    if stability >= 0.85:
        return "very stable"
    return "stable" if stability >= 0.6 else "not stable: another sample may not show it"


def divisive_section(facts: ReportFacts) -> Section | None:
    """Return the items that divide people most."""
    if facts.schools is None or not facts.schools.divisive:
        return None
    intro = (
        "The places that people give to these items differ most. The number is the standard "
        "deviation over people of the share of items it beats: 0.29 if it may stand anywhere, "
        "0.5 if it is the best for one half and the worst for the other."
    )
    judged = facts.schools.divisive
    items = _items(facts, None, judged, "{:.2f}".format)
    table = _shares(facts, facts.schools, judged)
    return Section("What divides people most", [intro, *items, *table])


def agreed_section(facts: ReportFacts) -> Section | None:
    """Return the items that every school likes, and who would say yes to them."""
    found = facts.schools
    if found is None or found.soft_labels is None:
        return None
    several = len(found) > 0
    would = facts.verb.would()
    share = f"share that {would} in every school" if several else f"share of people that {would}"
    if not several and found.everywhere:
        share = f"{share}, {found.everywhere}"
    n_liked = int((found.soft_labels.at_least > 0.5).sum())
    intro = (
        f"Under each item stands the {share}, at the least (a bound that holds with a "
        f"probability of 95 %). It is more than half for {n_liked:,} of "
        f"{counted(len(found.soft_labels.items), 'item')}. People who judged an item count as they "
        "said, all others as they are predicted."
    )
    # Items that less than half would like do not belong below this title.
    agreed = [one for one in found.agreed if one.value > 0.5] or found.agreed
    items = _items(facts, None, agreed, "at least {:.0%}".format)
    verb = facts.verb
    title = f"What every school {verb.one()}" if several else f"What people {verb.many()}"
    if not n_liked:
        title = f"Nearest to {title[0].lower()}{title[1:]}"
    table = _shares(facts, found, agreed)
    return Section(title, [intro, *items, *table])


def _shares(facts: ReportFacts, found: Schools, judged: Sequence[JudgedItem]) -> list[Block]:
    """Return a table of who would say yes to items."""
    if found.soft_labels is None or facts.items is None:
        return []
    several = [f"school {s.number}" for s in found]
    rows = []
    for one in judged:
        soft = found.soft_labels.of_row(one.row)
        name = ", ".join(describe(facts.items, one, _FEATURES_NAMED))
        cells = [(soft["share"], soft["error"])]
        cells += zip(soft["by_school"], soft["error_by_school"], strict=True)
        shown = [f"{share:.0%} \N{PLUS-MINUS SIGN} {100 * error:.0f}" for share, error in cells]
        rows.append([name, f"{soft['votes']:,}", *shown])
    header = ["item", "judged by", "everyone", *several]
    return [ReportTable(header, rows, f"Share that {facts.verb.would()}, and its standard error")]


def _items(
    facts: ReportFacts,
    title: str | None,
    judged: Sequence[JudgedItem],
    say: Callable[[float], str] | None = None,
) -> list[Block]:
    if not judged or facts.items is None:
        return []
    pictured = facts.images is not None
    entries = []
    for item in judged[: _ITEMS if pictured else _TEXT_ITEMS]:
        shown = picture_of(facts.images, item.item, item.row)
        name = _bare(item.item) if item.text is None else shorten(item.text, _LETTERS)
        if shown is None:
            name = ", ".join(describe(facts.items, item, _FEATURES_NAMED))
        content = None if shown is None else inlined(png_bytes(thumbnail(shown)))
        entries.append(StripItem(name, content, "" if say is None else say(item.value)))
    above = [] if title is None else [Paragraph(title, strong=True)]
    return [*above, Strip(entries, pictured)]


def _bare(item: object) -> str:
    """Return the name of an item, of a file without what says that it is a picture."""
    name = Path(str(item))
    return str(name.with_suffix("")) if name.suffix.lower() in SUFFIXES else str(item)


def standing_section(facts: ReportFacts) -> Section | None:
    """Return where people stand between consensus, group and their own, and the loners."""
    found = facts.schools
    if found is None:
        return None
    quantiles = np.quantile(found.level_shares, [0.1, 0.5, 0.9], axis=0).T
    rows = [
        [name, *(f"{value:.0%}" for value in row)]
        for name, row in zip(LEVELS, quantiles, strict=True)
    ]
    header = ["level", "a tenth has less than", "half has less than", "nine tenths have less than"]
    table = ReportTable(header, rows, "Share of each level in what moves a person's scores")
    alone = "No person is a clear outlier: no personal part is larger than chance explains."
    if found.loner.any():
        names = found.loners[:_PEOPLE_NAMED].tolist()
        alone = f"On their own: {_and_more(names, int(found.loner.sum()))}."
    return Section("Where people stand", [table, alone])


def accuracy_section(facts: ReportFacts) -> Section | None:
    """Return how well labels that were not learned from are predicted."""
    found, accuracy = facts.diagnostics, facts.accuracy()
    if found is None or accuracy is None:
        return None
    own, shared, difference = accuracy
    mean, low, high = map(signed, (difference.mean, difference.low, difference.high))
    rows = [["each person's own ranking", interval(own)], ["the consensus", interval(shared)]]
    rows.append(["difference", f"{mean} ({low} to {high})"])
    how = "Labels were held out in five turns, and the model fitted to the rest each time."
    if found.held_out:
        how = "Labels that the model was not fitted to."
    if facts.cut is not None:
        how += f" Grades above {facts.cut} count as a yes."
    caption = f"Mean AUC of {counted(own.n_defined, 'person', 'people')}, 95 % interval over people"
    parts: list[Block] = [
        f"{how} An AUC of 0.5 is chance, 1 is a perfect order.",
        ReportTable(["ranked by", "mean AUC"], rows, caption),
        picture(
            plots.auc_by_user(found),
            "AUC of every person with intervals",
            narrow=plots.auc_by_user(found, ax=new_axes(PHONE_WIDTH, PHONE_WIDTH)),
        ),
    ]
    return Section("Accuracy", parts)


def people_section(facts: ReportFacts) -> Section | None:
    """Return the diagnostics of annotators."""
    found = facts.diagnostics
    if found is None:
        return None
    counts = [[verdict, f"{n:,}", MEANINGS[verdict]] for verdict, n in found.counts.items()]
    parts: list[Block] = [ReportTable(["verdict", "users", "meaning"], counts)]
    if found.agreement is not None:
        parts.append(_agreement_table(found.agreement))
        parts.append(f"{found.agreement.reading()} {found.disagreement()}")
    if found.severity is not None:
        parts.append(
            f"Severity: {found.severity}. A threshold says how readily a person says yes; it does "
            "not change the order of their items. The column of yes where others are divided "
            "compares people on equal items: 50% is as readily as most, less is strict. A "
            "guideline with examples near the threshold brings thresholds together."
        )
    for verdict in UNUSUAL:
        rows = np.flatnonzero(found.verdict == verdict)
        if len(rows):
            worst = rows[np.argsort((found.consensus_auc - found.own_auc)[rows], kind="stable")]
            title = f"{verdict.capitalize()}: {counted(len(rows), 'person', 'people')}"
            parts.append(_people_table(found, worst[:_PEOPLE_NAMED], title))
    rows = np.arange(len(found.users))[:_MOST_ROWS]
    cut = "" if len(rows) == len(found.users) else f", the first {_MOST_ROWS}"
    whole = _people_table(found, rows, None)
    parts += [Details(f"All people{cut}", [whole]), *_cards(facts, found)]
    return Section("Annotators", parts)


def _agreement_table(found: Agreement) -> ReportTable:
    ranges = [_finite(one.low, f"{{:.2f}} to {one.high:.2f}") for one in found.coefficients]
    values = [[one.name, _finite(one.value)] for one in found.coefficients]
    rows = [[*value, ends] for value, ends in zip(values, ranges, strict=True)]
    return ReportTable.filled(["coefficient", "value", "95 % interval"], rows, found._headline())


def _people_table(found: Diagnostics, rows: Index, caption: str | None) -> ReportTable:
    header = ["user", "verdict", "labels", "positive", "yes where others are divided"]
    header += ["AUC, own", "interval", "AUC, consensus", "mean kappa"]
    kappa = None if found.agreement is None else found.agreement.kappa_by_user
    cells = [
        [
            found.users[i],
            found.verdict[i],
            f"{found.n_labels[i]:,}",
            f"{found.positive_share[i]:.0%}",
            _finite(found.yes_where_divided[i], "{:.0%}"),
            _finite(found.own_auc[i]),
            _finite(found.low[i], f"{{:.2f}} to {found.high[i]:.2f}"),
            _finite(found.consensus_auc[i]),
            "" if kappa is None else _finite(kappa[i]),
        ]
        for i in rows
    ]
    if caption is not None:  # it says the verdict
        header, *cells = ([row[0], *row[2:]] for row in (header, *cells))
    return ReportTable.filled(header, cells, caption)


def _finite(value: float, form: str = "{:.2f}") -> str:
    return form.format(value) if np.isfinite(value) else ""


def _cards(facts: ReportFacts, found: Diagnostics) -> list[PagePicture]:
    """Return the cards of those who differ most, and whose own ranking is right."""
    if facts.schools is None or facts.annotations is None:
        return []
    users = set(facts.schools.user_ids.tolist())
    gain = np.where(found.verdict == "different", found.own_auc - found.consensus_auc, -np.inf)
    best = [i for i in np.argsort(-gain, kind="stable")[:_CARDS] if np.isfinite(gain[i])]
    return [
        picture(
            plots.user_card(facts.ranker, person, facts.annotations, facts.images),
            f"Card of {person}: own weights compared with the consensus, and the items on top",
        )
        for person in (found.users[i] for i in best)
        if person in users
    ]


def fit_section(facts: ReportFacts) -> Section | None:
    """Return how the model was fitted."""
    ranker = facts.ranker._best_model
    parameters = facts.ranker.get_params(deep=False)
    rows = [[name, _plain(value)] for name, value in sorted(parameters.items())]
    chosen = facts.ranker.best_params_ or {}
    rows += [[f"{name} (chosen)", _plain(value)] for name, value in sorted(chosen.items())]
    found = {"directions of the group level": ranker.n_groups_, "iterations": ranker.n_iter_}
    found |= {"converged": ranker.converged_, "objective": ranker.objective_}
    rows += [[name, _plain(value)] for name, value in found.items() if value is not None]
    parts: list[Block] = [ReportTable([type(facts.ranker).__name__, "value"], rows)]
    if facts.ranker.cv_results_:
        surface = plots.cv_surface(facts.ranker)
        parts.append(picture(surface, "Cross-validated scores over the parameters searched"))
    trace = ranker.objective_trace_
    if trace is not None and len(trace) > 2:
        parts.append(picture(plots.convergence(ranker), "Objective by iteration"))
    versions = (
        f"likeminds {__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"scikit-learn {sklearn.__version__}."
    )
    parts.append(Paragraph(versions, "note"))
    return Section("How it was fitted", [Details("Parameters and versions", parts)])


def _plain(value: object) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    shown = str(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
