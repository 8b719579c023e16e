"""``likeminds fit``: from a table of labels to a model in a file."""

import shlex
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likeminds.cli._command import command
from likeminds.cli._fit_request import FitRequest
from likeminds.cli._options import (
    ClusterOptions,
    ComparisonOptions,
    Folds,
    ItemOptions,
    Jobs,
    LabelColumns,
    OutOfCoreOptions,
    Seed,
    Texts,
)
from likeminds.cli._options import OptionalAnnotations as Source
from likeminds.cli._output import Output

if TYPE_CHECKING:
    from likeminds.data.annotations import Annotations
    from likeminds.metrics.by_user import MetricByUser

DATA = "likeminds data electricity --out power"
FIT = (
    "likeminds fit --annotations power/annotations.csv --features power/features.csv "
    "--out power.likeminds"
)

# What held-out labels are judged by, as it is told.
_MEASURES = {
    "auc": ("AUC", "held-out labels"),
    "concordance": ("Concordance", "held-out grades"),
    "accuracy": ("Accuracy", "held-out comparisons"),
}


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    command(app, panel="Learn", examples=[DATA, f"{FIT} --holdout 0.2"])(fit)


def fit(
    talk: Output,
    *,
    annotations: Source = None,
    items: ItemOptions,
    texts: Texts = None,
    columns: LabelColumns,
    pairs: ComparisonOptions,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the model goes: one file.")],
    ranker: Annotated[
        str,
        typer.Option(
            help="hierarchical (nothing to tune), three-level (the paper's, tuned), or a "
            "competitor: RMTL, rMTFL, Lasso, JFL, CMTL, COMT, RAMU, RidgeToConsensus, "
            "OnePerUser, ConsensusOnly, ...",
        ),
    ] = "hierarchical",
    loss: Annotated[
        str | None, typer.Option(help="What the ranker minimises, where it has a choice.")
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(
            help="First hold out this share of everybody's labels, and put the score on them on "
            "the model's card; the model then learns from all.",
        ),
    ] = None,
    verb: Annotated[
        str | None,
        typer.Option(
            "--verb",
            help='What people who say yes do with items: "find offensive", "agree with", "would '
            'buy"; {} is the attribute. By default "agree with" for votes, "choose" for choices, '
            '"find {}" for several attributes, else "like".',
        ),
    ] = None,
    keep_data: Annotated[
        bool,
        typer.Option(
            "--keep-data/--no-data",
            help="Keep the labels in the file, so that update works and items need not be given "
            "again; without them, nobody's labels leave your hands.",
        ),
    ] = True,
    on_disk: OutOfCoreOptions,
    on_cluster: ClusterOptions,
    folds: Folds = 5,
    jobs: Jobs = -1,
    seed: Seed = 0,
) -> None:
    """Learn everybody's ranking from a table of labels or comparisons, and save the model.

    A table with a column of attributes becomes a model of all of them, fitted at the same time.
    """
    from likeminds.cli._labels import read_said
    from likeminds.cli._models import keep_schools_of
    from likeminds.storage.models import save, writable

    target = out if on_cluster.people_apart else writable(out)
    refused = {"--holdout": holdout, "--comparisons": pairs.comparisons, "--texts": texts}
    large = _large_fit(on_disk, on_cluster)
    if large is not None:
        started = time.perf_counter()
        new = _new_ranker(ranker, loss, folds, seed)
        asked = FitRequest(annotations, items, columns, new, target, learn_watched, refused, verb)
        path = large(talk, asked)
        _tell(talk, path, {}, time.perf_counter() - started)
        _propose(talk, path, items)
        return
    said = read_said(talk, annotations, items, columns, pairs=pairs, texts=texts)
    if verb is not None:
        said = replace(said, annotations=said.annotations.with_verb(verb))
    talk.tell(str(said.annotations))
    new = _new_ranker(ranker, loss, folds, seed)
    if said.words_only and "standardize" in new.get_params():
        new.set_params(standardize=False)  # words differ in size as they matter
    _tell_of_items(talk, new, said.annotations)
    started = time.perf_counter()
    scores = {} if holdout is None else _held_out(talk, new, said.annotations, holdout, jobs, seed)
    if holdout is not None and said.words_only:
        _tell_of_texts(talk, new, said.annotations, holdout, seed)
    model = _learn(talk, new, said.annotations, jobs)
    if said.reduction is not None:
        model.pictures_ = said.reduction.as_known()
    model.name_items(said.names)
    if keep_data:
        keep_schools_of(model)
    # A model of several attributes knows the fingerprints of its data itself.
    data = None if model.has_attributes else said.annotations
    path = save(model, target, with_data=keep_data, data=data, scores=scores)
    _tell(talk, path, scores, time.perf_counter() - started)
    _propose(talk, path, items)


