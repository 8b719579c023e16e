"""Build a report and write it atomically."""

from collections.abc import Hashable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from likeminds._util.atomic_files import place_for, write_whole
from likeminds._util.checks import listing
from likeminds._util.result_tables import render
from likeminds._util.text_format import counted
from likeminds.data.annotations import Annotations
from likeminds.plots.figures import require_matplotlib
from likeminds.plots.thumbnails import Images
from likeminds.rankers.capabilities import NAMELESS, ReadableModel
from likeminds.rankers.ranker import Ranker
from likeminds.report import facts as sentences
from likeminds.report import sections
from likeminds.report.facts import ReportFacts


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
    items that all of them like and those that divide users. The accuracy of rankings, diagnostics
    of annotators, and details of the fit follow. Pictures are inlined; the page has no links to
    other resources, and no scripts.

    Parameters
    ----------
    model : ranker, `AttributeModel`, or mapping from attribute to ranker
        The fitted model. Several attributes make one page with a part for each.
    path : path
        The file; an existing one is replaced only once the new one is complete.
    annotations : Annotations, optional
        The training labels of the model (with its attributes, if there are several). By default
        those in the model; without any, the page has neither items nor accuracy.
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
    kicker, heading = None, title or f"Report on {listing(list(facts))}"
    if len(facts) == 1:
        ((attribute, only),) = facts.items()
        kicker = title or (None if attribute == NAMELESS else str(attribute))
        heading = sentences.finding(only)
    content = render(
        "report.html",
        title=heading,
        kicker=kicker,
        parts=facts,
        say=sentences,
        make=sections,
        counted=counted,
        listing=listing,
    )
    write_whole(target, content.encode())
    return target


def _rankers_of(model: ReadableModel | Mapping[Hashable, Ranker]) -> dict[Hashable, Ranker]:
    if not isinstance(model, ReadableModel | Mapping):
        raise TypeError(f"Expected a model of this library, but got {type(model).__name__}.")
    rankers: Mapping[Any, Ranker] = model.rankers_ if isinstance(model, ReadableModel) else model
    if not rankers:
        raise ValueError("The model has no attributes to report: fit it to at least one.")
    return dict(rankers)


def _about(
    attribute: Hashable, annotations: Annotations | None, n_rankers: int
) -> Annotations | None:
    """Return the annotations of one attribute."""
    if annotations is None or annotations.attribute_ids is None:
        if annotations is not None and n_rankers > 1:
            raise ValueError(
                f"The model has {n_rankers} attributes, but the annotations have none: "
                "pass annotations with attributes=."
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
