"""Compare rankers on your own data, by the paper's protocol."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from likeminds._util.array_types import Float, IdArray
from likeminds._util.atomic_files import make_folder
from likeminds._util.per_user_arrays import nan_mean
from likeminds._util.result_tables import Frames, ResultTable, Row, Rows, aligned, as_kind
from likeminds._util.text_format import counted
from likeminds.comparing.runs import MANY_LABELS, ResultStore, all_fits, run_all
from likeminds.data.annotations import Annotations
from likeminds.data.splits import split_within_users
from likeminds.metrics.by_user import MetricByUser
from likeminds.metrics.concordance import measure_of
from likeminds.metrics.paired import over_repeats, over_users
from likeminds.plots import boxplot
from likeminds.rankers.registry import (
    Given,
    NamedRankers,
    as_rankers,
    default_rankers,
    that_apply,
    without_long_searches,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ALL = "all"  # of the default rankers

_CELLS = pa.schema(
    {
        "ranker": pa.string(),
        "repeat": pa.int64(),
        "mean_score": pa.float64(),
        "seconds": pa.float64(),
        "parameters": pa.string(),
        "score_by_user": pa.list_(pa.float64()),
    }
)
_JUDGED = ("difference", "low", "high", "p")
_PAIRED = pa.schema(
    [("ranker", pa.string()), ("against", pa.string())]
    + [(f"{kind}_{name}", pa.float64()) for kind in ("users", "repeats") for name in _JUDGED]
)


@dataclass(frozen=True, eq=False)
class Comparison(ResultTable):
    """The result of `compare`: as a table, a row per ranker and repeat.

    Attributes
    ----------
    cells : pyarrow.Table
        ``ranker``, ``repeat``, ``mean_score``, ``seconds``, ``parameters`` (as JSON; after a
        search, the chosen ones) and ``score_by_user`` (in the order of ``users``). A user without a
        pair to rank has the score NaN. Seconds include tuning, and are longer with parallel
        workers.
    users : array
        The users.
    test_size : float
        The share of the rows that was held out.
    measure : {"AUC", "concordance"}
        The score of a user: the AUC, or, for grades, the concordance.
    frames : {"pyarrow", "pandas", "polars"}
        The kind of tables that methods return.
    """

    cells: pa.Table
    users: IdArray
    test_size: float
    measure: str = "AUC"
    frames: Frames = "pyarrow"

    @cached_property
    def rankers(self) -> list[str]:
        """The names of the rankers, in the order they were given."""
        return list(dict.fromkeys(self.cells["ranker"].to_pylist()))

    def to_arrow(self) -> pa.Table:
        """Return a row per ranker and repeat: see the class."""
        return self.cells

    def summary(self) -> Any:
        """Return a table of the rankers, best first.

        ``mean_score`` is the mean of the ``measure`` over users and repeats.
        ``deviation_over_repeats`` is its standard deviation over repeats, and ``error_over_people``
        its standard error over users. ``median_seconds`` is the median time of a fit with tuning.
        """
        return as_kind(self._summary(), self.frames)

    def _summary(self) -> pa.Table:
        means = self._by_repeat.mean(axis=1)
        order = np.argsort(-means, kind="stable")
        deviation = self._by_repeat.std(axis=1, ddof=1) if self._n_repeats > 1 else means * np.nan
        error = [MetricByUser(self.users, own).standard_error for own in self._by_user]
        return pa.table(
            {
                "ranker": [self.rankers[r] for r in order],
                "mean_score": means[order],
                "deviation_over_repeats": deviation[order],
                "error_over_people": np.array(error)[order],
                "median_seconds": np.median(self._grid("seconds"), axis=1)[order],
            }
        )

    def paired(self, against: str | None = None) -> Any:
        """Return the paired difference of every ranker from one of them.

        Parameters
        ----------
        against : str, optional
            The reference; by default the best ranker.

        Returns
        -------
        data frame
            Columns ``ranker`` and ``against``, then the mean ``difference``, its 95 % interval from
            ``low`` to ``high``, and ``p`` of Wilcoxon's signed-rank test. Columns that begin with
            ``users_`` compare users (averaged over repeats); ``repeats_``, repeats (averaged over
            users). Intervals over repeats are corrected (Nadeau and Bengio), because training sets
            overlap.
        """
        return as_kind(self._paired(against), self.frames)

    def _paired(self, against: str | None = None) -> pa.Table:
        best = self._summary()["ranker"][0].as_py()
        reference = self._place(best if against is None else against)
        rows = []
        for name in self._summary()["ranker"].to_pylist():
            place = self._place(name)
            if place == reference:
                continue
            users = over_users(self._by_user[place] - self._by_user[reference])
            differences = self._by_repeat[place] - self._by_repeat[reference]
            repeats = over_repeats(differences, self.test_size)
            row: dict[str, Any] = {"ranker": name, "against": self.rankers[reference]}
            for kind, found in (("users", users), ("repeats", repeats)):
                row |= {f"{kind}_{what}": v for what, v in zip(_JUDGED, found, strict=True)}
            rows.append(row)
        return pa.Table.from_pylist(rows, schema=_PAIRED)

    def boxplot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw a box plot of mean scores over repeats, one box per ranker."""
        values = dict(zip(self.rankers, self._by_repeat, strict=True))
        best = max(values, key=lambda name: float(np.median(values[name])))
        repeats = counted(self._n_repeats, "repeat")
        title = f"{best} has the highest median {self.measure} on held-out labels ({repeats})"
        label = f"{self.measure}, mean over people (1 = every pair in the right order)"
        return boxplot(values, label=label, title=title, ax=ax)

    def to_markdown(self) -> str:
        """Return the summary, and the differences from the best, as a Markdown table."""
        header, *rows = self._cells_of_text()
        rule = ["---"] + ["---:"] * (len(header) - 1)
        return "\n".join(f"| {' | '.join(row)} |" for row in [header, rule, *rows])

    def __str__(self) -> str:
        rows = self._cells_of_text()
        numbers = [place > 0 for place in range(len(rows[0]))]
        return "\n".join([self._headline(), *aligned(rows, numbers)])

    def _headline(self) -> str:
        return (
            f"{counted(len(self.rankers), 'ranker')}, {counted(self._n_repeats, 'repeat')}, "
            f"{self.test_size:.0%} held out of {counted(len(self.users), 'person', 'people')}"
        )

    def _html_tables(self) -> Sequence[Rows]:
        header, *rows = self._cells_of_text()
        return [[dict(zip(header, row, strict=True)) for row in rows]]

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.rankers)}>"

    def _cells_of_text(self) -> list[list[str]]:
        differences = {row["ranker"]: row for row in self._paired().to_pylist()}
        header = ["ranker", f"mean {self.measure}", "± repeats", "to best [95 % over people]"]
        rows = [[*header, "Wilcoxon p", "seconds"]]
        paired = "{users_difference:+.4f} [{users_low:+.4f}, {users_high:+.4f}]"
        for found in self._summary().to_pylist():
            row = differences.get(found["ranker"])
            deviation = found["deviation_over_repeats"]
            cells = [found["ranker"], f"{found['mean_score']:.4f}"]
            cells += [f"{deviation:.4f}" if self._n_repeats > 1 else "-"]
            cells += (
                ["best", ""] if row is None else [paired.format(**row), f"{row['users_p']:.2g}"]
            )
            rows.append([*cells, f"{found['median_seconds']:.2f}"])
        return rows

    def _place(self, ranker: str) -> int:
        if ranker not in self.rankers:
            raise ValueError(
                f"There is no ranker called {ranker!r}; choose one of {', '.join(self.rankers)}."
            )
        return self.rankers.index(ranker)

    @property
    def _n_repeats(self) -> int:
        return int(self.cells.num_rows) // len(self.rankers)

    def _grid(self, column: str) -> Float:
        values = self.cells[column].to_numpy()
        return np.asarray(values, dtype=np.float64).reshape(len(self.rankers), self._n_repeats)

    @cached_property
    def _by_repeat(self) -> Float:
        """Mean scores, rankers x repeats."""
        return self._grid("mean_score")

    @cached_property
    def _by_user(self) -> Float:
        """Scores averaged over repeats, rankers x users; NaN if defined in no repeat."""
        flat = np.array(self.cells["score_by_user"].to_pylist(), dtype=np.float64)
        scores = flat.reshape(len(self.rankers), self._n_repeats, len(self.users))
        return nan_mean(scores.transpose(0, 2, 1))


