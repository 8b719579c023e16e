"""Stored labels folded into the model: by another process, swapped in when it is whole."""

import json
import logging
import multiprocessing
import threading
from collections.abc import Iterable
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from likeminds._util.atomic_files import file_lock
from likeminds._util.text_format import mask
from likeminds.data.annotations import Annotations
from likeminds.data.id_coercion import write_as_known
from likeminds.rankers.answer_scales import AnswerScale
from likeminds.rankers.capabilities import NAMELESS
from likeminds.schools.find import keep_schools
from likeminds.service.app_state import AppState
from likeminds.service.catalogue import ItemCatalogue, has_items, read_catalogue
from likeminds.service.keys import hashed
from likeminds.service.metrics import log, start_logging
from likeminds.service.settings import Settings
from likeminds.service.store import Label, open_store
from likeminds.storage.folders import main_file
from likeminds.storage.models import load, read_card, save

_STATE = "refreshed"


class RefreshError(Exception):
    """Why stored labels cannot be folded into a model."""


def refresh_file(settings: Settings) -> str:
    """Make the refreshed model from the model and everything stored; return what was done.

    The model itself is never changed: a label that was taken back, or a person who was deleted,
    is simply not there when the next one is made. If the model is replaced meanwhile, the refresh
    starts again with the new one.
    """
    store = open_store(settings.database)
    try:
        path, target = main_file(Path(settings.model)), settings.refreshed
        version = store.version()
        mark = json.dumps([*version, target.name])
        if mark == store.state(_STATE) and (target.exists() or not any(version)):
            return "nothing new"
        if not any(version):
            return "nothing stored"
        model = load(path, verify=True)
        if not read_card(path).get("takes_updates"):
            raise RefreshError(
                "The model has not kept what it has learned from, so that nothing can be added: "
                "fit it with its data kept."
            )
        labels, gone = store.all_labels(), store.forgotten()
        names = model.item_names
        grown = fold_in(model, labels, gone, _catalogue(settings, model))
        if target != settings.refreshed:
            return refresh_file(settings)
        grown.name_items(names)
        for ranker in grown.rankers_.values():  # found here, not while a worker answers
            keep_schools(ranker)
        save(grown, target, with_data=True)
        for other in set(target.parent.glob("refreshed*.likeminds")) - {target}:
            other.unlink(missing_ok=True)
        store.set_state(_STATE, mark)
        return f"{len(labels)} labels"
    finally:
        store.close()


def fold_in(
    model: Any, labels: Iterable[Label], forgotten: frozenset[str], catalogue: ItemCatalogue
) -> Any:
    """Return a model that has learned from stored labels, and from nobody who was deleted.

    Parameters
    ----------
    model : model
        Which has kept its data; it may be changed.
    labels : iterable of Label
        What people said, or took back: their last word replaces what the model has of them.
    forgotten : set of str
        Hashes of the ids of those who were deleted.
    catalogue : ItemCatalogue
        The items.
    """
    by_attribute: dict[str, list[Label]] = {name: [] for name in model.rankers_}
    for one in labels:
        if one.attribute in by_attribute and one.item in catalogue.positions:
            by_attribute[one.attribute].append(one)
    kept = {name: ranker._learned("annotations_") for name, ranker in model.rankers_.items()}
    more = {name: _said(said, model, name, catalogue) for name, said in by_attribute.items()}
    left = {name: _left(kept[name], by_attribute[name], forgotten) for name in kept}
    parts = {name: part for name, part in more.items() if part is not None}
    if all(part is None for part in left.values()):
        if not parts:
            return model
        if all(part is None or _takes_more(part) for part in kept.values()):
            return model.update(parts) if NAMELESS not in parts else model.update(parts[NAMELESS])
    everything = {}
    for name, known in kept.items():
        rest = left[name]
        rest = known if rest is None else rest
        added = more[name]
        everything[name] = rest if added is None else _joined(rest, added)
    if NAMELESS in everything:
        return clone(model).fit(everything[NAMELESS])
    return clone(model).fit(everything)


