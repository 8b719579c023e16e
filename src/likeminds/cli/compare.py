"""``likeminds compare``: rankers side by side on one's own data."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from likeminds.cli._options import Folds, Jobs, LabelOptions, Seed, option
from likeminds.cli._output import Output
from likeminds.cli.main import command

if TYPE_CHECKING:
    from likeminds.comparing.comparison import Comparison


@command(
    "Learn",
    "likeminds simulate --n-users 40 --out crowd",
    "likeminds compare --annotations crowd/annotations.csv --features crowd/features.csv "
    "--ranker hierarchical --ranker RidgeToConsensus --ranker consensus --repeats 2",
)
def compare(
    output: Output,
    *,
    data: LabelOptions,
    ranker: Annotated[
        list[str] | None,
        option(
            "A ranker to compare, by name, or all; may be repeated. By default all; with more "
            "than 20,000 labels, those without long searches."
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        option("How many splits. By default 5; with more than 20,000 labels, 2.", min=1),
    ] = None,
    holdout: Annotated[float, option("The share of labels held out.")] = 0.15,
    folder: Annotated[
        Path | None, option("Keeps finished fits, so an interrupted run continues.")
    ] = None,
    out: Annotated[
        Path | None,
        option("Write the comparison: .md, .csv, .parquet, .arrow or .json.", "--out", "-o"),
    ] = None,
    plot: Annotated[Path | None, option("Draw a box for each ranker: .png, .svg or .pdf.")] = None,
    folds: Folds = 5,
    jobs: Jobs = -1,
    seed: Seed = 0,
) -> None:
    """Compare rankers by the paper's protocol: the same splits for all, each tuned inside."""
    from likeminds.cli._labels import read_labels
    from likeminds.cli._models import by_attribute
    from likeminds.comparing.comparison import ALL, compare_each
    from likeminds.comparing.runs import MANY_LABELS
    from likeminds.rankers.registry import ranker_called

    _refuse_bad_places(out, plot, folder)
    annotations = read_labels(output, data).annotations
    output.show(str(annotations))
    options: dict[str, Any] = {
        "repeats": repeats or (5 if len(annotations) <= MANY_LABELS else 2),
        "test_size": holdout,
        "n_folds": folds,
        "n_jobs": jobs,
    }
    options |= {"folder": folder, "random_state": seed, "progress": not output.quiet}
    named: Any = ALL if ranker else None
    if ranker and ranker != [ALL]:
        named = dict(ranker_called(name, folds, seed) for name in ranker)
    found = compare_each(by_attribute(annotations), named, **options)
    output.json({"comparisons": [_as_result(name, one) for name, one in found.items()]})
    for name, one in found.items():
        output.show("", head=f"\n{name}" if name else "")
        if not output.as_json:
            output.console.print(str(one), soft_wrap=True)
    if out is not None:
        _write(found, out)
        output.hint(f"\nWritten: {out}")
    if plot is not None:
        _draw(found, plot)
        output.hint(f"\nDrawn: {plot}")


def _refuse_bad_places(out: Path | None, plot: Path | None, folder: Path | None) -> None:
    """Refuse places that cannot be written to before any fit."""
    from likeminds._util.atomic_files import folder_for, place_for
    from likeminds.data.sources import as_written
    from likeminds.plots.figures import new_figure

    if folder is not None:
        folder_for(folder, "the results")
    if out is not None and out.suffix == ".md":
        place_for(out, "the comparison")
    elif out is not None:
        as_written(out)
    if plot is not None:
        supported = new_figure(1, 1, shown=False).canvas.get_supported_filetypes()
        if plot.suffix.lower().removeprefix(".") not in supported:
            endings = ", ".join(f".{ending}" for ending in sorted(supported))
            raise ValueError(
                f"{plot} is not a picture that can be drawn: end its name in {endings}."
            )
        place_for(plot, "the picture")


def _as_result(name: str, comparison: "Comparison") -> dict[str, Any]:
    return {
        "attribute": name or None,
        "measure": comparison.measure,
        "rankers": comparison.summary().to_pylist(),
        "paired": comparison.paired().to_pylist(),
        "people": len(comparison.users),
        "test_size": comparison.test_size,
    }


def _write(found: "dict[str, Comparison]", out: Path) -> None:
    import pyarrow as pa

    from likeminds._util.atomic_files import write_whole
    from likeminds.data.sources import write_table

    if out.suffix == ".md":
        pages = [
            f"## {name}\n\n{one.to_markdown()}" if name else one.to_markdown()
            for name, one in found.items()
        ]
        write_whole(out, ("\n\n".join(pages) + "\n").encode())
        return
    tables = []
    for name, one in found.items():
        table = one.summary()
        named = table.add_column(0, "attribute", pa.array([name] * table.num_rows))
        tables.append(named if name else table)
    write_table(pa.concat_tables(tables), out)


def _draw(found: "dict[str, Comparison]", plot: Path) -> None:
    from likeminds._util.atomic_files import write_whole
    from likeminds.plots.figures import new_figure, take_names_as_text

    figure = new_figure(8, 4 * len(found), shown=False)
    all_axes = figure.subplots(len(found), squeeze=False)[:, 0]
    for axes, (name, one) in zip(all_axes, found.items(), strict=True):
        one.boxplot(axes)
        if name:
            axes.set_title(f"{name}: {axes.get_title()}")
    content = io.BytesIO()
    take_names_as_text(figure)
    figure.savefig(content, format=plot.suffix.lower().removeprefix("."))
    write_whole(plot, content.getvalue())
