"""Refits with the stored labels, in another process; the service then swaps the model."""

import json
import logging
import multiprocessing
import threading
from collections.abc import Iterable
from contextlib import closing
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from likeminds._util.atomic_files import file_lock
from likeminds._util.text_format import mask
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import coerce_ids
from likeminds.rankers.answer_scales import AnswerScale
from likeminds.rankers.capabilities import NAMELESS, ReadableModel
from likeminds.rankers.multi_attribute import AttributeModel
from likeminds.rankers.ranker import Ranker
from likeminds.schools.mixture import keep_schools
from likeminds.service.app_state import AppState
from likeminds.service.catalogue import ItemCatalogue, read_catalogue
from likeminds.service.metrics import log, start_logging
from likeminds.service.settings import Settings
from likeminds.service.store import Label, hashed, open_store
from likeminds.storage.models import load, main_file, read_card, save

_STATE = "refreshed"
_NO_LABELS = (
    "The model was saved with statistics instead of labels, so labels cannot be removed: fit it "
    "to the remaining labels."
)


class RefreshError(Exception):
    """Stored labels cannot be added to a model."""


def refresh_file(settings: Settings) -> str:
    """Refit the model with all stored labels, and save it to another file; return a summary.

    Each refit starts from the original model, so deleted labels and users are not in the next one.
    If the original is replaced meanwhile, the refit starts again with the new one.
    """
    with closing(open_store(settings.database)) as store:
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
                "The model was saved without its training labels, so labels cannot be added: "
                "save it with_data=True."
            )
        labels, names = store.all_labels(), model.item_names
        catalogue = read_catalogue(settings.items, None, model)
        assert catalogue is not None  # a model without items is not served
        grown = fold_in(model, labels, store.forgotten(), catalogue)
        if target != settings.refreshed:
            return refresh_file(settings)
        grown.name_items(names)
        for ranker in grown.rankers_.values():  # computed here rather than by a worker
            keep_schools(ranker)
        save(grown, target, with_data=True)
        for other in set(target.parent.glob("refreshed*.likeminds")) - {target}:
            other.unlink(missing_ok=True)
        store.set_state(_STATE, mark)
        return f"{len(labels)} labels"


def fold_in(
    model: Ranker | AttributeModel,
    labels: Iterable[Label],
    forgotten: frozenset[str],
    catalogue: ItemCatalogue,
) -> Ranker | AttributeModel:
    """Return a model fitted with stored labels, and without deleted users.

    A stored label replaces the model's label of the same user and item. ``forgotten`` has the
    hashes of deleted users. The model passed in may change.
    """
    by_attribute: dict[str, list[Label]] = {name: [] for name in model.rankers_}
    for one in labels:
        if one.attribute in by_attribute and one.item in catalogue.positions:
            by_attribute[one.attribute].append(one)
    before = {name: ranker.annotations_ for name, ranker in model.rankers_.items()}
    added = {
        name: part
        for name, rows in by_attribute.items()
        if (part := _annotations(rows, model, name, catalogue)) is not None
    }
    remaining = {
        name: _remaining(rows, by_attribute[name], forgotten) for name, rows in before.items()
    }
    # Labels of items can be appended to others; with choices, all are fitted anew.
    appends = all(
        one is None or (one.has_items and one.choice_set_codes is None) for one in before.values()
    )
    is_whole = all(remaining[name] is rows for name, rows in before.items())
    if is_whole and (appends or not added):
        return model.update(added.get(NAMELESS, added)) if added else model
    everything = {}
    for name, rows in remaining.items():
        if rows is None:
            raise RefreshError(_NO_LABELS)
        everything[name] = rows
        if name in added:  # with choices, labels of single items are choice sets of one row
            changes: dict[str, Any] = {"has_items": True}
            if rows.choice_set_codes is not None:
                changes["choice_set_ids"] = None
            everything[name] = rows._with(**changes).concat(added[name])
    refitted: Ranker | AttributeModel = clone(model).fit(everything.get(NAMELESS, everything))
    return refitted


