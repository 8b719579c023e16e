"""Options that several commands share, each declared once.

The help lists options without a panel first: most calls need them.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from likeminds.data.label_parsing import LabelReading
    from likeminds.rankers.capabilities import ReadableModel

_TABLE = (
    "a .csv, .parquet, .arrow, .npy or .npz file, - (CSV on standard input), or a database and a "
    'query: "sqlite:///FILE SELECT ..." (or duckdb:///, postgresql://)'
)
SETTINGS = "Settings"


def option(
    description: str, *names: str, default: Any = ..., panel: str | None = None, **limits: Any
) -> Any:
    """Return an option with its help text, in a panel of the help; required without a default."""
    return typer.Option(default, *names, help=description, rich_help_panel=panel, **limits)


def _field(description: str, *names: str, default: Any = None, **others: Any) -> Any:
    """Return an option as a field of a dataclass of shared options."""
    declared = option(description, *names, default=default, **others)
    return field(default=default, metadata={"option": declared})


_column = partial(_field, panel="Columns (found by their usual names)")
_pair = partial(_field, panel="Comparisons and exports")
_large = partial(_field, panel="Labels that do not fit in memory")
_cluster = partial(_field, panel="On a cluster")
_output = partial(_field, panel="Output")


Model = Annotated[Path, typer.Argument(help="The model, written by fit.", show_default=False)]
Attribute = Annotated[str | None, option("The attribute, if the model has several.", "--attribute")]
Top = Annotated[int, option("Number of rows to show.", "--top", "-k", min=1)]
Like = Annotated[list[str] | None, option("An attribute the items should have; may be repeated.")]
NotLike = Annotated[
    list[str] | None, option("An attribute the items should not have; may be repeated.", "--not")
]
Without = Annotated[
    str | None,
    option(
        "Leave out annotators with these verdicts of diagnose: constant,random. This takes six "
        "more fits for each attribute.",
        metavar="VERDICTS",
    ),
]
NSchools = Annotated[int | None, option("The number of schools; by default, estimated.", min=1)]
Seed = Annotated[int, option("Makes random draws reproducible.", panel=SETTINGS)]
Jobs = Annotated[int, option("Number of parallel fits; -1 is one for each core.", panel=SETTINGS)]
Folds = Annotated[int, option("Folds of the search for hyperparameters.", panel=SETTINGS, min=2)]
Table = Annotated[
    str | None,
    option(
        "Write the table to a file, by its ending: .csv, .parquet, .arrow or .json; - is CSV on "
        "standard output.",
        "--out",
        "-o",
    ),
]
Texts = Annotated[
    str | None,
    option(
        "Texts of items to show: a table with a column of item ids and one of texts.",
        "--texts",
    ),
]


@dataclass(frozen=True)
class OutputOptions:
    """Options of output, which every command has."""

    as_json: bool = _output("Print the result as JSON, and nothing else.", "--json", default=False)
    quiet: bool = _output(
        "Print only the result, without progress and hints.", "--quiet", "-q", default=False
    )
    debug: bool = _output("Show the traceback of an error.", "--debug", default=False)


@dataclass(frozen=True)
class ItemOptions:
    """Items and their features."""

    features: str | None = _field(
        "One row of numbers per item, with the item's id: a file or query as for annotations.",
        "--features",
        "-f",
    )
    images: Path | None = _field(
        "A folder with a picture of each item, instead of features: features of shapes (GIST) and "
        "colours are computed."
    )
    item_name: str | None = _column(
        "The column of --features with names of items, shown next to their ids; by default, "
        "title or name."
    )

    def refuse_two_sources(self) -> None:
        """Raise ValueError for features together with pictures."""
        if self.features is not None and self.images is not None:
            raise ValueError("Give --features or --images, not both.")


@dataclass(frozen=True)
class LabelTableOptions:
    """A table of labels, its columns, and the reading of labels."""

    annotations: str | None = _field(
        f"Labels, one row for each, with user and item: {_TABLE}.", "--annotations", "-a"
    )
    user_features: str | None = _field(
        "Covariates of users (age, country): one row per user, with the user's id; a file or "
        "query as for annotations."
    )
    user: str | None = _column("The user: user, annotator, ...", "--user-column")
    item: str | None = _column("The item: item, image, ...", "--item-column")
    label: str | None = _column("The label: label, rating, chosen, ...", "--label-column")
    attribute: str | None = _column(
        "The attribute of a label, if there are several: attribute.", "--attribute-column"
    )
    choice_set: str | None = _column(
        "The choice set, items shown together: choice_set, group, chid.", "--choice-set-column"
    )
    alternative: str | None = _column(
        "The alternative of a row in its choice set: alternative, alt. Each alternative but the "
        "base gets an alternative-specific constant.",
        "--alternative-column",
    )
    alternatives: str | None = _column(
        "For tables with one row per choice and columns such as price.car, price.train: the "
        "alternatives (car,train), or the values of the label with their alternatives "
        "(1=car,2=train). By default, the alternatives in the label."
    )
    base: str | None = _column(
        "The base alternative of the constants; by default, the first in sorted order."
    )
    constants: bool = _column(
        "Whether alternatives get constants.", "--constants/--no-constants", default=True
    )
    availability: str | None = _column(
        "Whether an alternative was available (1 or 0): availability, av.", "--availability-column"
    )
    drop: list[str] | None = _column(
        "A column to leave out, of labels or features; may be repeated."
    )
    weight: str | None = _column("The weight of a row: weight, sample_weight.", "--weight-column")
    positive: str | None = _column("The positive one of two labels.")
    threshold: str | None = _column(
        "Ratings above this number are positive; median is each user's own median."
    )
    grades: str | None = _column(
        "Grades that are words, from worst to best: bad,fair,good. More than two numbers are "
        "read as grades by default."
    )
    nominal: bool = _column(
        "Labels are classes without an order: toxic, spam, fine.", "--nominal", default=False
    )
    duplicates: str | None = _column(
        "If a user labels an item twice: keep both labels, merge equal labels and add their "
        "weights (weights), or stop (error)."
    )

    @property
    def columns(self) -> dict[str, str | None]:
        """The names of the columns by role; None for columns to be found by their usual names."""
        from likeminds.data.column_roles import LABEL_ROLES

        return {role: getattr(self, role) for role in LABEL_ROLES}

    @property
    def wide_alternatives(self) -> dict[Hashable, Hashable] | None:
        """The alternatives of a table with one row per choice, by the values of the label."""
        if self.alternatives is None:
            return None
        pairs = [one.strip().rpartition("=") for one in self.alternatives.split(",")]
        return {written or name: name for written, _, name in pairs}

    def label_reading(self, model: "ReadableModel | None" = None) -> dict[str, Any]:
        """Return the options for the reading of labels; by default, those of the model."""
        readings: set[LabelReading | None] = set()
        if model is not None:  # the reading of all classes, or the one that all rankers share
            by_ranker = {one.label_reading_ for one in model.rankers_.values()}
            readings = {model.label_reading_} if model.label_reading_ else by_ranker
        options: dict[str, Any] = {"reading": readings.pop() if len(readings) == 1 else None}
        options |= {
            name: value
            for name in ("positive", "threshold", "duplicates")
            if (value := getattr(self, name)) is not None
        }
        if self.nominal:
            options["nominal"] = True
        if self.threshold not in {None, "median"}:
            try:
                options["threshold"] = float(str(self.threshold))
            except ValueError:
                message = f"--threshold must be a number or median, not {self.threshold!r}."
                raise ValueError(message) from None
        if self.grades is not None:
            options["grades"] = [word.strip() for word in self.grades.split(",")]
        return options


@dataclass(frozen=True)
class LabelOptions(ItemOptions, LabelTableOptions):
    """Labels and the items they are about."""


@dataclass(frozen=True)
class ComparisonOptions:
    """Comparisons of two items, and exports of labelling tools."""

    comparisons: str | None = _field(
        "Comparisons, one row for each, with user, preferred and other item: a table as for "
        "--annotations, which may be given, too."
    )
    export: tuple[str, str] | None = _field(
        "An export of a labelling or survey tool instead of tables: label-studio, argilla, "
        "prodigy, crowd-kit, lewidi, polis (a folder), preferences, arena, sawtooth or qualtrics; "
        "and its file.",
        "--from",
        metavar="TOOL FILE",
    )
    of_attribute: str | None = _pair(
        "With --from: the attribute to select, or the category of arena votes.", "--attribute"
    )
    winner: str | None = _pair("The preferred item: winner, chosen.", "--winner-column")
    loser: str | None = _pair("The other item: loser, rejected.", "--loser-column")
    tie: str | None = _pair("Whether neither was preferred: tie, draw.", "--tie-column")
    strength: str | None = _pair("The weight of a comparison: strength.", "--strength-column")
    tie_model: Literal["davidson", "half"] = _pair(
        "The model of ties: a learned probability (Davidson), or half a win of each item.",
        "--ties",
        default="davidson",
    )


NO_COMPARISONS = ComparisonOptions()


@dataclass(frozen=True)
class LargeFitOptions:
    """Labels that are larger than memory, on disk or on the workers of a cluster."""

    memory: str | None = _large(
        "Read labels in pieces, with at most this much memory (4GB, 512MiB): --annotations (or "
        "--comparisons) is a folder of Parquet or CSV files. The model is saved without labels."
    )
    scratch: Path | None = _large(
        "With --memory: a folder for labels grouped by user, which the next fit reuses. By "
        "default, it is next to the model, and removed after the fit."
    )
    dask: str | None = _cluster(
        "Fit on a Dask cluster: the address of its scheduler (tcp://host:8786), or local:4 for "
        "four processes on this machine. --annotations is a folder of Parquet or CSV files "
        "that all workers can read. The model is saved without labels.",
        metavar="ADDRESS",
    )
    checkpoint: Path | None = _cluster(
        "With --dask: a folder for checkpoints of the fit, which all workers can access."
    )
    resume: bool = _cluster("Resume the fit in --checkpoint.", "--resume", default=False)
    user_files: bool = _cluster(
        "With --dask: workers write the parameters of their users. The model is a folder, with "
        "a file for the users of each shard.",
        "--user-files",
        default=False,
    )

    @property
    def requested(self) -> bool:
        """Whether the fit is out of core; contradictory options raise ValueError."""
        if self.dask is not None and self.memory is not None:
            raise ValueError("Give --dask or --memory, not both.")
        if self.dask is None and (self.checkpoint or self.resume or self.user_files):
            raise ValueError(
                "--checkpoint, --resume and --user-files are for fits on a cluster: give its "
                "address with --dask."
            )
        return self.dask is not None or self.memory is not None
