"""``likeminds fit`` and ``update``: from tables of labels to a model in a file."""

import shlex
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import likeminds
from likeminds._util.atomic_files import file_lock
from likeminds._util.lazy_imports import np
from likeminds._util.text_format import RATE, counted
from likeminds.cli._labels import read_labels
from likeminds.cli._models import by_attribute, parse_verdicts, parts_of, without_verdicts
from likeminds.cli._options import (
    SETTINGS,
    ComparisonOptions,
    Folds,
    Jobs,
    LabelOptions,
    LargeFitOptions,
    Model,
    Seed,
    Without,
    option,
)
from likeminds.cli._output import Output, Show, learn_watched
from likeminds.cli.main import DATA, FIT, command

if TYPE_CHECKING:
    from likeminds.data.annotations import Annotations
    from likeminds.rankers.multi_attribute import AttributeModel
    from likeminds.rankers.ranker import Ranker

# Measures on held-out labels: their names and the labels that they are computed from.
_MEASURES = {
    "auc": ("AUC", "held-out labels"),
    "concordance": ("Concordance", "held-out grades"),
    "accuracy": ("Accuracy", "held-out comparisons"),
    "class_accuracy": ("Accuracy", "held-out classes"),
}


@command("Learn", DATA, f"{FIT} --holdout 0.2")
def fit(
    output: Output,
    *,
    data: LabelOptions,
    texts: str | None = option(
        "Texts of items, whose words become features: a table with a column of item ids and one "
        "of texts. With --from, give the same file again to use its texts.",
        default=None,
    ),
    pairs: ComparisonOptions,
    out: Path = option("The file to write the model to.", "--out", "-o"),
    ranker: str = option(
        "hierarchical (no tuning), three-level (the paper's, tuned), latent-class (a "
        "few classes of users, their number chosen by BIC), or a baseline: "
        "RMTL, rMTFL, Lasso, JFL, CMTL, COMT, RAMU, RidgeToConsensus, OnePerUser, "
        "ConsensusOnly, ...",
        default="hierarchical",
    ),
    holdout: float | None = option(
        "Hold out this share of each user's labels first, and write the score on them into the "
        "model card. The model is then fitted to all labels.",
        default=None,
    ),
    without: Without = None,
    keep_data: bool = option(
        "Keep labels and items in the model file, which update needs; --no-data leaves them out, "
        "for privacy.",
        "--keep-data/--no-data",
        panel=SETTINGS,
        default=True,
    ),
    loss: str | None = option(
        "The loss, if the ranker has several. For hierarchical: auto, logistic, choice, mixed or "
        "auc; for grades, also cumulative, gaussian or median.",
        panel=SETTINGS,
        default=None,
    ),
    verb: str | None = option(
        'The verb of a positive label: "find offensive", "agree with", "would buy"; {} is the '
        'attribute. By default, "agree with" for votes, "choose" for choices, "find {}" for '
        'several attributes, else "rate high".',
        panel=SETTINGS,
        default=None,
    ),
    folds: Folds = 5,
    jobs: Jobs = -1,
    seed: Seed = 0,
    large: LargeFitOptions,
) -> None:
    """Learn the ranking of each user from labels or comparisons, and save the model.

    If the table has a column of attributes, the model has a ranker for each of them.
    """
    from likeminds.storage.models import writable

    verdicts = [] if without is None else parse_verdicts(without)
    target = out if large.user_files else writable(out)
    if large.requested:
        from likeminds.cli._large_fit import LargeFit

        started = time.perf_counter()
        new = _new_ranker(ranker, loss, folds, seed)
        unsupported: dict[str, object] = {"--holdout": holdout}
        unsupported |= {"--texts": texts, "--images": data.images, "--without": without}
        unsupported |= {"--alternatives": data.alternatives, "--drop": data.drop}
        unsupported |= {"--nominal": data.nominal or None}
        path = LargeFit(output, large, data, pairs, new, target, verb).run(unsupported)
        _show_result(output, path, {}, time.perf_counter() - started)
        _show_next(output, path, data)
        return
    read = read_labels(output, data, pairs, texts=texts)
    annotations = read.annotations if verb is None else read.annotations.with_verb(verb)
    output.show(str(annotations))
    new = _new_ranker(ranker, loss, folds, seed)
    if read.words_only and "standardize" in new.get_params():
        new.set_params(standardize=False)  # components of words have informative variances
    started = time.perf_counter()
    scores: dict[str, Any] = {}
    learn = partial(_learn, output, new, jobs)
    if verdicts:
        annotations = _without(output, learn(annotations), annotations, verdicts)
    if holdout is not None:
        from likeminds.cli.evaluate import compare_without_texts, score_held_out

        scores = score_held_out(learn, annotations, holdout, seed)
        if read.words_only:
            compare_without_texts(output, new, annotations, holdout, seed)
    model = learn(annotations)
    if read.reduction is not None:
        from likeminds.features.reduction import reduction_as_attribute

        model.pictures_ = reduction_as_attribute(read.reduction)
    model.name_items(read.names)
    # A model of several attributes has the fingerprints of its data.
    own_data = None if model.has_attributes else annotations
    path = likeminds.save(model, target, with_data=keep_data, data=own_data, scores=scores)
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
        raise ValueError(f"{called} has one loss only: leave out --loss.")
    return ranker.set_params(**{parameter: loss})


