"""``likeminds agreement`` and ``diagnose``: coefficients of agreement, annotators to check."""

from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

import likeminds
from likeminds._util.lazy_imports import np
from likeminds.cli._labels import read_labels
from likeminds.cli._models import (
    about,
    by_attribute,
    diagnose_annotators,
    joined,
    parts_of,
    rankers_of,
    training_labels,
)
from likeminds.cli._options import ComparisonOptions, LabelOptions, Model, Seed, Table, option
from likeminds.cli._output import Output, write_rows
from likeminds.cli.main import DATA, FIT, command

if TYPE_CHECKING:
    from likeminds._util.array_types import IdArray
    from likeminds.data.annotations import Annotations
    from likeminds.rankers.multi_attribute import AttributeModel
    from likeminds.rankers.ranker import Ranker

# Annotators to check that a terminal shows, and the columns of their table.
_MOST_SHOWN = 20
_COLUMNS = ("user", "verdict", "labels", "positive_share", "consensus_auc", "own_auc")


@command(
    "Learn",
    "likeminds simulate --n-users 24 --out crowd",
    "likeminds agreement --annotations crowd/annotations.csv",
)
def agreement(
    output: Output,
    *,
    model: Path | None = typer.Argument(
        help="A model that was saved with its labels, instead of --annotations.", default=None
    ),
    data: LabelOptions,
    pairs: ComparisonOptions,
    n_bootstrap: int = option(
        "Bootstrap samples for the 95 % intervals; 0 for no intervals.", min=0, default=1000
    ),
    seed: Seed = 0,
    out: Table = None,
) -> None:
    """Print Krippendorff's alpha, Fleiss' and Cohen's kappa and ICC of each attribute.

    Intervals are bootstrapped over items. --out writes each user's mean Cohen's kappa with the
    other users. A low coefficient means noise, or predictable disagreement. `likeminds compare`
    distinguishes them by how well a ranking per user predicts held-out labels.
    """
    output.refuse_two_results(out)
    if model is not None:
        parts = _labels_by_attribute(output, likeminds.load(model), data, pairs)
    else:
        read = read_labels(output, data, pairs).annotations
        parts = {"": read} if read.is_nominal else by_attribute(read)
    found = {
        name: likeminds.agreement(part, n_bootstrap=n_bootstrap, random_state=seed)
        for name, part in parts.items()
    }
    rows = {name: one.to_arrow().to_pylist() for name, one in found.items()}
    output.json({"coefficients": joined(rows)})
    if out is not None:
        write_rows(joined({name: one.by_user().to_pylist() for name, one in found.items()}), out)
    if out != "-":
        for name, one in found.items():
            output.table(": ".join(filter(None, [name, one._headline()])), rows[name])
            output.show(one.reading())
        output.hint(
            "Low agreement is noise, or predictable disagreement: likeminds compare distinguishes "
            "them. --out FILE writes each annotator's mean kappa."
        )


@command("Learn", DATA, FIT, "likeminds diagnose power.likeminds --out annotators.csv")
def diagnose(
    output: Output,
    *,
    model: Model,
    data: LabelOptions,
    pairs: ComparisonOptions,
    seconds: str | None = option(
        "Response times: a table with a user and seconds (lead_time, response_time) in each "
        "row. For fast annotators, the verdict constant needs less evidence. Exports of Label "
        "Studio (--from) have response times already.",
        default=None,
    ),
    out: Table = None,
) -> None:
    """Find annotators who answer at random, or who follow a ranking of their own.

    Held-out labels decide the verdict on each annotator, with five more fits for each attribute.
    The output ends with coefficients of agreement, and whether disagreement is predictable. --out
    writes a row per annotator, with AUCs, intervals, p-values and mean kappa. The labels are those
    of the model, or --annotations if it was saved without them. fit --without leaves annotators
    out.
    """
    from likeminds.diagnostics import MEANINGS, UNUSUAL

    output.refuse_two_results(out)
    loaded = likeminds.load(model)
    times = None if seconds is None else read_seconds(seconds, loaded.users_)
    if times is None and pairs.export is not None:
        times = likeminds.read_export(*pairs.export).seconds
    labels = _labels_by_attribute(output, loaded, data, pairs)
    found = diagnose_annotators(loaded, labels, times)
    tables = {name: one.to_arrow().to_pylist() for name, one in found.items()}
    results = [
        about(name)
        | {
            "counts": one.counts,
            "severity": None if one.severity is None else one.severity.to_dict(),
            "agreement": None if one.agreement is None else one.agreement.to_arrow().to_pylist(),
            "annotators": tables[name],
        }
        for name, one in found.items()
    ]
    output.json({"model": str(model), "diagnostics": results})
    if out is not None:
        write_rows(joined(tables), out)
    if out == "-":
        return
    for name, one in found.items():
        head = f"{name}: " if name else ""
        counts = [
            {"verdict": verdict, "annotators": n, "meaning": MEANINGS[verdict]}
            for verdict, n in one.counts.items()
        ]
        output.table(f"{head}{len(one.users):,} annotators", counts)
        unusual = [row for row in tables[name] if row["verdict"] in UNUSUAL]
        unusual.sort(key=lambda row: UNUSUAL.index(row["verdict"]))
        if unusual:
            shown = [{key: row[key] for key in _COLUMNS} for row in unusual[:_MOST_SHOWN]]
            output.table(f"{head}Annotators to check", shown)
        if len(unusual) > _MOST_SHOWN:
            output.show(f"... and {len(unusual) - _MOST_SHOWN:,} more: --out FILE writes all.")
        if one.severity is not None:
            output.show(f"Severity: {one.severity}.")
        if one.agreement is not None:
            title = f"{head}{one.agreement._headline()}"
            output.table(title, one.agreement.to_arrow().to_pylist())
            output.show(f"{one.agreement.reading()} {one.disagreement()}")
    if out is not None:
        output.hint(f"Written: {out}")


def read_seconds(source: str, users: "IdArray") -> "dict[Hashable, float]":
    """Return the median response time of each user, from a table with a row per label or user."""
    from likeminds.data.column_roles import find_column, id_texts
    from likeminds.data.identifiers import coerce_ids
    from likeminds.data.sources import read_table

    table = read_table(source, id_texts({"user": None}))
    names = {role: find_column(role, table.column_names) for role in ("user", "seconds")}
    missing = [role for role, name in names.items() if name is None]
    if missing:
        raise ValueError(
            f"--seconds needs columns user and seconds (or lead_time, response_time), but {source} "
            f"has {', '.join(table.column_names)}."
        )
    times: dict[Hashable, list[float]] = {}
    for user, seconds in zip(*(table[name].to_pylist() for name in names.values()), strict=True):
        if user is not None and seconds is not None:
            times.setdefault(user, []).append(float(seconds))
    written = coerce_ids(list(times), users, "user").tolist()
    return {u: float(np.median(t)) for u, t in zip(written, times.values(), strict=True)}


def _labels_by_attribute(
    output: Output,
    model: "Ranker | AttributeModel",
    data: LabelOptions,
    pairs: ComparisonOptions,
) -> "dict[str, Annotations]":
    """Return labels by attribute: those of the options, or else those of the model."""
    if data.annotations or pairs.comparisons or pairs.export:
        return parts_of(read_labels(output, data, pairs, model=model).annotations, model)
    return training_labels(rankers_of(model))
