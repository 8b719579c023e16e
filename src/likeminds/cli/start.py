"""``likeminds demo``, ``data`` and ``simulate``: a first fit, and data to fit."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import likeminds
from likeminds._util.atomic_files import folder_for
from likeminds._util.lazy_imports import np
from likeminds.cli._options import Seed, option
from likeminds.cli._output import Output
from likeminds.cli.main import command

if TYPE_CHECKING:
    from likeminds.data.annotations import Annotations
    from likeminds.rankers.ranker import Ranker

_BUNDLED = ("electricity", "sketch-shoes")
# The share of choices that the demo holds out.
_HELD_OUT = 0.3

Folder = Annotated[Path, option("The folder to write to.", "--out", "-o")]


@command("Start", "likeminds demo --out electricity.likeminds")
def demo(
    output: Output,
    *,
    out: Path = option(
        "The file to write the model to.", "--out", "-o", default=Path("electricity.likeminds")
    ),
    seed: Seed = 0,
) -> None:
    """Fit 361 households' choices of electricity contracts, and show the results."""
    from likeminds._util.console import program
    from likeminds.datasets.exports import electricity_by_offer
    from likeminds.schools import Explanation
    from likeminds.storage.models import writable

    out = writable(out)
    households = electricity_by_offer()
    head = f"\n{households.n_users} households chose electricity contracts"
    output.show(f", one of four offers at a time.\n{households}\n", head=head)
    train, test = likeminds.split_within_users(households, _HELD_OUT, seed)
    fitted = _fit_all(output, train, seed)
    results = {
        name: likeminds.auc_by_user(test.labels, ranker.decision_function(test), test.users)
        for name, ranker in fitted.items()
    }
    output.table(
        f"Mean AUC per household on the {_HELD_OUT:.0%} of choices held out",
        [
            {"ranker": name, "mean AUC": one.mean, "standard error": one.standard_error}
            for name, one in results.items()
        ],
    )
    output.show("(three levels: ThreeLevelRankerCV, the paper's model, tuned)")
    output.show("(learned prior: HierarchicalRanker, which has nothing to tune)")
    # The comparison needs held-out choices; the rest is about all, as in the served demo.
    ranker = likeminds.HierarchicalRanker().fit(households)
    explained = Explanation.of_ranker(ranker, households)
    wishes = ", ".join(one["wish"] for one in explained.consensus)
    output.show(f", strongest first:\n  {wishes}", head="\nPreferences of the households")
    output.show(f":\n{explained.schools}", head="\nHouseholds that rank alike")
    compared = fitted["learned prior"]
    shared = likeminds.auc_by_user(test.labels, compared.decision_function(test.X), test.users)
    rows = []
    for user in compared.users_[np.argsort(explained.likeness)[:3]]:
        facts = explained.user(user)
        own_auc, shared_auc = (
            f"{float(metric.values[metric.users == user][0]):.2f}"
            for metric in (results["learned prior"], shared)
        )
        rows.append(
            {
                "household": str(user),
                "differs most in": facts["differs"],
                "likeness": f"{facts['likeness']:+.2f}",
                "AUC, own": own_auc,
                "AUC, consensus": shared_auc,
            }
        )
    output.table("\nThree households that differ most from the consensus", rows)
    output.show("(likeness: correlation of scores with the consensus; AUC: on held-out choices)")
    scores = {name: result.mean for name, result in results.items()}
    # With its data, so `explain` can use the covariance of features.
    path = likeminds.save(ranker, out, with_data=True, scores=scores)
    output.json({"model": str(path), "scores": scores})
    call, file = program(), shlex.quote(str(path))
    tables = "--annotations power/annotations.csv --features power/features.csv"
    output.hint(
        f"\nThe model is saved in {path}. Next:\n"
        f"  {call} explain {file}    households that rank alike, and why\n"
        f"  {call} data electricity --out power      these data as tables\n"
        f"  {call} fit {tables} --out power.likeminds\n"
        f"  {call} compare {tables}\n"
        f"In Python: likeminds.load({str(path)!r}).coef_ has the weights of each user;\n"
        "  likeminds.Annotations.from_csv(...) and HierarchicalRanker().fit(...) learn from "
        "your own table,\n"
        "  likeminds.compare(...) compares all rankers on it.\n"
    )