def _remaining(
    before: Annotations | None, stored: list[Label], forgotten: frozenset[str]
) -> Annotations | None:
    """Return the model's labels, without those of deleted users and those that are replaced."""
    if before is None:
        if forgotten or any(one.label is None for one in stored):
            raise RefreshError(_NO_LABELS)
        return None
    names = [str(one) for one in before.user_ids.tolist()]
    gone = np.array([bool(forgotten) and hashed(name) in forgotten for name in names], dtype=bool)
    drop = gone[before.user_codes]
    replaced = {(one.user, one.item) for one in stored}
    users = {user for user, _ in replaced}
    codes = [code for code, name in enumerate(names) if name in users]
    for row in np.flatnonzero(np.isin(before.user_codes, codes)):
        key = names[before.user_codes[row]], str(before.item_ids[before.item_codes[row]])
        drop[row] |= key in replaced
    if not drop.any():
        return before
    rest = before[~drop]
    if before.user_features is not None and gone.any():
        rest = rest.with_user_features(before.user_features.of(before.user_ids[~gone].tolist()))
    return rest


def _annotations(
    stored: list[Label], model: ReadableModel, attribute: str, catalogue: ItemCatalogue
) -> Annotations | None:
    """Return stored labels as annotations, with the model's ids of users."""
    scale = AnswerScale.of_ranker(model._ranker_of(attribute)._best_model)
    given = [one for one in stored if one.label is not None and scale.holds(one.label)]
    if not given:
        return None
    labels, reading = scale.labels_of([one.label for one in given if one.label is not None])
    places = np.array([catalogue.positions[one.item] for one in given])
    return Annotations(
        users=coerce_ids([one.user for one in given], model.users_, "users"),
        items=catalogue.ids[places],
        labels=labels,
        reading=reading,
        features=catalogue.features,
        item_ids=catalogue.ids,
        feature_names=[str(name) for name in model.feature_names_],
        features_per="item",
    )


def _in_another_process(settings: Settings, answers: "SimpleQueue[tuple[str, str]]") -> None:
    start_logging()
    try:
        answers.put(("done", refresh_file(settings)))
    except Exception as error:
        answers.put(("failed", mask(str(error)) or type(error).__name__))


class Refresher:
    """Refits regularly, in another process, while this one serves requests."""

    def __init__(self, state: AppState) -> None:
        self.state = state
        self.is_running = False
        self.last: str | None = None
        self._asked = threading.Event()
        self._stop = threading.Event()

    def start(self) -> None:
        """Begin to refit every ``refresh_every`` seconds."""
        threading.Thread(target=self._run, daemon=True, name="likeminds-refresh").start()

    def close(self) -> None:
        """Stop refitting."""
        self._stop.set()
        self._asked.set()

    def ask(self) -> None:
        """Refit as soon as possible."""
        self._asked.set()

    def _run(self) -> None:
        every = self.state.settings.refresh_every
        while True:
            self._asked.wait(every or None)
            if self._stop.is_set():
                return
            self._asked.clear()
            self.refresh()

    def refresh(self) -> None:
        """Refit now; if another worker is refitting, wait for it."""
        settings = self.state.settings
        lock = Path(settings.state) / "refresh.lock"
        lock.touch()
        self.is_running = True
        try:
            with file_lock(lock, lambda: None):
                how, reason = _run_apart(settings)
        except Exception as error:
            how, reason = "failed", mask(str(error)) or type(error).__name__
        finally:
            self.is_running = False
        self.last = f"{how}: {reason}"
        level = logging.INFO if how == "done" else logging.ERROR
        self.state.metrics.count("likeminds_refreshes_total", result=how)
        log("refresh", level, result=how, reason=reason)
        self.state.swap_model()


def _run_apart(settings: Settings) -> tuple[str, str]:
    context = multiprocessing.get_context("spawn")
    answers = context.SimpleQueue()
    process = context.Process(target=_in_another_process, args=(settings, answers), daemon=True)
    process.start()
    process.join()
    if answers.empty():
        return "failed", f"the process ended with code {process.exitcode}"
    how, reason = answers.get()
    return str(how), str(reason)
