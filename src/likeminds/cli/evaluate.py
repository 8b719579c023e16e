"""``likeminds evaluate`` and ``compare``: the accuracy of a model, or of several rankers."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import likeminds
from likeminds._util.atomic_files import folder_for, place_for, write_whole
from likeminds._util.lazy_imports import np
from likeminds._util.text_format import counted, listing
from likeminds.cli._labels import read_labels
from likeminds.cli._models import Rows, about, by_attribute, joined, parts_of, rankers_of
from likeminds.cli._options import (
    ComparisonOptions,
    Folds,
    Jobs,
    LabelOptions,
    Model,
    Seed,
    Table,
    option,
)
from likeminds.cli._output import Output, write_rows
from likeminds.cli.main import DATA, FIT, command

if TYPE_CHECKING:
    from likeminds._util.array_types import FloatArray
    from likeminds.comparing.comparison import Comparison
    from likeminds.data.annotations import Annotations
    from likeminds.metrics.by_user import MetricByUser
    from likeminds.rankers.multi_attribute import AttributeModel
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
    shots: list[int] | None = option(
        "Learn from this number of choices or labels of each new user, and score on the rest. "
        "Several numbers may follow: 0 5 10.",
        min=0,
        default=None,
    ),
    seed: Seed = 0,
    out: Table = None,
) -> None:
    """Score a model on labels: the AUC of each user, compared with that of the consensus.

    For grades, the score is the concordance: the share of pairs of unequal grades in the right
    order. For comparisons, it is the share predicted correctly, with the log loss. --out writes the
    score of each user. Users who are not in the model need --shots, the number of their labels to
    learn from; --shots 0 ranks by the consensus. In a model without features, unknown items need
    --shots, too, and score as average items.
    """
    output.refuse_two_results(out)
    loaded = likeminds.load(model)
    annotations = read_labels(output, data, pairs, model=loaded).annotations
    found, users = [], []
    by_shots = shots is not None or data.annotations is None
    for name, part in parts_of(annotations, loaded).items():
        ranker = rankers_of(loaded, name or None)[name]
        mark = loaded.fingerprint_of(name)
        if mark is not None and mark == likeminds.fingerprint(part):
            output.note(
                "these are the training labels of the model, so the score is too high; "
                "fit --holdout 0.2 scores held-out labels."
            )
        judged = _by_shots(ranker, part, shots or [0], seed) if by_shots else _scores(ranker, part)
        found += [about(name) | row for row in judged[0]]
        users += [about(name) | row for row in judged[1]]
    classes = _class_scores(loaded, annotations) if annotations.is_nominal and not by_shots else {}
    output.json({"model": str(model), "scores": found} | classes)
    if out is not None:
        write_rows(users, out)
    if out != "-":
        output.table(_title(found, by_shots=by_shots), found)
        output.hint("error: the standard error of the mean over people.")
        if classes:
            output.show(
                "Accuracy of classes: {class_accuracy:.3f} ± {error:.3f} (mean over people); "
                "the same class for all: {baseline:.3f}; log loss {log_loss:.3f}".format(**classes)
            )
    if out not in {None, "-"}:
        output.hint(f"The scores of each user are in {out}.")


def _title(found: Rows, *, by_shots: bool) -> str:
    if by_shots:
        return "Shots: the number of choices (or labels) of each new user to learn from"
    if any("concordance" in row for row in found):
        return "Concordance: the share of a user's pairs of unequal grades in the right order"
    return "AUC: the share of a user's pairs in the right order"


def _by_shots(
    ranker: "Ranker", annotations: "Annotations", shots: list[int], seed: int
) -> tuple[Rows, Rows]:
    """Return rows for known users and for each number of shots, and a row for each user."""
    total, users = [], []
    for one in likeminds.score_shots(ranker, annotations, shots, seed):
        row = one.as_row()
        total.append(row)
        group = {"users": row["users"], "shots": one.shots}
        users += [{"user": own["user"]} | group | own for own in _by_user(one.measures)]
    return total, users


def _scores(ranker: "Ranker", annotations: "Annotations") -> tuple[Rows, Rows]:
    """Return a row for all users, and one for each."""
    from likeminds.data.identifiers import lookup
    from likeminds.metrics.concordance import concordance_by_user, measure_of

    unknown = annotations.user_ids[lookup(annotations.user_ids, ranker.users_, "users") < 0]
    if len(unknown):
        raise ValueError(
            f"{counted(len(unknown), 'user')} not in the model: {listing(unknown)}. --shots 0 "
            "scores unknown users by the consensus, --shots 5 after five labels each."
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
        "users": own.n_defined,
        "without_both_labels": len(own.undefined),
        "labels": len(annotations),
    }
    return [total], _by_user({measure: own, f"consensus_{measure}": consensus})


def _by_user(metrics: "dict[str, MetricByUser]") -> Rows:
    """Return a row for each user, with the metrics of the same users by their names."""
    users = next(iter(metrics.values())).users.tolist()
    columns = {"user": users} | {name: one.values.tolist() for name, one in metrics.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def score_held_out(
    learn: "Callable[[Annotations | dict[str, Annotations]], Ranker | AttributeModel]",
    annotations: "Annotations",
    share: float,
    seed: int,
) -> dict[str, Any]:
    """Return the mean score on held-out labels, its standard error, and the consensus's score.

    For grades, the score is the concordance; for comparisons, the accuracy; else the AUC.
    """
    from likeminds.rankers.capabilities import with_consensus

    if annotations.is_nominal:
        known, held_out = likeminds.split_within_users(annotations, share, seed)
        return {"held_out": share} | _class_scores(learn(known), held_out)
    parts = by_attribute(annotations)
    sides = {name: likeminds.split_within_users(part, share, seed) for name, part in parts.items()}
    train = {name: side[0] for name, side in sides.items()}
    model = learn(train.get("", train))
    found: dict[str, Any] = {"held_out": share}
    for name, (_, test) in sides.items():
        fitted = model._ranker_of(name)
        measure, metric = _judged(test, with_consensus(fitted).decision_function(test))
        same_for_all = _judged(test, fitted.consensus_scores(test))[1]
        found[f"{measure} {name}".strip()] = metric.mean
        found[f"error {name}".strip()] = metric.standard_error
        found[f"baseline {name}".strip()] = same_for_all.mean
    return found


def _class_scores(model: Any, test: "Annotations") -> dict[str, float]:
    """Return accuracy and log loss of classes, and the accuracy of the consensus."""
    from likeminds.rankers.nominal import row_chances

    rows = test[test.labels]
    items = rows.items if rows.has_items else None
    chances = (model.predict_proba(test), model.predict_proba(rows.X, items=items))
    own, consensus = (
        likeminds.score_choices(test, row_chances(test, c), row_chances(test, c)) for c in chances
    )
    return {
        "class_accuracy": own.accuracy.mean,
        "error": own.accuracy.standard_error,
        "baseline": consensus.accuracy.mean,
        "log_loss": own.log_loss.mean,
    }


def _judged(test: "Annotations", scores: "FloatArray") -> tuple[str, "MetricByUser"]:
    """Return the measure for held-out labels, and its values."""
    from likeminds.data.coded_labels import are_choices
    from likeminds.metrics.concordance import concordance_by_user, measure_of

    if test.choice_set_codes is not None and test.choice_set_ids is None and are_choices(test):
        return "accuracy", likeminds.score_choices(test, scores).accuracy
    judged = concordance_by_user(test.outcomes, scores, test.users, test.weights)
    return measure_of(test.outcomes).lower(), judged


def compare_without_texts(
    output: Output, ranker: "Ranker", annotations: "Annotations", share: float, seed: int
) -> None:
    """Print whether texts improve the predictions of held-out labels."""
    from sklearn.base import clone

    from likeminds.metrics.paired import over_users
    from likeminds.mixed_model.item_effects.item_responses import are_shared
    from likeminds.rankers.capabilities import with_consensus

    single = annotations.attribute_ids is None and annotations.choice_set_codes is None
    if not single or not are_shared(annotations):
        return
    none = np.zeros((len(annotations.features), 0))
    found = []
    for one in (annotations, annotations._with(features=none, feature_names=())):
        train, test = likeminds.split_within_users(one, share, seed)
        scores = with_consensus(clone(ranker).fit(train)).decision_function(test)
        found.append(_judged(test, scores)[1])
    change = over_users(found[0].values - found[1].values)
    improve = "texts improve" if change.low > 0 else "texts do not improve"
    output.show(
        f"Without texts: {found[1].mean:.3f}; with texts {change.mean:+.3f} (95 % interval "
        f"{change.low:+.3f} to {change.high:+.3f}): {improve} predictions of labelled items. "
        "Predictions of new items need texts."
    )


@command(
    "Learn",
    "likeminds simulate --n-users 40 --out crowd",
    "likeminds compare --annotations crowd/annotations.csv --features crowd/features.csv "
    "--ranker hierarchical --ranker RidgeToConsensus --ranker consensus --repeats 2",
)
def compare(
    output: Output,
    *,
    data: LabelOptions,
    ranker: list[str] | None = option(
        "A ranker to compare, by name, or all; may be repeated. By default, all; with more "
        "than 20,000 labels, only rankers without long searches.",
        default=None,
    ),
    repeats: int | None = option(
        "Number of splits. By default, 5; with more than 20,000 labels, 2.", min=1, default=None
    ),
    holdout: float = option("The share of labels held out.", default=0.15),
    folder: Path | None = option(
        "A folder for finished fits, from which an interrupted run resumes.", default=None
    ),
    out: Path | None = option(
        "Write the comparison: .md, .csv, .parquet, .arrow or .json.", "--out", "-o", default=None
    ),
    plot: Path | None = option("Draw a box plot of the rankers: .png, .svg, .pdf.", default=None),
    folds: Folds = 5,
    jobs: Jobs = -1,
    seed: Seed = 0,
) -> None:
    """Compare rankers on the same splits, each tuned on training labels (the paper's protocol)."""
    from likeminds.comparing.comparison import ALL, compare_each
    from likeminds.comparing.runs import MANY_LABELS
    from likeminds.rankers.registry import ranker_called

    _refuse_bad_places(out, plot, folder)
    annotations = read_labels(output, data).annotations
    output.show(str(annotations))
    options: dict[str, Any] = {
        "repeats": repeats or (5 if len(annotations) <= MANY_LABELS else 2),
        "test_size": holdout,
        "n_folds": folds,
        "n_jobs": jobs,
    }
    options |= {"folder": folder, "random_state": seed, "progress": not output.quiet}
    named: Any = ALL if ranker else None
    if ranker and ranker != [ALL]:
        named = dict(ranker_called(name, folds, seed) for name in ranker)
    found = compare_each(by_attribute(annotations), named, **options)
    output.json({"comparisons": [_as_result(name, one) for name, one in found.items()]})
    for name, one in found.items():
        output.show("", head=f"\n{name}" if name else "")
        if not output.as_json:
            output.console.print(str(one), soft_wrap=True)
    if out is not None:
        _write(found, out)
        output.hint(f"\nWritten: {out}")
    if plot is not None:
        _draw(found, plot)
        output.hint(f"\nDrawn: {plot}")


def _refuse_bad_places(out: Path | None, plot: Path | None, folder: Path | None) -> None:
    """Raise an error before any fit for files that cannot be written."""
    from likeminds.data.sources import as_written
    from likeminds.plots.figures import new_figure

    if folder is not None:
        folder_for(folder, "the results")
    if out is not None and out.suffix == ".md":
        place_for(out, "the comparison")
    elif out is not None:
        as_written(out)
    if plot is not None:
        supported = new_figure(1, 1, shown=False).canvas.get_supported_filetypes()
        if plot.suffix.lower().removeprefix(".") not in supported:
            endings = ", ".join(f".{ending}" for ending in sorted(supported))
            raise ValueError(f"Cannot draw a plot to {plot}: end its name in {endings}.")
        place_for(plot, "the picture")


def _as_result(name: str, comparison: "Comparison") -> dict[str, Any]:
    return {
        "attribute": name or None,
        "measure": comparison.measure,
        "rankers": comparison.summary().to_pylist(),
        "paired": comparison.paired().to_pylist(),
        "users": len(comparison.users),
        "test_size": comparison.test_size,
    }


def _write(found: "dict[str, Comparison]", out: Path) -> None:
    if out.suffix == ".md":
        pages = [
            f"## {name}\n\n{one.to_markdown()}" if name else one.to_markdown()
            for name, one in found.items()
        ]
        write_whole(out, ("\n\n".join(pages) + "\n").encode())
    else:
        write_rows(joined({name: one.summary().to_pylist() for name, one in found.items()}), out)


def _draw(found: "dict[str, Comparison]", plot: Path) -> None:
    from likeminds.plots.figures import new_figure, take_names_as_text

    figure = new_figure(8, 4 * len(found), shown=False)
    all_axes = figure.subplots(len(found), squeeze=False)[:, 0]
    for axes, (name, one) in zip(all_axes, found.items(), strict=True):
        one.boxplot(axes)
        if name:
            axes.set_title(f"{name}: {axes.get_title()}")
    content = io.BytesIO()
    take_names_as_text(figure)
    figure.savefig(content, format=plot.suffix.lower().removeprefix("."))
    write_whole(plot, content.getvalue())