def _fit_all(output: Output, train: "Annotations", seed: int) -> "dict[str, Ranker]":
    """Tune each ranker by cross-validation on the training choices, then fit it to all."""
    from likeminds.rankers.registry import ranker_called

    names = {
        "consensus only": "ConsensusOnly",
        "one model per person": "OnePerUser",
        "ridge towards the consensus": "RidgeToConsensus",
        "three levels": "three-level",
        "learned prior": "hierarchical",
    }
    rankers = {name: ranker_called(called, 5, seed)[1] for name, called in names.items()}
    with output.progress("") as show:
        for done, (name, ranker) in enumerate(rankers.items()):
            show(name, done, len(rankers))
            ranker.fit(train)
    return rankers


@command(
    "Start",
    "likeminds data electricity --out power",
    "likeminds data sketch-shoes --out shoes --n-pictures 60 --n-users 20 --attribute open",
)
def data(
    output: Output,
    *,
    name: str = typer.Argument(help="electricity, or sketch-shoes.", show_default=False),
    out: Folder,
    n_pictures: int = option("For sketch-shoes: number of pictures, at most 500.", default=300),
    n_users: int = option("For sketch-shoes: number of users.", default=100),
    attribute: list[str] | None = option(
        "For sketch-shoes: an attribute; may be repeated.", default=None
    ),
    seed: Seed = 0,
) -> None:
    """Write bundled data as tables: annotations.csv, features.csv, and pictures.

    electricity: 361 households choose among electricity contracts, one of four offers at a time.
    sketch-shoes: drawn shoes, and simulated users who disagree on which are comfortable or open.
    """
    from likeminds.datasets import exports

    if name not in _BUNDLED:
        names = ", ".join(_BUNDLED)
        raise ValueError(f"There is no bundled data called {name!r}; there are {names}.")
    folder_for(out, "the tables")
    if name == "electricity":
        written = exports.write_electricity(out)
    else:
        written = exports.write_sketch_shoes(
            out, n_pictures=n_pictures, n_users=n_users, attributes=attribute, random_state=seed
        )
    _show_written(output, out, written)


@command("Start", "likeminds simulate --n-users 60 --schools 3 --out crowd")
def simulate(
    output: Output,
    *,
    out: Folder,
    n_users: int = option("Number of users.", default=100),
    n_labels: int = option("Number of labels of each user.", default=40),
    n_items: int = option("Number of items.", default=400),
    n_features: int = option("Number of features.", default=12),
    schools: int = option("Number of schools: groups of users who rank alike.", default=3),
    loners: int = option("Number of users without a school.", default=0),
    noise: float = option("The share of labels that are flipped at random.", default=0.05),
    seed: Seed = 0,
) -> None:
    """Simulate labels of users in schools, which oppose each other on some features."""
    from likeminds.datasets.exports import write_simulation

    folder_for(out, "the tables")
    options: dict[str, Any] = {"contested": 0.5, "label_noise": noise, "random_state": seed}
    simulation = likeminds.make_schools(
        n_users, n_labels, n_items, n_features, schools, n_loners=loners, **options
    )
    _show_written(output, out, write_simulation(simulation, out))


def _show_written(output: Output, out: Path, written: dict[str, str]) -> None:
    """List the files, and propose a command that fits them."""
    output.json({"folder": str(out), "files": written})
    for file, what in written.items():
        output.show(f"{out / file}: {what}")
    images = "images/" in written
    features = f"--images {out / 'images'}" if images else f"--features {out / 'features.csv'}"
    output.hint(
        f"\nNext: likeminds fit --annotations {out / 'annotations.csv'} {features} "
        f"--out {out.name}.likeminds"
    )