def compare(
    annotations: Annotations,
    rankers: Given | str | None = None,
    *,
    repeats: int | None = None,
    test_size: float = 0.15,
    n_folds: int = 5,
    n_jobs: int | None = None,
    random_state: int = 0,
    folder: str | PathLike[str] | None = None,
    progress: bool | Callable[[str], None] = True,
) -> Comparison:
    """Compare rankers on the same splits, each tuned inside its training rows.

    This is the paper's protocol. A share of each user's labels (or choice sets) is held out for the
    final score. Cross-validation on the rest chooses parameters. Both are repeated on other splits.

    Parameters
    ----------
    annotations : Annotations
        The data, of one attribute.
    rankers : mapping from name to ranker, list of rankers or names, or "all", optional
        A ranker with a default grid is wrapped in `RankerCV`. A pair ``(ranker, param_grid)`` is
        searched over that grid. Other estimators with ``fit`` and ``decision_function`` are used
        unchanged. "all" means `default_rankers`, without rankers of item ids (`Popularity`,
        `PopularityWithFeatures`, `Factorisation`) if no two users labelled the same item. The
        default is "all", but with more than 20,000 labels, rankers with long searches are left out
        with a warning.
    repeats : int, optional
        The number of splits. By default 15; with more than 20,000 labels, 2. Repeat r is
        ``split_within_users(annotations, test_size, random_state + r)``.
    test_size : float, default=0.15
        The share of each user's labels to hold out.
    n_folds : int, default=5
        The number of cross-validation folds of searches that `compare` sets up.
    n_jobs : int, optional
        The number of parallel fits (joblib).
    random_state : int, default=0
        The seed of the first split and of the folds.
    folder : path, optional
        Where to store the result of each fit, so an interrupted comparison resumes. File names
        contain a hash of the data, the protocol, and the ranker's class and parameters. If you
        change the code of your own ranker, use another folder.
    progress : bool or callable, default=True
        Show progress and the time left on stderr; or call a function with the name of each
        finished fit.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from likeminds import compare, make_schools
    >>> annotations = make_schools(20, 30, 60, 6, 2, random_state=0).annotations
    >>> found = compare(annotations, ["ConsensusOnly", "Popularity"], repeats=2, progress=False)
    >>> found.table().num_rows
    4
    >>> found.summary().column_names[:2]
    ['ranker', 'mean_score']
    """
    return compare_each(
        {"": annotations},
        rankers,
        repeats=(15 if len(annotations) <= MANY_LABELS else 2) if repeats is None else repeats,
        test_size=test_size,
        n_folds=n_folds,
        n_jobs=n_jobs,
        random_state=random_state,
        folder=folder,
        progress=progress,
    )[""]


