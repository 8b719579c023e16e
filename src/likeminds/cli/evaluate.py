"""``likeminds evaluate``: how well a model ranks what people said."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from likeminds.cli._command import command
from likeminds.cli._options import ComparisonOptions, ItemOptions, LabelColumns, Model, Seed, Table
from likeminds.cli._options import OptionalAnnotations as Source
from likeminds.cli._output import Output
from likeminds.cli.fit import DATA, FIT

if TYPE_CHECKING:
    from likeminds.data.annotations import Annotations
    from likeminds.metrics.by_user import MetricByUser


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    ask = (
        "likeminds evaluate power.likeminds --annotations power/annotations.csv "
        "--features power/features.csv"
    )
    command(app, panel="Learn", examples=[DATA, FIT, ask])(evaluate)


def evaluate(
    talk: Output,
    *,
    model: Model,
    annotations: Source = None,
    items: ItemOptions,
    columns: LabelColumns,
    pairs: ComparisonOptions,
    shots: Annotated[
        list[int] | None,
        typer.Option(
            "--shots",
            min=0,
            help="Tell the model so many choices or labels of people it does not know, and judge "
            "it on their others; several numbers may follow: 0 5 10.",
        ),
    ] = None,
    seed: Seed = 0,
    out: Table = None,
) -> None:
    """Score a model on labels: everybody's AUC, beside that of the consensus alone.

    Of grades, it is the concordance: the share of pairs of unequal grades in the right order.
    --out has that of each person. Labels of unknown users are an error, unless --shots says how
    many of them to learn from: with --shots 0, the consensus ranks. So are labels of unknown items,
    where the model has no features: with --shots, these score as average items.
    Comparisons are judged by the share that is predicted, and by its log loss.
    """
    from likeminds.cli._labels import read_said
    from likeminds.cli._models import open_model, parts_of, rankers_of
    from likeminds.cli._tables import arrow_table, refuse_two_outputs, rich_table
    from likeminds.data.sources import write_table

    refuse_two_outputs(talk, out)
    known = open_model(model)
    said = read_said(talk, annotations, items, columns, known, pairs).annotations
    found, people = [], []
    by_shots = shots is not None or annotations is None
    for name, part in parts_of(said, known).items():
        ranker = rankers_of(known, name or None)[name]
        _note_if_known(talk, known.fingerprint_of(name), part)
        if by_shots:
            rows, by_user = _by_shots(ranker, part, shots or [0], seed, name)
            found += rows
            people += by_user
            continue
        one, by_user = _scores(ranker, part)
        about = {"attribute": name} if name else {}
        found.append(about | one)
        people += [about | row for row in by_user]
    talk.result({"model": str(model), "scores": found})
    if out is not None:
        write_table(arrow_table(people), out)
    if out != "-":
        talk.tell(rich_table(_title(found, by_shots=by_shots), found))
        talk.remark("error: the standard error of the mean over people.")
    if out not in {None, "-"}:
        talk.remark(f"Everybody's scores are in {out}.")


def _title(found: list[dict[str, Any]], *, by_shots: bool) -> str:
    if by_shots:
        return "Shots: how many choices (or labels) of people the model was told"
    if any("concordance" in row for row in found):
        return "Concordance: the share of a person's pairs of unequal grades in the right order"
    return "AUC: the share of a person's pairs in the right order"


def _by_shots(
    ranker: Any, said: "Annotations", shots: list[int], seed: int, name: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a row for those the model knows, and one for each number of shots; and everybody's."""
    from likeminds.comparing.few_shot import score_shots

    about = {"attribute": name} if name else {}
    total, everybody = [], []
    for one in score_shots(ranker, said, shots, seed):
        row = one.as_row()
        total.append(about | row)
        metrics = one.measures.items()
        for place, person in enumerate(next(iter(one.measures.values())).users.tolist()):
            values = {measure: float(metric.values[place]) for measure, metric in metrics}
            group = {"people": row["people"], "shots": one.shots}
            everybody.append({"user": person} | about | group | values)
    return total, everybody


def _scores(ranker: Any, said: "Annotations") -> tuple[dict[str, Any], list[dict[str, Any]]]:
    from likeminds._util.checks import listing
    from likeminds._util.text_format import counted
    from likeminds.data.identifiers import lookup
    from likeminds.metrics.concordance import concordance_by_user, measure_of

    def judge(scores: Any) -> "MetricByUser":
        return concordance_by_user(said.outcomes, scores, said.users, said.weights)

    strangers = said.user_ids[lookup(said.user_ids, ranker.users_, "users") < 0]
    if len(strangers):
        raise ValueError(
            f"{counted(len(strangers), 'user')} of these labels not in the model: "
            f"{listing(strangers)}. --shots 0 scores unknown users by the consensus, --shots 5 "
            "after five labels each."
        )
    own = judge(ranker.decision_function(said))
    consensus = judge(ranker.consensus_scores(said))
    measure = measure_of(said.outcomes).lower()
    total = {
        measure: own.mean,
        "error": own.standard_error,
        f"consensus_{measure}": consensus.mean,
        "people": own.n_defined,
        "without_both_labels": len(own.undefined),
        "labels": len(said),
    }
    columns = (own.users.tolist(), own.values.tolist(), consensus.values.tolist())
    names = ("user", measure, f"consensus_{measure}")
    return total, [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _note_if_known(talk: Output, mark: str | None, said: "Annotations") -> None:
    from likeminds.data.fingerprints import fingerprint

    if mark is not None and mark == fingerprint(said):
        talk.note(
            "these are the labels the model has learned from, so that the score flatters it; "
            "fit --holdout 0.2 gives an honest one."
        )
