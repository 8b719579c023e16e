"""``likeminds agreement``: coefficients of inter-annotator agreement."""

from typing import Annotated

from likeminds.cli._options import ComparisonOptions, LabelOptions, Seed, Table, option
from likeminds.cli._output import Output, write_rows
from likeminds.cli.main import command


@command(
    "Learn",
    "likeminds simulate --n-users 24 --out crowd",
    "likeminds agreement --annotations crowd/annotations.csv",
)
def agreement(
    output: Output,
    *,
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
    from likeminds.cli._models import about
    from likeminds.metrics.inter_annotator_agreement import agreement as agreement_of

    output.refuse_two_results(out)
    annotations = read_labels(output, data, pairs).annotations
    parts = {"": annotations}
    if annotations.attribute_ids is not None:
        parts = {str(name): part for name, part in annotations.by_attribute().items()}
    found = {
        name: agreement_of(part, n_bootstrap=n_bootstrap, random_state=seed)
        for name, part in parts.items()
    }
    rows = {name: one.to_arrow().to_pylist() for name, one in found.items()}
    output.json({"coefficients": [about(name) | row for name in rows for row in rows[name]]})
    if out is not None:
        by_user = {name: one.by_user().to_pylist() for name, one in found.items()}
        write_rows([about(name) | row for name in by_user for row in by_user[name]], out)
    if out != "-":
        for name, one in found.items():
            output.table(": ".join(filter(None, [name, one._headline()])), rows[name])
            output.show(one.reading())
        output.hint(
            "Low agreement is noise, or disagreement that is predictable: likeminds compare "
            "tells them apart. --out FILE has each annotator's mean kappa."
        )
