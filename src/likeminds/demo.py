"""The tour on bundled data: fit, compare, say in words what came out, save."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from sklearn.cluster import KMeans
from sklearn.model_selection import ParameterGrid

from likeminds._ranker import Ranker
from likeminds.annotations import Annotations
from likeminds.baselines import ConsensusOnly, OnePerPerson, RidgeToConsensus
from likeminds.datasets import load_electricity
from likeminds.identifiers import IdArray
from likeminds.io import save
from likeminds.metrics import MetricByPerson, auc_by_person
from likeminds.rankers import ThreeLevelRanker
from likeminds.rows import Float
from likeminds.selection import split_within_people

_HELD_OUT = 0.3

_CANDIDATES: dict[str, tuple[type[Ranker], Mapping[str, Sequence[Any]]]] = {
    "consensus only": (ConsensusOnly, {"alpha": [0.001, 0.01, 0.1]}),
    "one model per person": (OnePerPerson, {"alpha": [0.01, 0.03, 0.1, 0.3]}),
    "ridge towards the consensus": (RidgeToConsensus, {"alpha": [0.01, 0.03, 0.1, 0.3]}),
    "three levels": (
        ThreeLevelRanker,
        {
            "alpha_group": [0.1, 0.3, 1.0],
            "shrinkage_share": [0.03, 0.1, 0.3],
            "n_groups": [2, 3, 4],
        },
    ),
}

# What a household with a larger, or with a smaller, weight on a feature asks for.
_WISHES = {
    "price": ("a high fixed price", "a low price"),
    "contract_length": ("a long contract", "a short contract"),
    "local_company": ("the local company", "not the local company"),
    "known_company": ("a well-known company", "not a well-known company"),
    "time_of_day_rates": ("rates by time of day", "no rates by time of day"),
    "seasonal_rates": ("rates by season", "no rates by season"),
}


def run(out: Path, seed: int = 0, console: Console | None = None) -> None:
    """Run the tour and save the fitted model to ``out``.

    Parameters
    ----------
    out : Path
        Where the model goes.
    seed : int
        Which choices are held out.
    console : Console, optional
        Where the story is printed.
    """
    console = Console() if console is None else console
    households = load_electricity()
    console.print(
        f"\n[bold]{households.n_people} households chose electricity contracts[/bold], "
        "one of four offers at a time.\n"
        f"{households}\n"
    )
    train, test = split_within_people(households, _HELD_OUT, seed)
    fitted = _fit_all(train, seed, console)
    results = {
        name: auc_by_person(test.labels, ranker.decision_function(test), test.users)
        for name, ranker in fitted.items()
    }
    console.print(_comparison(results))
    ranker = fitted["three levels"]
    _tell_consensus(ranker, console)
    _tell_schools(ranker, console)
    _tell_dissenters(ranker, test, console)
    _tell_next(save(ranker, out), console)


def _fit_all(train: Annotations, seed: int, console: Console) -> dict[str, Any]:
    """Tune each ranker on a part of the training choices, then fit it to all of them."""
    inner, validation = split_within_people(train, _HELD_OUT, seed + 1)
    fitted: dict[str, Any] = {}
    columns = (TextColumn("{task.description:28}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        for name, (kind, grid) in _CANDIDATES.items():
            candidates = [_plain(point) for point in ParameterGrid(dict(grid))]
            scored = [
                (kind(**point).fit(inner).score(validation), point)
                for point in progress.track(candidates, description=name)
            ]
            best = max(scored, key=lambda entry: entry[0])[1]
            fitted[name] = kind(**best).fit(train)
    return fitted


def _plain(point: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the share of the penalty that strong directions pay into group_shrinkage."""
    point = dict(point)
    if "shrinkage_share" in point:
        point["group_shrinkage"] = point.pop("shrinkage_share") * point["alpha_group"]
    return point


