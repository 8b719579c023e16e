"""The tour on bundled data: fit, compare, say in words what came out, save."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from likeminds._util.console import SafeConsole, program, progress_bar
from likeminds.data.annotations import Annotations
from likeminds.data.splits import split_within_users
from likeminds.datasets.exports import electricity_by_offer
from likeminds.metrics.by_user import MetricByUser, auc_by_user
from likeminds.rankers.baselines import ConsensusOnly, OnePerUser, RidgeToConsensus
from likeminds.rankers.hierarchical import HierarchicalRanker
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.tuning.search import RankerCV
from likeminds.rankers.tuning.three_level_cv import ThreeLevelRankerCV
from likeminds.schools import Explanation
from likeminds.storage.models import save, writable

_HELD_OUT = 0.3

_BASELINES: dict[str, Ranker] = {
    "consensus only": ConsensusOnly(),
    "one model per person": OnePerUser(),
    "ridge towards the consensus": RidgeToConsensus(),
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
    console = SafeConsole() if console is None else console
    out = writable(out)
    households = electricity_by_offer()
    console.print(
        f"\n[bold]{households.n_users} households chose electricity contracts[/bold], "
        "one of four offers at a time.\n"
        f"{households}\n"
    )
    train, test = split_within_users(households, _HELD_OUT, seed)
    fitted = _fit_all(train, seed, progress)
    results = {
        name: auc_by_user(test.labels, ranker.decision_function(test), test.users)
        for name, ranker in fitted.items()
    }
    console.print(_comparison(results))
    console.print("(three levels: ThreeLevelRankerCV, the paper's model, tuned)")
    console.print("(learned prior: HierarchicalRanker, which has nothing to tune)")
    # The comparison needs held-out choices; the story is about all, as that of the served demo.
    ranker = HierarchicalRanker().fit(households)
    explained = Explanation.of_ranker(ranker, households)
    console.print("\n[bold]What households want[/bold], strongest first:")
    wishes = ", ".join(one["wish"] for one in explained.consensus)
    console.print(f"  {wishes}", soft_wrap=True)
    console.print("\n[bold]Who thinks alike[/bold], as find_schools sees it:")
    console.print(str(explained.schools), highlight=False, soft_wrap=True)
    _tell_dissenters(explained, fitted["learned prior"], test, console)
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


def _comparison(results: Mapping[str, MetricByUser]) -> Table:
    table = Table(title=f"Mean AUC per household on the {_HELD_OUT:.0%} of choices held out")
    table.add_column("ranker")
    table.add_column("mean AUC", justify="right")
    table.add_column("standard error", justify="right")
    for name, result in results.items():
        table.add_row(name, f"{result.mean:.3f}", f"{result.standard_error:.3f}")
    return table


def _tell_dissenters(
    explained: Explanation, ranker: Any, test: Annotations, console: Console
) -> None:
    own = auc_by_user(test.labels, ranker.decision_function(test), test.users)
    shared = auc_by_user(test.labels, ranker.decision_function(test.X), test.users)
    table = Table(title="Three households that see it differently")
    for heading in ("household", "differs most in", "likeness", "AUC, own", "AUC, consensus"):
        table.add_column(heading)
    for person in ranker.users_[np.argsort(explained.likeness)[:3]]:
        facts = explained.user(person)
        table.add_row(
            str(person),
            facts["differs"],
            f"{facts['likeness']:+.2f}",
            *(f"{_value_of(metric, person):.2f}" for metric in (own, shared)),
        )
    console.print()
    console.print(table)
    console.print("(likeness: correlation of its scores with the consensus's; AUC: held out)")


def _value_of(metric: MetricByUser, person: Any) -> float:
    return float(metric.values[metric.users == person][0])


def _tell_next(path: Path, console: Console) -> None:
    call = program()
    console.print(
        f"\nThe model is saved in [bold]{path}[/bold]. What to try next:\n"
        f"  {call} explain {shlex.quote(str(path))}    who thinks alike, and on what\n"
        f"  {call} data electricity --out power      these data as tables, to learn from\n"
        f"  {call} fit --annotations power/annotations.csv --features power/features.csv "
        "--out power.likeminds\n"
        f"  {call} compare --annotations power/annotations.csv --features power/features.csv\n"
        f"In Python: likeminds.load({str(path)!r}).coef_ has everybody's weights;\n"
        "  likeminds.Annotations.from_csv(...) and HierarchicalRanker().fit(...) learn from "
        "your own table,\n"
        "  likeminds.compare(...) holds all rankers against each other on it.\n",
        soft_wrap=True,
        highlight=False,
    )
