"""Options that several commands have in common, in groups."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

_TABLE = (
    "a .csv, .parquet, .arrow, .npy or .npz file, - (CSV on standard input), or a database and a "
    'query: "sqlite:///FILE SELECT ..." (or duckdb:///, postgresql://)'
)
_COLUMNS = "Columns (found by their usual names)"
_DATA = "Data"
_CLUSTER = "On a cluster"

Model = Annotated[Path, typer.Argument(help="The model, which fit wrote.", show_default=False)]
Attribute = Annotated[
    str | None, typer.Option("--attribute", help="Which attribute, where there are several.")
]
Seed = Annotated[int, typer.Option(help="Makes what is drawn at random reproducible.")]
Jobs = Annotated[
    int, typer.Option(help="How many fits run at the same time; -1 is one for each core.")
]
Folds = Annotated[
    int, typer.Option(min=2, help="Folds of the search for parameters, where there is one.")
]
Table = Annotated[
    str | None,
    typer.Option(
        "--out",
        "-o",
        help="Write the table to a file, by its ending: .csv, .parquet, .arrow or .json; "
        "- is CSV on standard output.",
    ),
]

Texts = Annotated[
    str | None,
    typer.Option(
        "--texts",
        help="What items say: a table with a column of item ids and one of texts. They are shown, "
        "and fit learns from their words. With --from, the same file once more means its texts.",
        rich_help_panel=_DATA,
    ),
]


@dataclass(frozen=True)
class ItemOptions:
    """Where items and their features are."""

    features: Annotated[
        str | None,
        typer.Option(
            "--features",
            "-f",
            help="One row of numbers per item, with the item's id: "
            "a file or query as for annotations.",
            rich_help_panel=_DATA,
        ),
    ] = None
    images: Annotated[
        Path | None,
        typer.Option(
            help="A folder with a picture of each item, instead of features: shapes (GIST) and "
            "colours are computed from them.",
            rich_help_panel=_DATA,
        ),
    ] = None
    item_name: Annotated[
        str | None,
        typer.Option(
            "--item-name",
            help="The column of --features that says what items are called, to be shown beside "
            "their ids: by default title or name.",
            rich_help_panel=_DATA,
        ),
    ] = None


@dataclass(frozen=True)
class LabelColumns:
    """What the columns of the labels are called, which are positive, and who gave them."""

    user_features: Annotated[
        str | None,
        typer.Option(
            "--user-features",
            help="What else is known about people (age, country): one row per person, with the "
            "person's id; a file or query as for annotations.",
            rich_help_panel=_DATA,
        ),
    ] = None
    user: Annotated[
        str | None,
        typer.Option("--user-column", help="Who: user, annotator, ...", rich_help_panel=_COLUMNS),
    ] = None
    item: Annotated[
        str | None,
        typer.Option(
            "--item-column", help="What it is about: item, image, ...", rich_help_panel=_COLUMNS
        ),
    ] = None
    label: Annotated[
        str | None,
        typer.Option(
            "--label-column",
            help="What they said: label, rating, chosen, ...",
            rich_help_panel=_COLUMNS,
        ),
    ] = None
    attribute: Annotated[
        str | None,
        typer.Option(
            "--attribute-column",
            help="Which question was asked, where there are several.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None
    choice_set: Annotated[
        str | None,
        typer.Option(
            "--choice-set-column",
            help="What was shown together: choice_set, group, chid.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None
    alternative: Annotated[
        str | None,
        typer.Option(
            "--alternative-column",
            help="Which alternative of a choice set a row is about: alternative, alt. Each but "
            "the base gets an alternative-specific constant.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None
    base: Annotated[
        str | None,
        typer.Option(
            help="The base alternative of the constants; by default the first in sorted order.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None
    constants: Annotated[
        bool,
        typer.Option(
            "--constants/--no-constants",
            help="Whether alternatives get constants.",
            rich_help_panel=_COLUMNS,
        ),
    ] = True
    availability: Annotated[
        str | None,
        typer.Option(
            "--availability-column",
            help="Whether an alternative was available (1 or 0): availability, av.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None
    weight: Annotated[
        str | None,
        typer.Option("--weight-column", help="How much a row counts.", rich_help_panel=_COLUMNS),
    ] = None
    positive: Annotated[
        str | None,
        typer.Option(help="Which of two labels is the positive one.", rich_help_panel=_COLUMNS),
    ] = None
    threshold: Annotated[
        str | None,
        typer.Option(
            help="Ratings above this number are positive; median is everybody's own.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None
    grades: Annotated[
        str | None,
        typer.Option(
            help="Grades that are words, from worst to best: bad,fair,good. More than two numbers "
            "are grades by themselves.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None
    duplicates: Annotated[
        str | None,
        typer.Option(
            help="An item judged twice by a person: keep counts both, weights makes one row of "
            "equal ones, error refuses them.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None


Annotations = Annotated[
    str,
    typer.Option(
        "--annotations",
        "-a",
        help=f"Who said what about which item: {_TABLE}.",
        rich_help_panel=_DATA,
    ),
]

OptionalAnnotations = Annotated[
    str | None,
    typer.Option(
        "--annotations",
        "-a",
        help=f"Who said what about which item: {_TABLE}.",
        rich_help_panel=_DATA,
    ),
]

_PAIRS = "Columns of comparisons (found by their usual names)"


@dataclass(frozen=True)
class ComparisonOptions:
    """Comparisons of two items and what their columns are called, and exports of other tools."""

    comparisons: Annotated[
        str | None,
        typer.Option(
            "--comparisons",
            help="Who preferred which item to which: a table as for annotations, instead of them "
            "or beside them.",
            rich_help_panel=_DATA,
        ),
    ] = None
    winner: Annotated[
        str | None,
        typer.Option(
            "--winner-column", help="What was preferred: winner, chosen.", rich_help_panel=_PAIRS
        ),
    ] = None
    loser: Annotated[
        str | None,
        typer.Option("--loser-column", help="To what: loser, rejected.", rich_help_panel=_PAIRS),
    ] = None
    tie: Annotated[
        str | None,
        typer.Option(
            "--tie-column", help="Whether neither was preferred: tie, draw.", rich_help_panel=_PAIRS
        ),
    ] = None
    strength: Annotated[
        str | None,
        typer.Option(
            "--strength-column", help="How much a comparison counts.", rich_help_panel=_PAIRS
        ),
    ] = None
    export: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--from",
            metavar="TOOL FILE",
            help="What a labelling tool exported, instead of tables: label-studio, argilla, "
            "prodigy, crowd-kit, lewidi, polis (a folder) or preferences, and its file.",
            rich_help_panel=_DATA,
        ),
    ] = None
    of_attribute: Annotated[
        str | None,
        typer.Option(
            "--attribute",
            help="With --from: which attribute, where there are several.",
            rich_help_panel=_DATA,
        ),
    ] = None


@dataclass(frozen=True)
class OutOfCoreOptions:
    """Labels that do not fit in memory."""

    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            help="Labels need not fit in memory: --annotations is a folder of Parquet or "
            "CSV files, and reading takes so much at most: 4GB, 512MiB. The model keeps no labels.",
            rich_help_panel=_DATA,
        ),
    ] = None
    scratch: Annotated[
        Path | None,
        typer.Option(
            "--scratch",
            help="With --memory: a folder in which labels grouped by person stay, to be found "
            "again. By default beside the model, and gone once that is written.",
            rich_help_panel=_DATA,
        ),
    ] = None


@dataclass(frozen=True)
class ClusterOptions:
    """Labels on the workers of a cluster."""

    dask: Annotated[
        str | None,
        typer.Option(
            "--dask",
            metavar="ADDRESS",
            help="Learn on a Dask cluster: the address of its scheduler (tcp://host:8786), or "
            "local:4 for four processes on this machine. --annotations is a folder of Parquet "
            "or CSV files that all workers see. The model keeps no labels.",
            rich_help_panel=_CLUSTER,
        ),
    ] = None
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            help="With --dask: a folder that all workers see, in which what was learned so far "
            "is written down.",
            rich_help_panel=_CLUSTER,
        ),
    ] = None
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with the fit in --checkpoint, instead of beginning anew.",
            rich_help_panel=_CLUSTER,
        ),
    ] = False
    people_apart: Annotated[
        bool,
        typer.Option(
            "--people-apart",
            help="With --dask: people stay on the workers, which write them. The model is a "
            "folder, with a file for the people of each shard.",
            rich_help_panel=_CLUSTER,
        ),
    ] = False