def _comparison(results: Mapping[str, MetricByPerson]) -> Table:
    table = Table(title=f"Mean AUC per household on the {_HELD_OUT:.0%} of choices held out")
    table.add_column("ranker")
    table.add_column("mean AUC", justify="right")
    table.add_column("standard error", justify="right")
    for name, result in results.items():
        table.add_row(name, f"{result.mean:.3f}", f"{result.standard_error:.3f}")
    return table


def _tell_consensus(ranker: ThreeLevelRanker, console: Console) -> None:
    console.print("\n[bold]What all agree on[/bold], strongest first:")
    console.print(f"  {_in_words(ranker.consensus_ * ranker.scale_, ranker.feature_names_)}")


def _tell_schools(ranker: ThreeLevelRanker, console: Console) -> None:
    deviations, consensus = ranker.group_ * ranker.scale_, ranker.consensus_ * ranker.scale_
    school = KMeans(ranker.n_groups_ + 1, n_init=10, random_state=0).fit_predict(deviations)
    console.print(
        "\n[bold]What schools of thought want differently[/bold] "
        "(x2: it counts twice as much as for the consensus):"
    )
    for number, members in enumerate(np.argsort(-np.bincount(school)), start=1):
        deviation = deviations[school == members].mean(axis=0)
        wishes = _compared(deviation, consensus, ranker.feature_names_)
        console.print(f"  school {number} ({np.sum(school == members)} households): {wishes}")


def _compared(deviation: Float, consensus: Float, names: IdArray, how_many: int = 3) -> str:
    """Say how a school differs most: what counts more or less, or the other way round."""
    wishes = []
    for j in np.argsort(-np.abs(deviation))[:how_many]:
        ratio = 1.0 + deviation[j] / consensus[j]
        wish = _WISHES[names[j]][int(consensus[j] + deviation[j] < 0)]
        wishes.append(f"{wish} (x{ratio:.1f})" if ratio > 0 else f"on the contrary, {wish}")
    return ", ".join(wishes)


def _tell_dissenters(ranker: ThreeLevelRanker, test: Annotations, console: Console) -> None:
    weights, consensus = ranker.coef_ * ranker.scale_, ranker.consensus_ * ranker.scale_
    likeness = weights @ consensus
    likeness /= np.linalg.norm(weights, axis=1) * np.linalg.norm(consensus)
    own = auc_by_person(test.labels, ranker.decision_function(test), test.users)
    shared = auc_by_person(test.labels, ranker.decision_function(test.X), test.users)
    table = Table(title="Three households that see it differently")
    for heading in ("household", "wants most", "likeness", "AUC, own", "AUC, consensus"):
        table.add_column(heading)
    for person in np.argsort(likeness)[:3]:
        table.add_row(
            str(ranker.users_[person]),
            _in_words(weights[person], ranker.feature_names_, 3),
            f"{likeness[person]:+.2f}",
            *(f"{_value_of(metric, ranker.users_[person]):.2f}" for metric in (own, shared)),
        )
    console.print()
    console.print(table)
    console.print("(likeness: cosine of a household's weights and the consensus; AUC: held out)")


def _value_of(metric: MetricByPerson, person: Any) -> float:
    return float(metric.values[metric.users == person][0])


def _in_words(weights: Float, names: IdArray, how_many: int | None = None) -> str:
    strongest = np.argsort(-np.abs(weights))[:how_many]
    return ", ".join(_WISHES[names[j]][int(weights[j] < 0)] for j in strongest)


def _tell_next(path: Path, console: Console) -> None:
    console.print(
        f"\nThe model is saved in [bold]{path}[/bold]. What to try next, in Python:\n"
        f"  likeminds.load({str(path)!r}).coef_      everybody's weights\n"
        "  likeminds.Annotations.from_csv(...)       your own table\n"
        "  likeminds.ThreeLevelRanker().fit(...)     the same model on it\n",
        soft_wrap=True,
        highlight=False,
    )
