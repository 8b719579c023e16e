"""The tour on bundled data: fit, compare, say in words what came out, save."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from likeminds._progress import progress_bar
from likeminds._ranker import Ranker
from likeminds.annotations import Annotations
from likeminds.baselines import ConsensusOnly, OnePerPerson, RidgeToConsensus
from likeminds.datasets import load_electricity
from likeminds.hierarchical import HierarchicalRanker
from likeminds.identifiers import IdArray
from likeminds.io import save, writable
from likeminds.metrics import MetricByPerson, auc_by_person
from likeminds.rows import Float
from likeminds.schools import find_schools
from likeminds.search import RankerCV
from likeminds.selection import split_within_people
from likeminds.tuning import ThreeLevelRankerCV

_HELD_OUT = 0.3

_BASELINES: dict[str, Ranker] = {
    "consensus only": ConsensusOnly(),
    "one model per person": OnePerPerson(),
    "ridge towards the consensus": RidgeToConsensus(),
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


def run(
    out: Path, seed: int = 0, console: Console | None = None, *, progress: bool = True
) -> dict[str, Any]:
    """Run the tour and save the fitted model to ``out``.

    Parameters
    ----------
    out : Path
        Where the model goes.
    seed : int
        Which choices are held out.
    console : Console, optional
        Where the story is printed.
    progress : bool
        Show on stderr how far it is.

    Returns
    -------
    dict
        ``model`` (where it is) and ``scores`` (mean AUC of each ranker on held-out choices).
    """
    console = Console() if console is None else console
    out = writable(out)
    households = load_electricity()
    console.print(
        f"\n[bold]{households.n_people} households chose electricity contracts[/bold], "
        "one of four offers at a time.\n"
        f"{households}\n"
    )
    train, test = split_within_people(households, _HELD_OUT, seed)
    fitted = _fit_all(train, seed, progress)
    results = {
        name: auc_by_person(test.labels, ranker.decision_function(test), test.users)
        for name, ranker in fitted.items()
    }
    console.print(_comparison(results))
    console.print("(three levels: ThreeLevelRankerCV, the paper's model, tuned)")
    console.print("(learned prior: HierarchicalRanker, which has nothing to tune)")
    ranker = fitted["learned prior"]
    _tell_consensus(ranker, console)
    _tell_schools(ranker, console)
    _tell_dissenters(ranker, test, console)
    scores = {name: result.mean for name, result in results.items()}
    # With its data, so that `explain` knows how features go together, as this story does.
    path = save(ranker, out, with_data=True, scores=scores)
    _tell_next(path, console)
    return {"model": str(path), "scores": scores}


def _fit_all(train: Annotations, seed: int, progress: bool) -> dict[str, Any]:
    """Tune each ranker by cross-validation on the training choices, then fit it to all."""
    rankers: dict[str, Any] = {
        name: RankerCV(baseline, random_state=seed) for name, baseline in _BASELINES.items()
    }
    rankers["three levels"] = ThreeLevelRankerCV(random_state=seed)
    rankers["learned prior"] = HierarchicalRanker()
    with progress_bar(progress) as bar:
        task = bar.add_task("", total=len(rankers))
        for name, ranker in rankers.items():
            bar.update(task, description=name)
            ranker.fit(train)
            bar.update(task, advance=1)
    return rankers


def _comparison(results: Mapping[str, MetricByPerson]) -> Table:
    table = Table(title=f"Mean AUC per household on the {_HELD_OUT:.0%} of choices held out")
    table.add_column("ranker")
    table.add_column("mean AUC", justify="right")
    table.add_column("standard error", justify="right")
    for name, result in results.items():
        table.add_row(name, f"{result.mean:.3f}", f"{result.standard_error:.3f}")
    return table


def _tell_consensus(ranker: HierarchicalRanker, console: Console) -> None:
    console.print("\n[bold]What all agree on[/bold], strongest first:")
    console.print(f"  {_in_words(ranker.consensus_ * ranker.scale_, ranker.feature_names_)}")


def _tell_schools(ranker: HierarchicalRanker, console: Console) -> None:
    console.print("\n[bold]Who thinks alike[/bold], as find_schools sees it:")
    console.print(str(find_schools(ranker)), highlight=False, soft_wrap=True)


def _compared(deviation: Float, consensus: Float, names: IdArray, how_many: int = 3) -> str:
    """Say how somebody differs most: what counts more or less, or the other way round."""
    wishes = []
    for j in np.argsort(-np.abs(deviation / consensus))[:how_many]:
        ratio = 1.0 + deviation[j] / consensus[j]
        wish = _WISHES[names[j]][int(consensus[j] + deviation[j] < 0)]
        wishes.append(f"{wish} (x{ratio:.1f})" if ratio > 0 else f"on the contrary, {wish}")
    return ", ".join(wishes)


def _tell_dissenters(ranker: HierarchicalRanker, test: Annotations, console: Console) -> None:
    offers = test.X - test.X.mean(axis=0)
    own_scores, shared_scores = offers @ ranker.coef_.T, offers @ ranker.consensus_
    likeness = shared_scores @ own_scores
    likeness /= np.linalg.norm(own_scores, axis=0) * np.linalg.norm(shared_scores)
    consensus = ranker.consensus_ * ranker.scale_
    deviations = ranker.coef_ * ranker.scale_ - consensus
    own = auc_by_person(test.labels, ranker.decision_function(test), test.users)
    shared = auc_by_person(test.labels, ranker.decision_function(test.X), test.users)
    table = Table(title="Three households that see it differently")
    for heading in ("household", "differs most in", "likeness", "AUC, own", "AUC, consensus"):
        table.add_column(heading)
    for person in np.argsort(likeness)[:3]:
        table.add_row(
            str(ranker.users_[person]),
            _compared(deviations[person], consensus, ranker.feature_names_),
            f"{likeness[person]:+.2f}",
            *(f"{_value_of(metric, ranker.users_[person]):.2f}" for metric in (own, shared)),
        )
    console.print()
    console.print(table)
    console.print(
        "(x2: it counts twice as much as for the consensus; likeness: correlation of its scores "
        "with the consensus's; AUC: held out)",
        soft_wrap=True,
    )


def _value_of(metric: MetricByPerson, person: Any) -> float:
    return float(metric.values[metric.users == person][0])


def _in_words(weights: Float, names: IdArray) -> str:
    strongest = np.argsort(-np.abs(weights))
    return ", ".join(_WISHES[names[j]][int(weights[j] < 0)] for j in strongest)


def _tell_next(path: Path, console: Console) -> None:
    console.print(
        f"\nThe model is saved in [bold]{path}[/bold]. What to try next:\n"
        f"  likeminds explain --model {path}    who thinks alike, and on what\n"
        "  likeminds data electricity --out power      these data as tables, to learn from\n"
        "  likeminds fit --annotations power/annotations.csv --features power/features.csv "
        "--out power.likeminds\n"
        "  likeminds compare --annotations power/annotations.csv --features power/features.csv\n"
        f"In Python: likeminds.load({str(path)!r}).coef_ has everybody's weights;\n"
        "  likeminds.Annotations.from_csv(...) and HierarchicalRanker().fit(...) learn from "
        "your own table,\n"
        "  likeminds.compare(...) holds all rankers against each other on it.\n",
        soft_wrap=True,
        highlight=False,
    )
