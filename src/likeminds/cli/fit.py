"""``likeminds fit``: from a table of labels to a model in a file."""

import shlex
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from likeminds.cli._options import (
    SETTINGS,
    ComparisonOptions,
    Folds,
    Jobs,
    LabelOptions,
    LargeFitOptions,
    Seed,
    Texts,
    Without,
    option,
)
from likeminds.cli._output import Output
from likeminds.cli.main import DATA, FIT, command

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from likeminds._util.array_types import FloatArray
    from likeminds.data.annotations import Annotations
    from likeminds.metrics.by_user import MetricByUser
    from likeminds.rankers.ranker import Ranker

# Measures on held-out labels, and how they are shown.
_MEASURES = {
    "auc": ("AUC", "held-out labels"),
    "concordance": ("Concordance", "held-out grades"),
    "accuracy": ("Accuracy", "held-out comparisons"),
}


@command("Learn", DATA, f"{FIT} --holdout 0.2")
def fit(
    output: Output,
    *,
    data: LabelOptions,
    texts: Texts = None,
    pairs: ComparisonOptions,
    out: Annotated[Path, option("The file to write the model to.", "--out", "-o")],
    ranker: Annotated[
        str,
        option(
            "hierarchical (nothing to tune), three-level (the paper's, tuned), latent-class (a "
            "few classes of users, their number chosen by BIC), or a baseline: "
            "RMTL, rMTFL, Lasso, JFL, CMTL, COMT, RAMU, RidgeToConsensus, OnePerUser, "
            "ConsensusOnly, ..."
        ),
    ] = "hierarchical",
    holdout: Annotated[
        float | None,
        option(
            "First hold out this share of each user's labels, and put the score on them on the "
            "model's card; the model then learns from all."
        ),
    ] = None,
    without: Without = None,
    keep_data: Annotated[
        bool,
        option(
            "Keep the labels in the file, so update works and items need not be given again; "
            "without them, labels stay private.",
            "--keep-data/--no-data",
            panel=SETTINGS,
        ),
    ] = True,
    loss: Annotated[
        str | None, option("The loss, where the ranker has several.", panel=SETTINGS)
    ] = None,
    verb: Annotated[
        str | None,
        option(
            'What a positive label means: "find offensive", "agree with", "would buy"; {} is the '
            'attribute. By default "agree with" for votes, "choose" for choices, "find {}" for '
            'several attributes, else "rate high".',
            panel=SETTINGS,
        ),
    ] = None,
    folds: Folds = 5,
    jobs: Jobs = -1,
    seed: Seed = 0,
    large: LargeFitOptions,
) -> None:
    """Learn the ranking of each user from labels or comparisons, and save the model.

    A table with a column of attributes becomes a model of all of them, fitted at the same time.
    """
    from likeminds.cli._labels import read_labels
    from likeminds.cli.agreement import parse_verdicts
    from likeminds.schools.find import keep_schools
    from likeminds.storage.models import save, writable

    verdicts = [] if without is None else parse_verdicts(without)
    target = out if large.people_apart else writable(out)
    if large.requested:
        from likeminds.cli._large_fit import LargeFit

        started = time.perf_counter()
        new = _new_ranker(ranker, loss, folds, seed)
        unsupported: dict[str, object] = {"--holdout": holdout, "--comparisons": pairs.comparisons}
        unsupported |= {"--texts": texts, "--images": data.images, "--without": without}
        path = LargeFit(output, large, data, new, target, verb, learn_watched).run(unsupported)
        _show_result(output, path, {}, time.perf_counter() - started)
        _show_next(output, path, data)
        return
    read = read_labels(output, data, pairs, texts=texts)
    annotations = read.annotations if verb is None else read.annotations.with_verb(verb)
    output.show(str(annotations))
    new = _new_ranker(ranker, loss, folds, seed)
    if read.words_only and "standardize" in new.get_params():
        new.set_params(standardize=False)  # words differ in size as they matter
    _show_items_unshared(output, new, annotations)
    started = time.perf_counter()
    scores: dict[str, Any] = {}
    if verdicts:
        annotations = _without(output, new, annotations, verdicts, jobs)
    if holdout is not None:
        scores = _held_out(output, new, annotations, holdout, jobs, seed)
        if read.words_only:
            _compare_without_texts(output, new, annotations, holdout, seed)
    model = _learn(output, new, annotations, jobs)
    if read.reduction is not None:
        model.pictures_ = read.reduction.as_attribute()
    model.name_items(read.names)
    if keep_data:
        for one in model.rankers_.values():
            keep_schools(one)  # explain and report need not find them again
    # A model of several attributes has the fingerprints of its data.
    own_data = None if model.has_attributes else annotations
    path = save(model, target, with_data=keep_data, data=own_data, scores=scores)
    _show_result(output, path, scores, time.perf_counter() - started)
    _show_next(output, path, data)


