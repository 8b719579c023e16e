"""Put a report together and write it, whole or not at all."""

from collections.abc import Hashable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from likeminds import plots
from likeminds._util.atomic_files import place_for, write_whole
from likeminds._util.checks import listing
from likeminds._util.text_format import counted, signed
from likeminds.data.annotations import Annotations
from likeminds.plots.figures import require_matplotlib
from likeminds.plots.thumbnails import Images
from likeminds.rankers.capabilities import NAMELESS, ReadableModel
from likeminds.rankers.ranker import Ranker
from likeminds.report import sections
from likeminds.report.facts import ReportFacts, finding, interval, numbers, summary
from likeminds.report.leaderboard_section import leaderboard_section
from likeminds.report.page import (
    PHONE_WIDTH,
    Block,
    Numbers,
    PagePicture,
    Paragraph,
    ReportTable,
    Section,
    page,
    picture,
)

_SECTIONS = (
    leaderboard_section,
    sections.schools_section,
    sections.agreed_section,
    sections.divisive_section,
    sections.standing_section,
    sections.accuracy_section,
    sections.people_section,
    sections.fit_section,
)
_FOOTER = "Written by likeminds. Everything on this page is in this one file."


def write_report(
    model: ReadableModel | Mapping[Any, Ranker],
    path: str | PathLike[str],
    annotations: Annotations | None = None,
    images: Images = None,
    title: str | None = None,
    *,
    held_out: Annotations | None = None,
    n_schools: int | str = "auto",
    diagnostics: bool = True,
    texts: Mapping[Any, str] | None = None,
) -> Path:
    """Write one self-contained HTML page about a model.

    It begins with a summary. Then come leaderboards of compared items, the schools of thought, the
    items that all of them like and those that divide users, the accuracy of rankings, diagnostics
    of annotators, and how the model was fitted. Pictures are inlined, nothing is loaded from
    elsewhere, no script runs.

    Parameters
    ----------
    model : ranker, `AttributeModel`, or mapping from attribute to ranker
        The fitted model. Several attributes make one page with a part for each.
    path : path
        The file; an existing one is replaced only once the new one is complete.
    annotations : Annotations, optional
        The labels that the model was fitted to (with its attributes, if there are several). By
        default those in the model; without any, there are no items and no accuracy.
    images : mapping from item id to picture, or sequence in the order of the items, optional
        Paths or arrays; items are then shown as thumbnails.
    title : str, optional
        The subject, above the first heading, which is the main finding. By default the attribute.
    held_out : Annotations, optional
        Labels that the model was not fitted to, for accuracy and diagnostics. Without them, the
        ranker is fitted five more times, to parts of ``annotations``.
    n_schools : int or "auto", default="auto"
        As in `find_schools`.
    diagnostics : bool, default=True
        Whether to compute accuracy and diagnostics if that takes further fits.
    texts : mapping from item id to str, optional
        Texts or names of items, as in `find_schools`.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from likeminds import ThreeLevelRanker, make_schools, write_report
    >>> crowd = make_schools(40, 30, 100, 6, 2, contested=0.5, random_state=0).annotations
    >>> ranker = ThreeLevelRanker().fit(crowd)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(ranker, f"{folder}/crowd.html", crowd, diagnostics=False)
    ...     "They form 2 schools of thought" in page.read_text()
    True
    """
    target = place_for(path, "the report")
    require_matplotlib()
    rankers = _rankers_of(model)
    facts = {
        attribute: ReportFacts.gather(
            ranker,
            _about(attribute, annotations, len(rankers)),
            _about(attribute, held_out, len(rankers)),
            images,
            n_schools=n_schools,
            judge_users=diagnostics,
            texts=texts,
        )
        for attribute, ranker in rankers.items()
    }
    if len(facts) > 1:
        content = _page_of_many(facts, title)
    else:
        ((attribute, only),) = facts.items()
        about = title or (None if attribute == NAMELESS else str(attribute))
        content = page(finding(only), _first(only), _parts(only), kicker=about, footer=_FOOTER)
    write_whole(target, content.encode())
    return target


def _rankers_of(model: ReadableModel | Mapping[Hashable, Ranker]) -> dict[Hashable, Ranker]:
    if not isinstance(model, ReadableModel | Mapping):
        raise TypeError(f"Expected a model of this library, but got {type(model).__name__}.")
    rankers: Mapping[Any, Ranker] = model.rankers_ if isinstance(model, ReadableModel) else model
    if not rankers:
        raise ValueError("The model has no attributes: there is nothing to report.")
    return dict(rankers)