def _without(
    output: Output,
    first: "Ranker | AttributeModel",
    annotations: "Annotations",
    verdicts: list[str],
) -> "Annotations":
    """Return the labels without annotators who have one of the verdicts in a first fit."""
    kept = without_verdicts(output, verdicts, first, by_attribute(annotations))
    about = annotations.attributes
    if about is None:
        return kept[""]
    rows = [np.isin(annotations.users, p.users) & (about.astype(str) == a) for a, p in kept.items()]
    return annotations[np.any(rows, axis=0)]


def _learn(
    output: Output, ranker: "Ranker", jobs: int, data: "Annotations | dict[str, Annotations]"
) -> Any:
    """Fit one ranker, or one for each attribute, with a progress bar."""
    from sklearn.base import clone

    with output.progress("learning") as show:
        if not isinstance(data, dict) and data.attribute_ids is None:
            return learn_watched(clone(ranker), show, lambda model: model.fit(data))
        nominal = not isinstance(data, dict) and data.is_nominal
        model = likeminds.NominalRanker if nominal else likeminds.AttributeModel
        return model(ranker, n_jobs=jobs).fit(data, callback=_by_attribute(show))


def _by_attribute(show: Show) -> Callable[[str, int, int], None]:
    """Return the callback of a model of several attributes, which shows its progress."""
    return lambda name, done, total: show(f"{name} done", done, total)


def _show_result(output: Output, path: Path, scores: dict[str, Any], seconds: float) -> None:

    card = likeminds.read_card(path)
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
        f"{counted(card['users'], 'person', 'people')}, "
        f"{counted(len(card['features']), 'feature')}",
        head=str(path),
    )


def _show_next(output: Output, path: Path, data: LabelOptions) -> None:
    """Propose commands that work with this model and its items."""
    from likeminds._util.console import program
    from likeminds.rankers.capabilities import Capability

    if output.as_json or output.quiet:
        return
    model = likeminds.load(path)
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
        steps.append((f"rank {file}{items} --top 5", f"items that everyone {what.most()}"))
    if all(Capability.LEVELS.of(one) for one in best):
        steps.append((f"explain {file}{items}", "users who rank alike, and why"))
    page = shlex.quote(f"{path.stem}.html")
    steps.append((f"report {file} --out {page}", "all results on one page"))
    width = max(len(step) for step, _ in steps) + 4
    lines = [f"{program()} {step.ljust(width)}{what}" for step, what in steps]
    output.hint("\nNext: " + "\n      ".join(lines))


@command(
    "Learn",
    DATA,
    "head -n 8641 power/annotations.csv > first.csv",
    "sed 2,8641d power/annotations.csv > rest.csv",
    "likeminds fit --annotations first.csv --features power/features.csv --out first.likeminds",
    "likeminds update first.likeminds --annotations rest.csv --out all.likeminds",
)
def update(
    output: Output,
    *,
    model: Model,
    data: LabelOptions,
    pairs: ComparisonOptions,
    out: Path | None = option(
        "The file to write the updated model to; by default, MODEL.", "--out", "-o", default=None
    ),
) -> None:
    """Add labels of known or new users to a model that was saved with its data.

    The result is the same as fitting all labels at once. Features of known items may be left out if
    the model has them. Ids and labels are read as in the first fit; labels that do not fit raise an
    error. Choice sets with the same id in two tables are joined.
    """
    from likeminds.storage.models import main_file, writable

    target = writable(model if out is None else out)
    if not likeminds.read_card(model).get("takes_updates"):
        raise ValueError(
            f"{model} was saved without its labels, so it cannot be updated. Fit it with "
            "--keep-data, or use newcomer, which does not need them."
        )
    in_place = target.exists() and target.samefile(model)
    lock = file_lock(
        main_file(model), lambda: output.note(f"waiting for another update of {model}.")
    )
    with lock if in_place else nullcontext():
        loaded = likeminds.load(model)
        annotations = read_labels(output, data, pairs, model=loaded).annotations
        n_users, n_items = len(loaded.users_), _n_items(loaded)
        loaded = _learn_more(output, loaded, annotations)
        path = likeminds.save(loaded, target, with_data=True, if_unchanged=in_place)
    card = likeminds.read_card(path)
    new, new_items = len(loaded.users_) - n_users, _n_items(loaded) - n_items
    found = {"model": str(path), "added": len(annotations), "new_users": new}
    output.json(found | {"new_items": new_items, "card": card})
    of_items = f", {counted(new_items, 'new item')}" if new_items > 0 else ""
    output.show(
        f": added {annotations.statements()}, {counted(new, 'new person', 'new people')}{of_items}"
        f"; {card['users']:,} people in all",
        head=str(path),
    )


def _n_items(loaded: "Ranker | AttributeModel") -> int:
    """Return the number of items with effects."""
    items = None if loaded.has_attributes else loaded.item_posteriors()
    return 0 if items is None else len(items.ids)


def _learn_more(
    output: Output, loaded: "Ranker | AttributeModel", annotations: "Annotations"
) -> Any:
    from likeminds.rankers.capabilities import Capability

    parts = parts_of(annotations, loaded)
    with output.progress("learning") as show:
        if loaded.has_attributes:
            return loaded.update(parts, callback=_by_attribute(show))
        Capability.UPDATES.require(loaded)
        return learn_watched(loaded, show, lambda _: loaded.update(annotations))
