"""Options that several commands have in common, each declared once.

Options without a panel come first in the help: they are those that most calls need.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from likeminds.rankers.capabilities import ReadableModel

_TABLE = (
    "a .csv, .parquet, .arrow, .npy or .npz file, - (CSV on standard input), or a database and a "
    'query: "sqlite:///FILE SELECT ..." (or duckdb:///, postgresql://)'
)
SETTINGS = "Settings"


def option(description: str, *names: str, panel: str | None = None, **limits: Any) -> Any:
    """Return an option with its help text, in a panel of the help."""
    return typer.Option(*names, help=description, rich_help_panel=panel, **limits)


_column = partial(option, panel="Columns (found by their usual names)")
_pair = partial(option, panel="Comparisons and exports")
_large = partial(option, panel="Labels that do not fit in memory")
_cluster = partial(option, panel="On a cluster")
_output = partial(option, panel="Output")


Model = Annotated[Path, typer.Argument(help="The model, which fit wrote.", show_default=False)]
Attribute = Annotated[
    str | None, option("The attribute, where the model has several.", "--attribute")
]
Top = Annotated[int, option("How many items.", "--top", "-k", min=1)]
Like = Annotated[list[str] | None, option("An attribute the items should have; may be repeated.")]
NotLike = Annotated[
    list[str] | None, option("An attribute the items should not have; may be repeated.", "--not")
]
Without = Annotated[
    str | None,
    option(
        "Leave out annotators by verdict, as diagnose finds it: constant,random. This takes six "
        "more fits for each attribute.",
        metavar="VERDICTS",
    ),
]
NSchools = Annotated[int | None, option("The number of schools; by default estimated.", min=1)]
Seed = Annotated[int, option("Makes random draws reproducible.", panel=SETTINGS)]
Jobs = Annotated[
    int, option("How many fits run at the same time; -1 is one for each core.", panel=SETTINGS)
]
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
        "Texts of items: a table with a column of item ids and one of texts. They are shown, and "
        "fit learns from their words. With --from, the same file once more means its texts.",
        "--texts",
    ),
]


@dataclass(frozen=True)
class OutputOptions:
    """Options of output that every command has."""

    as_json: Annotated[bool, _output("Print the result as JSON, and nothing else.", "--json")] = (
        False
    )
    quiet: Annotated[
        bool, _output("No progress and no hints, only the result.", "--quiet", "-q")
    ] = False
    debug: Annotated[bool, _output("Show the traceback of an error.", "--debug")] = False


@dataclass(frozen=True)
class ItemOptions:
    """Items and their features."""

    features: Annotated[
        str | None,
        option(
            "One row of numbers per item, with the item's id: a file or query as for annotations.",
            "--features",
            "-f",
        ),
    ] = None
    images: Annotated[
        Path | None,
        option(
            "A folder with a picture of each item, instead of features: shapes (GIST) and colours "
            "are computed from them."
        ),
    ] = None
    item_name: Annotated[
        str | None,
        _column(
            "The column of --features with names of items, shown next to their ids: by default "
            "title or name."
        ),
    ] = None

    def refuse_two_sources(self) -> None:
        """Refuse features together with pictures."""
        if self.features is not None and self.images is not None:
            raise ValueError("Give --features or --images, not both.")


@dataclass(frozen=True)
class LabelTableOptions:
    """A table of labels: where it is, its columns, and which labels are positive."""

    annotations: Annotated[
        str | None,
        option(f"Who gave which label to which item: {_TABLE}.", "--annotations", "-a"),
    ] = None
    user_features: Annotated[
        str | None,
        option(
            "Covariates of users (age, country): one row per user, with the user's id; a file or "
            "query as for annotations."
        ),
    ] = None
    user: Annotated[str | None, _column("The user: user, annotator, ...", "--user-column")] = None
    item: Annotated[str | None, _column("The item: item, image, ...", "--item-column")] = None
    label: Annotated[
        str | None,
        _column("The label: label, rating, chosen, ...", "--label-column"),
    ] = None
    attribute: Annotated[
        str | None,
        _column(
            "The attribute that a label is about, where there are several.", "--attribute-column"
        ),
    ] = None
    choice_set: Annotated[
        str | None,
        _column("Items that were shown together: choice_set, group, chid.", "--choice-set-column"),
    ] = None
    alternative: Annotated[
        str | None,
        _column(
            "The alternative of a choice set that a row is about: alternative, alt. Each but the "
            "base gets an alternative-specific constant.",
            "--alternative-column",
        ),
    ] = None
    base: Annotated[
        str | None,
        _column("The base alternative of the constants; by default the first in sorted order."),
    ] = None
    constants: Annotated[
        bool,
        _column("Whether alternatives get constants.", "--constants/--no-constants"),
    ] = True
    availability: Annotated[
        str | None,
        _column(
            "Whether an alternative was available (1 or 0): availability, av.",
            "--availability-column",
        ),
    ] = None
    weight: Annotated[str | None, _column("How much a row counts.", "--weight-column")] = None
    positive: Annotated[str | None, _column("Which of two labels is the positive one.")] = None
    threshold: Annotated[
        str | None,
        _column("Ratings above this number are positive; median is that of each user."),
    ] = None
    grades: Annotated[
        str | None,
        _column(
            "Grades that are words, from worst to best: bad,fair,good. More than two numbers are "
            "grades by themselves."
        ),
    ] = None
    duplicates: Annotated[
        str | None,
        _column(
            "If a user labels an item twice: keep counts both labels, weights makes one row of "
            "equal ones, error refuses them."
        ),
    ] = None

    @property
    def columns(self) -> dict[str, str | None]:
        """The names of the columns by role; None where they are to be found."""
        from likeminds.data.column_roles import LABEL_ROLES

        return {role: getattr(self, role) for role in LABEL_ROLES}

    def label_reading(self, model: "ReadableModel | None" = None) -> dict[str, Any]:
        """Return the options of how labels are read; by default as those of the model."""
        readings = set()
        if model is not None:
            readings = {ranker.label_reading_ for ranker in model.rankers_.values()}
        options: dict[str, Any] = {"reading": readings.pop() if len(readings) == 1 else None}
        options |= {
            name: value
            for name in ("positive", "threshold", "duplicates")
            if (value := getattr(self, name)) is not None
        }
        if self.threshold not in {None, "median"}:
            try:
                options["threshold"] = float(str(self.threshold))
            except ValueError:
                message = f"--threshold is a number or median, not {self.threshold!r}."
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

    comparisons: Annotated[
        str | None,
        option(
            "Who preferred which item to which: a table as for annotations, instead of or in "
            "addition to them."
        ),
    ] = None
    export: Annotated[
        tuple[str, str] | None,
        option(
            "An export of a labelling tool instead of tables: label-studio, argilla, prodigy, "
            "crowd-kit, lewidi, polis (a folder), preferences or arena, and its file.",
            "--from",
            metavar="TOOL FILE",
        ),
    ] = None
    of_attribute: Annotated[
        str | None,
        _pair("With --from: the attribute, or the category of an arena's votes.", "--attribute"),
    ] = None
    winner: Annotated[
        str | None,
        _pair("The preferred item: winner, chosen.", "--winner-column"),
    ] = None
    loser: Annotated[str | None, _pair("The other item: loser, rejected.", "--loser-column")] = None
    tie: Annotated[
        str | None,
        _pair("Whether neither was preferred: tie, draw.", "--tie-column"),
    ] = None
    strength: Annotated[str | None, _pair("How much a comparison counts.", "--strength-column")] = (
        None
    )
    tie_model: Annotated[
        Literal["davidson", "half"],
        _pair(
            "How ties count: with a learned probability (Davidson), or as half a win of each.",
            "--ties",
        ),
    ] = "davidson"


NO_COMPARISONS = ComparisonOptions()


@dataclass(frozen=True)
class LargeFitOptions:
    """Labels that are larger than memory, on disk or on the workers of a cluster."""

    memory: Annotated[
        str | None,
        _large(
            "Read labels in pieces: --annotations is a folder of Parquet or CSV files, and reading "
            "takes at most so much memory: 4GB, 512MiB. The model keeps no labels."
        ),
    ] = None
    scratch: Annotated[
        Path | None,
        _large(
            "With --memory: a folder that keeps labels grouped by user for the next fit. By "
            "default next to the model, and removed once that is written."
        ),
    ] = None
    dask: Annotated[
        str | None,
        _cluster(
            "Fit on a Dask cluster: the address of its scheduler (tcp://host:8786), or local:4 for "
            "four processes on this machine. --annotations is a folder of Parquet or CSV files "
            "that all workers see. The model keeps no labels.",
            metavar="ADDRESS",
        ),
    ] = None
    checkpoint: Annotated[
        Path | None,
        _cluster("With --dask: a folder that all workers see, for checkpoints of the fit."),
    ] = None
    resume: Annotated[bool, _cluster("Resume the fit in --checkpoint.", "--resume")] = False
    people_apart: Annotated[
        bool,
        _cluster(
            "With --dask: workers write the parameters of their users. The model is a folder, with "
            "a file for the users of each shard.",
            "--people-apart",
        ),
    ] = False

    @property
    def requested(self) -> bool:
        """Whether labels are not read into memory; contradictory options raise ValueError."""
        if self.dask is not None and self.memory is not None:
            raise ValueError("Give --dask or --memory, not both.")
        if self.dask is None and (self.checkpoint or self.resume or self.people_apart):
            raise ValueError(
                "--checkpoint, --resume and --people-apart are for fits on a cluster: say --dask "
                "where."
            )
        return self.dask is not None or self.memory is not None