def _about(
    attribute: Hashable, annotations: Annotations | None, n_rankers: int
) -> Annotations | None:
    """Return the annotations of one attribute."""
    if annotations is None or annotations.attribute_ids is None:
        if annotations is not None and n_rankers > 1:
            raise ValueError(
                f"The model has {n_rankers} attributes, but the annotations have none: "
                "give them attributes=."
            )
        return annotations
    if attribute != NAMELESS:
        return annotations.of_attribute(attribute)
    if annotations.n_attributes > 1:
        raise ValueError(
            f"The ranker is about one attribute, but the annotations are about "
            f"{annotations.n_attributes}: {listing(annotations.attribute_ids)}. Choose one with "
            "annotations.of_attribute(...)."
        )
    return annotations.of_attribute(annotations.attribute_ids[0])


def _first(facts: ReportFacts) -> list[Block]:
    return [
        Paragraph(summary(facts), "lead"),
        Numbers(numbers(facts)),
        *_first_picture(facts),
    ]


def _first_picture(facts: ReportFacts) -> list[PagePicture]:
    """Return the picture to see first: the map of users, or the shares of items."""
    found = facts.schools
    if found is None or not (found.axes or found.soft_labels):
        return []
    if found.axes:
        draw = partial(plots.people_map, found, items=facts.items, images=facts.images)
        alt = "Map of people by school of thought"
        caption = "Each dot is a person; people near each other rank the items alike."
        if facts.are_pictures_telling(found.axes[0].strength):
            most = facts.verb.most(many=True)
            caption += f" Pictures: what people at this end {most}, unlike others."
        if found.loner.any():
            caption += " Rings: on their own."
    else:
        draw = partial(plots.item_shares, found)
        caption = "Each dot is an item; its line holds the true share with a probability of 90 %."
        alt = "Share of people that say yes to each item, in order"
    return [picture(draw(), alt, caption, narrow=draw(width=PHONE_WIDTH))]


def _page_of_many(facts: Mapping[Hashable, ReportFacts], title: str | None) -> str:
    rows = [_overview_row(attribute, found) for attribute, found in facts.items()]
    header = ["attribute", "users", "schools", "AUC, own", "AUC, consensus", "to check"]
    parts = [
        Section(
            str(attribute),
            [Paragraph(finding(found), strong=True), *_first(found), *_parts(found)],
            anchor=f"part-{n}",
        )
        for n, (attribute, found) in enumerate(facts.items(), start=1)
    ]
    first: list[Block] = [Paragraph(_of_all(facts), "lead"), ReportTable.filled(header, rows)]
    name = title or f"What people make of {listing(list(facts))}"
    return page(name, first, parts, footer=_FOOTER)


def _of_all(facts: Mapping[Hashable, ReportFacts]) -> str:
    counts = {str(name): len(f.schools) for name, f in facts.items() if f.schools is not None}
    divided = [name for name, n_schools in counts.items() if n_schools]
    united = [name for name, n_schools in counts.items() if not n_schools]
    what = f"The model is about {counted(len(facts), 'attribute')}."
    if divided:
        what += f" People are divided into schools of thought on {listing(divided)}."
    if united:
        what += f" They form no separate schools on {listing(united)}."
    gains = {
        str(name): found[2].mean for name, f in facts.items() if (found := f.accuracy()) is not None
    }
    if gains:
        most = max(gains, key=lambda name: gains[name])
        what += f" Knowing who it is helps most on {most}: {signed(gains[most])} in AUC."
    return what


def _overview_row(attribute: Hashable, facts: ReportFacts) -> list[str]:
    accuracy = facts.accuracy()
    counts = None if facts.diagnostics is None else facts.diagnostics.counts
    return [
        str(attribute),
        f"{facts.n_users:,}",
        "" if facts.schools is None else str(len(facts.schools) or "none"),
        "" if accuracy is None else interval(accuracy[0]),
        "" if accuracy is None else interval(accuracy[1]),
        "" if counts is None else str(sum(counts[v] for v in ("reversed", "constant", "random"))),
    ]


def _parts(facts: ReportFacts) -> list[Section]:
    return [section for make in _SECTIONS if (section := make(facts)) is not None]