def _large_fit(on_disk: OutOfCoreOptions, on_cluster: ClusterOptions) -> Any:
    """Return how to fit labels that are not in memory; None where they are."""
    if on_cluster.dask is not None and on_disk.memory is not None:
        raise ValueError("Give --dask or --memory, not both.")
    if on_cluster.dask is not None:
        from likeminds.cli._cluster import fit_on_cluster

        return partial(fit_on_cluster, on_cluster)
    if on_cluster.checkpoint is not None or on_cluster.resume or on_cluster.people_apart:
        raise ValueError(
            "--checkpoint, --resume and --people-apart are for fits on a cluster: say --dask where."
        )
    if on_disk.memory is not None:
        from likeminds.cli._out_of_core import fit_large

        return partial(fit_large, on_disk)
    return None


def _new_ranker(name: str, loss: str | None, folds: int, seed: int) -> Any:
    from likeminds.rankers.registry import ranker_called

    called, ranker = ranker_called(name, folds, seed)
    if loss is None:
        return ranker
    known = ranker.get_params()
    option = "loss" if "loss" in known else "ranker__loss"
    if option not in known:
        raise ValueError(f"{called} has no choice of loss: leave out --loss.")
    return ranker.set_params(**{option: loss})


def _tell_of_items(talk: Output, ranker: Any, said: Any) -> None:
    """Say that items are known by their features alone, where their ids might say more."""
    from likeminds.mixed_model.item_effects.item_responses import NOT_SHARED, are_shared
    from likeminds.mixed_model.losses import choose_loss

    by_itself = vars(ranker).get("item_effects") == "auto"
    if not by_itself or not said.has_items or are_shared(said):
        return
    if choose_loss(ranker.loss, said).takes_items:  # choices know items by their features anyway
        talk.tell(NOT_SHARED)


def _held_out(  # noqa: PLR0917 - what a fit needs
    talk: Output, ranker: Any, said: "Annotations", share: float, jobs: int, seed: int
) -> dict[str, Any]:
    """Return the mean AUC on labels that were held out, by attribute where there are any.

    Of grades, it is the concordance; of comparisons, the share that was predicted.
    """
    from likeminds.data.splits import split_within_users
    from likeminds.rankers.capabilities import with_consensus

    parts = {"": said} if said.attribute_ids is None else said.by_attribute()
    sides = {str(name): split_within_users(part, share, seed) for name, part in parts.items()}
    train = {name: side[0] for name, side in sides.items()}
    model = _learn(talk, ranker, train[""] if said.attribute_ids is None else train, jobs)
    found: dict[str, Any] = {"held_out": share}
    for name, (_, test) in sides.items():
        about = model._ranker_of(name)
        measure, metric = _judged(test, with_consensus(about).decision_function(test))
        same_for_all = _judged(test, about.consensus_scores(test))[1]
        found[f"{measure} {name}".strip()] = metric.mean
        found[f"error {name}".strip()] = metric.standard_error
        found[f"baseline {name}".strip()] = same_for_all.mean
    return found


def _judged(test: "Annotations", scores: Any) -> tuple[str, "MetricByUser"]:
    """Return the measure that suits held-out labels, and its values."""
    from likeminds.data.coded_labels import are_choices
    from likeminds.metrics.choices import score_choices
    from likeminds.metrics.concordance import concordance_by_user, measure_of

    if test.choice_set_codes is not None and test.choice_set_ids is None and are_choices(test):
        return "accuracy", score_choices(test, scores).accuracy
    judged = concordance_by_user(test.outcomes, scores, test.users, test.weights)
    return measure_of(test.outcomes).lower(), judged


def _tell_of_texts(talk: Output, ranker: Any, said: "Annotations", share: float, seed: int) -> None:
    """Tell whether held-out labels are predicted better with texts than by ids alone."""
    import numpy as np
    from sklearn.base import clone

    from likeminds.data.splits import split_within_users
    from likeminds.metrics.paired import over_users
    from likeminds.mixed_model.item_effects.item_responses import are_shared
    from likeminds.rankers.capabilities import with_consensus

    if said.attribute_ids is not None or said.choice_set_codes is not None or not are_shared(said):
        return
    bare = said._with(features=np.zeros((len(said.features), 0)), feature_names=())
    found = []
    for one in (said, bare):
        train, test = split_within_users(one, share, seed)
        scores = with_consensus(clone(ranker).fit(train)).decision_function(test)
        found.append(_judged(test, scores)[1])
    change = over_users(found[0].values - found[1].values)
    pays = "texts pay" if change.low > 0 else "texts do not pay for items that were labelled"
    talk.tell(
        f"Without texts: {found[1].mean:.3f}; with texts {change.mean:+.3f} (95 % interval "
        f"{change.low:+.3f} to {change.high:+.3f}): {pays}. New items have nothing but texts."
    )