def _left(
    kept: Annotations | None, said: list[Label], forgotten: frozenset[str]
) -> Annotations | None:
    """Return the rows that neither were said anew nor belong to somebody deleted; None for all."""
    if kept is None:
        if forgotten or any(one.label is None for one in said):
            raise RefreshError(
                "The model has kept statistics instead of labels, so that nothing can be taken "
                "out of it: fit it anew."
            )
        return None
    names = [str(one) for one in kept.user_ids.tolist()]
    gone = np.array([bool(forgotten) and hashed(name) in forgotten for name in names], dtype=bool)
    drop = gone[kept.user_codes]
    anew = {(one.person, one.item) for one in said}
    people = {person for person, _ in anew}
    for row in np.flatnonzero(
        np.isin(kept.user_codes, [i for i, n in enumerate(names) if n in people])
    ):
        key = names[kept.user_codes[row]], str(kept.item_ids[kept.item_codes[row]])
        drop[row] |= key in anew
    if not drop.any():
        return None
    left = kept[~drop]
    if kept.user_features is not None and gone.any():
        there = [
            one
            for one, name in zip(kept.user_ids.tolist(), names, strict=True)
            if hashed(name) not in forgotten
        ]
        left = left.with_user_features(kept.user_features.of(there))
    return left


def _takes_more(kept: Annotations) -> bool:
    """Say whether labels of items can be appended to others as they are."""
    return kept.has_items and kept.choice_set_codes is None


def _joined(kept: Annotations, added: Annotations) -> Annotations:
    """Return all labels.

    Beside choices, labels of single items are groups of one row each. Rows that were items of
    their own have the names that people were asked by.
    """
    changes: dict[str, Any] = {"has_items": True}
    if kept.choice_set_codes is not None:
        changes["choice_set_ids"] = None
    return kept._with(**changes).concat(added)


def _said(
    said: list[Label], model: Any, attribute: str, catalogue: ItemCatalogue
) -> Annotations | None:
    """Return stored labels as annotations, with people as the model writes them."""
    scale = AnswerScale.of_ranker(model._ranker_of(attribute)._best_model)
    given = [one for one in said if one.label is not None and scale.holds(one.label)]
    if not given:
        return None
    labels, reading = scale.labels_of([one.label for one in given if one.label is not None])
    places = np.array([catalogue.positions[one.item] for one in given])
    return Annotations(
        users=write_as_known([one.person for one in given], model.people_, "people"),
        items=catalogue.ids[places],
        labels=labels,
        reading=reading,
        features=catalogue.features,
        item_ids=catalogue.ids,
        feature_names=[str(name) for name in model.feature_names_],
        features_per="item",
    )


def _catalogue(settings: Settings, model: Any) -> ItemCatalogue:
    if has_items(settings.items):
        return read_catalogue(settings.items, None)
    return ItemCatalogue(*model.kept_items())


def _in_another_process(settings: Settings, answers: "SimpleQueue[tuple[str, str]]") -> None:
    start_logging()
    try:
        answers.put(("done", refresh_file(settings)))
    except Exception as error:
        answers.put(("failed", mask(str(error)) or type(error).__name__))


class Refresher:
    """Refreshes from time to time, in another process, so that requests are answered meanwhile."""

    def __init__(self, holder: AppState) -> None:
        self.holder = holder
        self.is_running = False
        self.last: str | None = None
        self._asked = threading.Event()
        self._stop = threading.Event()

    def start(self) -> None:
        """Begin to look for labels to fold in."""
        threading.Thread(target=self._run, daemon=True, name="likeminds-refresh").start()

    def close(self) -> None:
        """Stop looking."""
        self._stop.set()
        self._asked.set()

    def ask(self) -> None:
        """Refresh as soon as possible."""
        self._asked.set()

    def _run(self) -> None:
        every = self.holder.settings.refresh_every
        while True:
            self._asked.wait(every or None)
            if self._stop.is_set():
                return
            self._asked.clear()
            self.refresh()

    def refresh(self) -> None:
        """Refresh now, unless another worker is at it; wait for it in that case."""
        settings = self.holder.settings
        lock = Path(settings.state) / "refresh.lock"
        lock.touch()
        self.is_running = True
        try:
            with file_lock(lock, lambda: None):
                how, said = _run_apart(settings)
        except Exception as error:
            how, said = "failed", mask(str(error)) or type(error).__name__
        finally:
            self.is_running = False
        self.last = f"{how}: {said}"
        level = logging.INFO if how == "done" else logging.ERROR
        self.holder.metrics.count("likeminds_refreshes_total", result=how)
        log("refresh", level, result=how, reason=said)
        self.holder.look_at_model()


def _run_apart(settings: Settings) -> tuple[str, str]:
    context = multiprocessing.get_context("spawn")
    answers = context.SimpleQueue()
    process = context.Process(target=_in_another_process, args=(settings, answers), daemon=True)
    process.start()
    process.join()
    if answers.empty():
        return "failed", f"the process ended with code {process.exitcode}"
    how, said = answers.get()
    return str(how), str(said)