def _new_ranker(name: str, loss: str | None, folds: int, seed: int) -> Any:
    from likeminds.rankers.registry import ranker_called

    called, ranker = ranker_called(name, folds, seed)
    if loss is None:
        return ranker
    parameters = ranker.get_params()
    parameter = "loss" if "loss" in parameters else "ranker__loss"
    if parameter not in parameters:
        raise ValueError(f"{called} has no choice of loss: leave out --loss.")
    return ranker.set_params(**{parameter: loss})


def _without(
    output: Output, ranker: "Ranker", annotations: "Annotations", verdicts: list[str], jobs: int
) -> "Annotations":
    """Return the labels without those of annotators with the verdicts, by a first fit."""
    import numpy as np

    from likeminds.cli._models import by_attribute
    from likeminds.cli.agreement import without_verdicts

    first = _learn(output, ranker, annotations, jobs)
    kept = without_verdicts(output, verdicts, first, by_attribute(annotations))
    about = annotations.attributes
    if about is None:
        return kept[""]
    rows = [np.isin(annotations.users, p.users) & (about.astype(str) == a) for a, p in kept.items()]
    return annotations[np.any(rows, axis=0)]


def _show_items_unshared(output: Output, ranker: "Ranker", annotations: "Annotations") -> None:
    """Print that item effects are off, because no two users labelled the same item."""
    from likeminds.mixed_model.item_effects.item_responses import NOT_SHARED, are_shared
    from likeminds.mixed_model.losses import choose_loss

    parameters = ranker.get_params(deep=False)
    if parameters.get("item_effects") != "auto" or not annotations.has_items:
        return
    if are_shared(annotations):
        return
    if choose_loss(parameters["loss"], annotations).takes_items:
        output.hint(NOT_SHARED)


def _held_out(  # noqa: PLR0917 - what a fit needs
    output: Output,
    ranker: "Ranker",
    annotations: "Annotations",
    share: float,
    jobs: int,
    seed: int,
) -> dict[str, Any]:
    """Return the mean score on held-out labels, its error, and that of the consensus.

    For grades, it is the concordance; for comparisons, the accuracy; else the AUC.
    """
    from likeminds.cli._models import by_attribute
    from likeminds.data.splits import split_within_users
    from likeminds.rankers.capabilities import with_consensus

    parts = by_attribute(annotations)
    sides = {name: split_within_users(part, share, seed) for name, part in parts.items()}
    train = {name: side[0] for name, side in sides.items()}
    model = _learn(output, ranker, train.get("", train), jobs)
    found: dict[str, Any] = {"held_out": share}
    for name, (_, test) in sides.items():
        fitted = model._ranker_of(name)
        measure, metric = _judged(test, with_consensus(fitted).decision_function(test))
        same_for_all = _judged(test, fitted.consensus_scores(test))[1]
        found[f"{measure} {name}".strip()] = metric.mean
        found[f"error {name}".strip()] = metric.standard_error
        found[f"baseline {name}".strip()] = same_for_all.mean
    return found


def _judged(test: "Annotations", scores: "FloatArray") -> tuple[str, "MetricByUser"]:
    """Return the measure that suits held-out labels, and its values."""
    from likeminds.data.coded_labels import are_choices
    from likeminds.metrics.choices import score_choices
    from likeminds.metrics.concordance import concordance_by_user, measure_of

    if test.choice_set_codes is not None and test.choice_set_ids is None and are_choices(test):
        return "accuracy", score_choices(test, scores).accuracy
    judged = concordance_by_user(test.outcomes, scores, test.users, test.weights)
    return measure_of(test.outcomes).lower(), judged


def _compare_without_texts(
    output: Output, ranker: "Ranker", annotations: "Annotations", share: float, seed: int
) -> None:
    """Print whether texts predict held-out labels better than ids alone."""
    import numpy as np
    from sklearn.base import clone

    from likeminds.data.splits import split_within_users
    from likeminds.metrics.paired import over_users
    from likeminds.mixed_model.item_effects.item_responses import are_shared
    from likeminds.rankers.capabilities import with_consensus

    single = annotations.attribute_ids is None and annotations.choice_set_codes is None
    if not single or not are_shared(annotations):
        return
    none = np.zeros((len(annotations.features), 0))
    found = []
    for one in (annotations, annotations._with(features=none, feature_names=())):
        train, test = split_within_users(one, share, seed)
        scores = with_consensus(clone(ranker).fit(train)).decision_function(test)
        found.append(_judged(test, scores)[1])
    change = over_users(found[0].values - found[1].values)
    pays = "texts pay" if change.low > 0 else "texts do not pay for items that were labelled"
    output.show(
        f"Without texts: {found[1].mean:.3f}; with texts {change.mean:+.3f} (95 % interval "
        f"{change.low:+.3f} to {change.high:+.3f}): {pays}. New items have nothing but texts."
    )