def compare_each(
    parts: Mapping[str, Annotations],
    rankers: Given | str | None,
    *,
    repeats: int,
    test_size: float,
    n_folds: int,
    n_jobs: int | None,
    random_state: int,
    folder: str | PathLike[str] | None,
    progress: bool | Callable[[str], None],
) -> dict[str, Comparison]:
    """Return a comparison for each attribute; all fits share one progress bar."""
    for annotations in parts.values():
        _refuse_bad_protocol(annotations, repeats, test_size, n_folds, random_state)
    path = None if folder is None else make_folder(folder, "the results")
    seeds = range(random_state, random_state + repeats)
    named = {
        part: _rankers_for(annotations, rankers, n_folds, random_state)
        for part, annotations in parts.items()
    }
    store, work = ResultStore(path, n_jobs), []
    rows: dict[str, list[Row]] = {part: [] for part in parts}
    for part, annotations in parts.items():
        fits = all_fits(annotations, named[part], test_size, seeds, stored=path is not None)
        for fit, row in zip(fits, map(store.read, fits), strict=True):
            if row is None or len(row["score_by_user"]) != annotations.n_users:
                work.append((part, fit))
            else:
                rows[part].append(row)
    for part, row in run_all(work, store, progress):
        rows[part].append(row)
    found = {}
    for part, annotations in parts.items():
        order = list(named[part])
        ordered = sorted(rows[part], key=lambda row: (order.index(row["ranker"]), row["repeat"]))
        _raise_warnings(ordered, repeats)
        found[part] = Comparison(
            pa.Table.from_pylist(ordered, schema=_CELLS),
            annotations.user_ids,
            float(test_size),
            measure_of(annotations.outcomes),
            annotations.frames,
        )
    return found


def _refuse_bad_protocol(
    annotations: Annotations, repeats: int, test_size: float, n_folds: int, random_state: int
) -> None:
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, but is {repeats}.")
    if n_folds < 2:
        raise ValueError(f"n_folds must be at least 2, but is {n_folds}.")
    if annotations.n_attributes > 1:
        raise ValueError(
            f"A comparison is about one attribute, but there are {annotations.n_attributes}. "
            "Choose one with annotations.of_attribute(...)."
        )
    split_within_users(annotations, test_size, random_state)  # raises if it cannot be split


def _rankers_for(
    annotations: Annotations, rankers: Given | str | None, n_folds: int, random_state: int
) -> NamedRankers:
    if rankers is not None and rankers != ALL:
        return as_rankers(rankers, n_folds, random_state)
    named = that_apply(default_rankers(n_folds, random_state), annotations)
    if rankers == ALL or len(annotations) <= MANY_LABELS:
        return named
    quick = without_long_searches(named)
    warnings.warn(
        f"More than {MANY_LABELS:,} labels: {', '.join(n for n in named if n not in quick)} are "
        f"left out, because their searches take long. To compare all, use rankers={ALL!r} "
        f"(--ranker {ALL}).",
        UserWarning,
        stacklevel=4,
    )
    return quick


def _raise_warnings(rows: Sequence[Row], repeats: int) -> None:
    warned: dict[str, list[str]] = {}
    for row in rows:
        if row["warnings"]:
            warned.setdefault(row["ranker"], []).append(row["warnings"][0])
    for name, messages in sorted(warned.items()):
        warnings.warn(
            f"{name} warned in {len(messages)} of {repeats} repeats; first: {messages[0]}",
            UserWarning,
            stacklevel=4,
        )
