"""``likeminds evaluate``: the accuracy of a model on labels."""

from typing import TYPE_CHECKING, Annotated

from likeminds.cli._models import Rows
from likeminds.cli._options import ComparisonOptions, LabelOptions, Model, Seed, Table, option
from likeminds.cli._output import Output, write_rows
from likeminds.cli.main import DATA, FIT, command

if TYPE_CHECKING:
    from likeminds.data.annotations import Annotations
    from likeminds.rankers.ranker import Ranker


@command(
    "Learn",
    DATA,
    FIT,
    "likeminds evaluate power.likeminds --annotations power/annotations.csv "
    "--features power/features.csv",
)
def evaluate(
    output: Output,
    *,
    model: Model,
    data: LabelOptions,
    pairs: ComparisonOptions,
    shots: Annotated[
        list[int] | None,
        option(
            "Give the model so many choices or labels of each new user, and score it on the rest; "
            "several numbers may follow: 0 5 10.",
            min=0,
        ),
    ] = None,
    seed: Seed = 0,
    out: Table = None,
) -> None:
    """Score a model on labels: the AUC of each user, compared with that of the consensus.

    For grades, it is the concordance: the share of pairs of unequal grades in the right order.
    --out has that of each user. Labels of unknown users are an error, unless --shots says how
    many of them to learn from: with --shots 0, the consensus ranks. So are labels of unknown items,
    where the model has no features: with --shots, these score as average items.
    Comparisons are judged by the share that is predicted, and by its log loss.
    """
    from likeminds.cli._labels import read_labels
    from likeminds.cli._models import about, parts_of, rankers_of
    from likeminds.data.fingerprints import fingerprint
    from likeminds.storage.models import load

    output.refuse_two_results(out)
    loaded = load(model)
    annotations = read_labels(output, data, pairs, model=loaded).annotations
    found, users = [], []
    by_shots = shots is not None or data.annotations is None
    for name, part in parts_of(annotations, loaded).items():
        ranker = rankers_of(loaded, name or None)[name]
        mark = loaded.fingerprint_of(name)
        if mark is not None and mark == fingerprint(part):
            output.note(
                "these are the training labels of the model, so the score is too high; "
                "fit --holdout 0.2 scores held-out labels."
            )
        judged = _by_shots(ranker, part, shots or [0], seed) if by_shots else _scores(ranker, part)
        found += [about(name) | row for row in judged[0]]
        users += [about(name) | row for row in judged[1]]
    output.json({"model": str(model), "scores": found})
    if out is not None:
        write_rows(users, out)
    if out != "-":
        output.table(_title(found, by_shots=by_shots), found)
        output.hint("error: the standard error of the mean over people.")
    if out not in {None, "-"}:
        output.hint(f"The scores of each user are in {out}.")


def _title(found: Rows, *, by_shots: bool) -> str:
    if by_shots:
        return "Shots: the number of choices (or labels) of each new user that the model was given"
    if any("concordance" in row for row in found):
        return "Concordance: the share of a person's pairs of unequal grades in the right order"
    return "AUC: the share of a person's pairs in the right order"


def _by_shots(
    ranker: "Ranker", annotations: "Annotations", shots: list[int], seed: int
) -> tuple[Rows, Rows]:
    """Return a row for known users and one for each number of shots; and one for each user."""
    from likeminds.comparing.few_shot import score_shots

    total, users = [], []
    for one in score_shots(ranker, annotations, shots, seed):
        row = one.as_row()
        total.append(row)
        metrics = one.measures.items()
        for place, user in enumerate(next(iter(one.measures.values())).users.tolist()):
            values = {measure: float(metric.values[place]) for measure, metric in metrics}
            group = {"people": row["people"], "shots": one.shots}
            users.append({"user": user} | group | values)
    return total, users


def _scores(ranker: "Ranker", annotations: "Annotations") -> tuple[Rows, Rows]:
    """Return a row for all users, and one for each."""
    from likeminds._util.checks import listing
    from likeminds._util.text_format import counted
    from likeminds.data.identifiers import lookup
    from likeminds.metrics.concordance import concordance_by_user, measure_of

    unknown = annotations.user_ids[lookup(annotations.user_ids, ranker.users_, "users") < 0]
    if len(unknown):
        raise ValueError(
            f"{counted(len(unknown), 'user')} of these labels not in the model: "
            f"{listing(unknown)}. --shots 0 scores unknown users by the consensus, --shots 5 "
            "after five labels each."
        )
    outcomes, users, weights = annotations.outcomes, annotations.users, annotations.weights
    own, consensus = (
        concordance_by_user(outcomes, score(annotations), users, weights)
        for score in (ranker.decision_function, ranker.consensus_scores)
    )
    measure = measure_of(outcomes).lower()
    total = {
        measure: own.mean,
        "error": own.standard_error,
        f"consensus_{measure}": consensus.mean,
        "people": own.n_defined,
        "without_both_labels": len(own.undefined),
        "labels": len(annotations),
    }
    columns = (own.users.tolist(), own.values.tolist(), consensus.values.tolist())
    names = ("user", measure, f"consensus_{measure}")
    return [total], [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
