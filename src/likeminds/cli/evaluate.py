"""``likeminds evaluate``: how well a model ranks what people said."""

from typing import TYPE_CHECKING, Any

import typer

from likeminds.cli._command import command
from likeminds.cli._options import Annotations as Source
from likeminds.cli._options import Columns, ItemOptions, Model, Table
from likeminds.cli._talk import Talk
from likeminds.cli.fit import DATA, FIT

if TYPE_CHECKING:
    from likeminds.data.annotations import Annotations
    from likeminds.metrics.by_person import MetricByPerson


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    ask = (
        "likeminds evaluate --model power.likeminds --annotations power/annotations.csv "
        "--features power/features.csv"
    )
    command(app, panel="Learn", examples=[DATA, FIT, ask])(evaluate)


def evaluate(
    talk: Talk,
    *,
    model: Model,
    annotations: Source,
    items: ItemOptions,
    columns: Columns,
    out: Table = None,
) -> None:
    """Score a model on labels: everybody's AUC, beside that of the consensus alone.

    Of grades, it is the concordance: the share of pairs of unequal grades in the right order.
    --out has that of each person. People the model does not know are ranked by the consensus.
    """
    from likeminds.cli._data import read_said
    from likeminds.cli._models import open_model, parts_of, rankers_of
    from likeminds.cli._show import arrow_table, refuse_two_outputs, rich_table
    from likeminds.data.sources import write_table

    refuse_two_outputs(talk, out)
    known = open_model(model)
    said = read_said(talk, annotations, items, columns, known).annotations
    found, people = [], []
    for name, part in parts_of(said, known).items():
        ranker = rankers_of(known, name or None)[name]
        _note_if_known(talk, known.fingerprint_of(name), part)
        one, by_person = _scores(ranker, part)
        about = {"attribute": name} if name else {}
        found.append(about | one)
        people += [about | row for row in by_person]
    talk.result({"model": str(model), "scores": found})
    if out is not None:
        write_table(arrow_table(people), out)
    if out != "-":
        talk.tell(rich_table("AUC: the share of a person's pairs in the right order", found))
        talk.remark("error: the standard error of the mean over people.")
    if out not in {None, "-"}:
        talk.remark(f"Everybody's AUC is in {out}.")


def _scores(ranker: Any, said: "Annotations") -> tuple[dict[str, Any], list[dict[str, Any]]]:
    import numpy as np

    from likeminds.data.identifiers import lookup
    from likeminds.metrics.concordance import concordance_by_person

    def judge(scores: Any) -> "MetricByPerson":
        return concordance_by_person(said.outcomes, scores, said.users, said.weights)

    own = judge(ranker.decision_function(said))
    weights = ranker.learned("consensus_")
    shared = np.zeros(len(said)) if weights is None else said.X @ weights
    if ranker.learned("item_effects_"):  # what all see in an item belongs to the consensus
        shared = shared + ranker._item_scores(said, None, np.full(len(said), -1))
    consensus = judge(shared)
    known = lookup(own.users, ranker.users_, "users") >= 0
    total = {
        "auc": own.mean,
        "error": own.standard_error,
        "consensus_auc": consensus.mean,
        "people": own.n_defined,
        "without_both_labels": len(own.undefined),
        "not_in_the_model": int((~known).sum()),
        "labels": len(said),
    }
    columns = (own.users.tolist(), own.values.tolist(), consensus.values.tolist(), known.tolist())
    names = ("person", "auc", "consensus_auc", "known")
    return total, [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _note_if_known(talk: Talk, mark: str | None, said: "Annotations") -> None:
    from likeminds.data.fingerprints import fingerprint

    if mark is not None and mark == fingerprint(said):
        talk.note(
            "these are the labels the model has learned from, so that the score flatters it; "
            "fit --holdout 0.2 gives an honest one."
        )