def _learn(
    output: Output, ranker: "Ranker", data: "Annotations | dict[str, Annotations]", jobs: int
) -> Any:
    """Fit one ranker, or one for each attribute, with a progress bar."""
    from sklearn.base import clone

    from likeminds.rankers.multi_attribute import AttributeModel

    with output.bar() as bar:
        task = bar.add_task("learning", total=None)
        if not isinstance(data, dict) and data.attribute_ids is None:
            return learn_watched(clone(ranker), bar, task, lambda model: model.fit(data))
        return AttributeModel(ranker, n_jobs=jobs).fit(data, callback=attribute_callback(bar, task))


def attribute_callback(bar: "Progress", task: "TaskID") -> Callable[[str, int, int], None]:
    """Return the callback of a model of several attributes, which moves a progress bar."""

    def show(name: str, done: int, total: int) -> None:
        bar.update(task, description=f"{name} done", completed=done, total=total)

    return show


def learn_watched(
    ranker: "Ranker", bar: "Progress", task: "TaskID", work: "Callable[[Ranker], Ranker]"
) -> Any:
    """Fit a ranker; if it has a callback, show its steps."""
    bar.update(task, description="learning", completed=0, total=None)
    if "callback" not in ranker.get_params(deep=False):
        return work(ranker)
    steps = count(1)

    def show(step: int, objective: float, residual: float) -> bool:  # noqa: ARG001
        # A fit consists of several descents: their steps are counted together.
        description = f"learning (objective {objective:.6g}), step"
        bar.update(task, description=description, completed=next(steps), total=None)
        return False

    ranker.set_params(callback=show)
    try:
        return work(ranker)
    finally:
        # A function cannot be saved.
        ranker.set_params(callback=None)


def _show_result(output: Output, path: Path, scores: dict[str, Any], seconds: float) -> None:
    from likeminds._util.text_format import counted
    from likeminds.storage.models import read_card

    card = read_card(path)
    output.json({"model": str(path), "seconds": round(seconds, 3), "card": card})
    for name, value in scores.items():
        measure, _, attribute = name.partition(" ")
        if measure in _MEASURES:
            called, of_what = _MEASURES[measure]
            error, base = (scores[f"{one} {attribute}".strip()] for one in ("error", "baseline"))
            output.show(
                f"{called}, {attribute or of_what}: {value:.3f} ± {error:.3f} (mean over people); "
                f"baseline, one ranking for all: {base:.3f}"
            )
    kind = str(card["ranker"])
    if card["attributes"]:
        first = next(iter(card["attributes"].values()))
        kind = f"{first['ranker']} for {', '.join(card['attributes'])}"
    labels = "with" if card["takes_updates"] else "without"
    files = path.iterdir() if path.is_dir() else [path]
    size = sum(file.stat().st_size for file in files) / 1e6
    output.show(
        f" ({size:.1f} MB, {labels} its labels): {kind}, "
        f"{counted(card['people'], 'person', 'people')}, "
        f"{counted(len(card['features']), 'feature')}",
        head=str(path),
    )


def _show_next(output: Output, path: Path, data: LabelOptions) -> None:
    """Propose commands that work with this model and its items."""
    from likeminds._util.console import program
    from likeminds._util.verbs import RATE
    from likeminds.rankers.capabilities import Capability
    from likeminds.storage.models import load

    if output.as_json or output.quiet:
        return
    model = load(path)
    file, items = shlex.quote(str(path)), ""
    has_items = model.training_items() is not None
    if not has_items:
        items = "".join(
            f" {name} {shlex.quote(str(source))}"
            for name, source in (("--features", data.features), ("--images", data.images))
            if source not in {None, "-"}
        )
    best = [ranker._best_model for ranker in model.rankers_.values()]
    steps = []
    if items or has_items:
        verbs = {one.verb for one in best}
        what = verbs.pop() if len(verbs) == 1 else RATE
        steps.append((f"rank {file}{items} --top 5", f"what everyone {what.most()}"))
    if all(Capability.LEVELS.of(one) for one in best):
        steps.append((f"explain {file}{items}", "who thinks alike, and on what"))
    page = shlex.quote(f"{path.stem}.html")
    steps.append((f"report {file} --out {page}", "all of it on one page"))
    width = max(len(step) for step, _ in steps) + 4
    lines = [f"{program()} {step.ljust(width)}{what}" for step, what in steps]
    output.hint("\nNext: " + "\n      ".join(lines))
