"""``likeminds agreement`` and ``diagnose``: how far annotators agree, and which ones to check."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likeminds.cli._options import ComparisonOptions, LabelOptions, Model, Seed, Table, option
from likeminds.cli._output import Output, write_rows
from likeminds.cli.main import DATA, FIT, command

if TYPE_CHECKING:
    from likeminds.data.annotations import Annotations
    from likeminds.diagnostics import Diagnostics
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
    model: Annotated[
        Path | None,
        typer.Argument(help="A model that was saved with its labels, instead of --annotations."),
    ] = None,
    data: LabelOptions,
    pairs: ComparisonOptions,
    n_bootstrap: Annotated[
        int, option("Resampled sets of items for the 95 % intervals; 0 for none.", min=0)
    ] = 1000,
    seed: Seed = 0,
    out: Table = None,
) -> None:
    """Print Krippendorff's alpha, Fleiss' and Cohen's kappa and ICC of each attribute.

    Intervals are bootstrapped over items. --out has the mean of Cohen's kappa of each user with
    the others. A low coefficient means noise, or disagreement that is predictable: compare tells
    them apart, by how well a ranking per user predicts held-out labels.
    """
    from likeminds.cli._labels import read_labels
    from likeminds.cli._models import by_attribute, joined
    from likeminds.metrics.inter_annotator_agreement import agreement as agreement_of
    from likeminds.storage.models import load

    output.refuse_two_results(out)
    if model is not None:
        parts = _labels_by_attribute(output, load(model), data, pairs)
    else:
        parts = by_attribute(read_labels(output, data, pairs).annotations)
    found = {
        name: agreement_of(part, n_bootstrap=n_bootstrap, random_state=seed)
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
            "Low agreement is noise, or disagreement that is predictable: likeminds compare "
            "tells them apart. --out FILE has each annotator's mean kappa."
        )


@command("Learn", DATA, FIT, "likeminds diagnose power.likeminds --out annotators.csv")
def diagnose(
    output: Output,
    *,
    model: Model,
    data: LabelOptions,
    pairs: ComparisonOptions,
    out: Table = None,
) -> None:
    """Tell annotators who answer at random from those who follow a ranking of their own.

    Each annotator gets a verdict, by labels that five more fits for each attribute hold out.
    --out has a row per annotator, with AUCs, intervals and p-values. The labels are those of the
    model, or --annotations where it was saved without them.
    """
    from likeminds.cli._models import about, joined
    from likeminds.diagnostics import MEANINGS, UNUSUAL
    from likeminds.storage.models import load

    output.refuse_two_results(out)
    loaded = load(model)
    found = diagnose_annotators(loaded, _labels_by_attribute(output, loaded, data, pairs))
    tables = {name: one.to_arrow().to_pylist() for name, one in found.items()}
    results = [
        about(name)
        | {
            "counts": one.counts,
            "severity": None if one.severity is None else one.severity.to_dict(),
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
            output.show(f"... and {len(unusual) - _MOST_SHOWN:,} more: --out FILE has all.")
        if one.severity is not None:
            output.show(f"Severity: {one.severity}.")
    if out is not None:
        output.hint(f"Written: {out}")


def diagnose_annotators(
    model: "Ranker | AttributeModel", labels: "dict[str, Annotations]"
) -> "dict[str, Diagnostics]":
    """Return the diagnostics of annotators by attribute."""
    from likeminds.diagnostics import diagnose as diagnostics_of

    return {name: diagnostics_of(model._ranker_of(name), part) for name, part in labels.items()}


def _labels_by_attribute(
    output: Output,
    model: "Ranker | AttributeModel",
    data: LabelOptions,
    pairs: ComparisonOptions,
) -> "dict[str, Annotations]":
    """Return the labels of the options, by default those of the model, by attribute."""
    from likeminds.cli._labels import read_labels
    from likeminds.cli._models import parts_of, rankers_of, training_labels

    if data.annotations or pairs.comparisons or pairs.export:
        return parts_of(read_labels(output, data, pairs, model=model).annotations, model)
    return training_labels(rankers_of(model))