def _learn(talk: Output, ranker: Any, said: Any, jobs: int) -> Any:
    """Fit one ranker, or one for each attribute, with a bar that says how far it is."""
    from sklearn.base import clone

    from likeminds.data.annotations import Annotations
    from likeminds.rankers.multi_attribute import AttributeModel

    with talk.bar() as bar:
        if isinstance(said, Annotations) and said.attribute_ids is None:
            task = bar.add_task("learning", total=None)
            return learn_watched(clone(ranker), bar, task, lambda model: model.fit(said))
        task = bar.add_task("learning", total=None)

        def tell(name: str, done: int, total: int) -> None:
            bar.update(task, description=f"{name} done", completed=done, total=total)

        return AttributeModel(ranker, n_jobs=jobs).fit(said, callback=tell)


def learn_watched(ranker: Any, bar: Any, task: Any, work: Any) -> Any:
    """Let a ranker learn; where it tells its steps, show them."""
    from itertools import count

    bar.update(task, description="learning", completed=0, total=None)
    if "callback" not in ranker.get_params(deep=False):
        return work(ranker)
    steps = count(1)

    def tell(step: int, objective: float, residual: float) -> bool:  # noqa: ARG001
        # A fit takes several descents, and their number of steps is unknown: steps of all.
        words = f"learning (objective {objective:.6g}), step"
        bar.update(task, description=words, completed=next(steps), total=None)
        return False

    ranker.set_params(callback=tell)
    try:
        return work(ranker)
    finally:
        # A function has no place in a file.
        ranker.set_params(callback=None)


def _tell(talk: Output, path: Path, scores: dict[str, Any], seconds: float) -> None:
    from likeminds._util.text_format import counted
    from likeminds.storage.models import read_card

    card = read_card(path)
    talk.result({"model": str(path), "seconds": round(seconds, 3), "card": card})
    for name, value in scores.items():
        measure, _, about = name.partition(" ")
        if measure in _MEASURES:
            error, baseline = (scores[f"{one} {about}".strip()] for one in ("error", "baseline"))
            called, of_what = _MEASURES[measure]
            talk.tell(
                f"{called}, {about or of_what}: {value:.3f} ± {error:.3f} (mean over people); "
                f"baseline, one ranking for all: {baseline:.3f}"
            )
    labels = "with" if card["takes_updates"] else "without"
    files = path.iterdir() if path.is_dir() else [path]
    size = sum(file.stat().st_size for file in files) / 1e6
    talk.tell(
        f" ({size:.1f} MB, {labels} its labels): {_kind(card)}, "
        f"{counted(card['people'], 'person', 'people')}, "
        f"{counted(len(card['features']), 'feature')}",
        head=str(path),
    )


def _propose(talk: Output, path: Path, items: ItemOptions) -> None:
    """Say what to try next: what works with this model, and with the items there are."""
    from likeminds._util.console import program
    from likeminds._util.verbs import LIKE
    from likeminds.cli._items import kept_items
    from likeminds.cli._models import open_model, rankers_of
    from likeminds.rankers.capabilities import Capability

    model = open_model(path)
    file = shlex.quote(str(path))
    given = ""
    if kept_items(model) is None:
        where = {"--features": items.features, "--images": items.images}
        given = "".join(
            f" {option} {shlex.quote(str(source))}"
            for option, source in where.items()
            if source not in {None, "-"}
        )
    steps = []
    if given or kept_items(model) is not None:
        verbs = {one._best_model.verb for one in rankers_of(model).values()}
        what = verbs.pop() if len(verbs) == 1 else LIKE
        steps.append((f"rank {file}{given} --top 5", f"what everyone {what.most()}"))
    if all(Capability.LEVELS.of(one._best_model) for one in rankers_of(model).values()):
        steps.append((f"explain {file}{given}", "who thinks alike, and on what"))
    page = shlex.quote(f"{path.stem}.html")
    steps.append((f"report {file} --out {page}", "all of it on one page"))
    width = max(len(step) for step, _ in steps) + 4
    lines = [f"{program()} {step.ljust(width)}{what}" for step, what in steps]
    talk.remark("\nNext: " + "\n      ".join(lines))


def _kind(card: dict[str, Any]) -> str:
    if not card["attributes"]:
        return str(card["ranker"])
    first = next(iter(card["attributes"].values()))
    return f"{first['ranker']} for {', '.join(card['attributes'])}"
