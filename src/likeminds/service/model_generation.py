"""The model that is served: one generation at a time, swapped whole."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from likeminds._util.atomic_files import FileVersion, file_lock, write_whole
from likeminds._util.lazy_rows import LazyIds
from likeminds.rankers.capabilities import NAMELESS
from likeminds.rankers.label_validation import user_positions
from likeminds.service.catalogue import (
    ItemCatalogue,
    UnknownNameError,
    has_items,
    read_catalogue,
    read_texts,
)
from likeminds.service.keys import hashed
from likeminds.service.scoring import AttributeScorer, Said, UnableError, UserScores
from likeminds.storage import safetensors
from likeminds.storage.folders import main_file
from likeminds.storage.models import load, read_card, read_users

# Bytes that are copied at a time.
_PIECE = 1 << 22


class NoAttributeError(ValueError):
    """A question about no attribute, where there are several."""


@dataclass(frozen=True, eq=False)
class ModelGeneration:
    """One generation of a model with its items: nothing in it changes.

    Attributes
    ----------
    path : Path
        The file.
    version : FileVersion
        Which version of the file.
    model : model
        What was read from it.
    card : dict
        What the file says about it.
    questions : dict
        A question for each attribute.
    """

    path: Path
    version: FileVersion
    model: Any
    card: dict[str, Any]
    questions: dict[str, AttributeScorer]

    @classmethod
    def read(cls, path: Path, state: Path, items: Path, pictures: Path | None) -> "ModelGeneration":
        """Read a model and its items; damage of any kind is an error, before anything is served.

        Parameters
        ----------
        path : Path
            The model.
        state : Path
            The folder for the service's own copy of a model that is mapped into memory.
        items : Path
            The folder with items and texts, if they are not the model's own.
        pictures : Path, optional
            The folder with their pictures.
        """
        path = main_file(path)
        version = FileVersion.of(path.stat())
        file = own_copy(path, state)
        # People in files of their own are checked when somebody asks about them.
        model, card = load(file, verify=not read_users(file)), read_card(file)
        if has_items(items):
            catalogue = read_catalogue(items, pictures, model.item_names)
        elif model.kept_ is not None:
            texts = read_texts(items, model.item_names)
            ids, features = model.kept_items()
            catalogue = ItemCatalogue(ids, features, texts, pictures)
        else:
            raise ValueError(
                f"Which items? {path} has kept none of those it has learned from: give --features "
                "or --images."
            )
        _ = catalogue.positions
        questions = {
            name: AttributeScorer(name, ranker, catalogue)
            for name, ranker in model.rankers_.items()
        }
        for question in questions.values():
            question.warm()
        return cls(path, version, model, card, questions)

    @property
    def generation(self) -> str:
        """A short name of this version of the model."""
        return f"{self.version.modified:x}-{self.version.inode:x}"

    @property
    def catalogue(self) -> ItemCatalogue:
        """The items."""
        return next(iter(self.questions.values())).catalogue

    @property
    def attributes(self) -> list[str]:
        """The attributes; none where the model tells none apart."""
        return [name for name in self.questions if name != NAMELESS]

    @cached_property
    def people(self) -> Mapping[str, Any]:
        """The ids of the people it knows, by their texts."""
        known = self.model.people_
        if isinstance(known, LazyIds):
            return IdsByText(known)
        return {str(one): one for one in known.tolist()}

    def question(self, attribute: str | None) -> AttributeScorer:
        """Return the question about an attribute; where there is one only, it need not be named."""
        if attribute is None:
            if len(self.questions) > 1:
                raise NoAttributeError(f"Which attribute? Name one of {', '.join(self.questions)}.")
            return next(iter(self.questions.values()))
        if attribute not in self.attributes:
            raise UnknownNameError("attribute", attribute, self.attributes)
        return self.questions[attribute]

    def opinion(
        self, question: AttributeScorer, person: str, said: Said | None, forgotten: frozenset[str]
    ) -> UserScores:
        """Return what somebody thinks.

        Parameters
        ----------
        question : AttributeScorer
            About what.
        person : str
            Who.
        said : mapping, optional
            What they told the service; None if they never came.
        forgotten : set of str
            Hashes of those who were deleted: the model may know them, and must not say so.
        """
        place = self.place_of(question, person, forgotten)
        said = None if said is None else _still_there(said, question)
        if place is not None:
            return question.known_with(place, said) if said else question.known(place)
        if said is None and not self.knows(person, forgotten):
            raise UnknownNameError("user", person, self.names(forgotten))
        return question.stranger(said or {})

    def place_of(
        self, question: AttributeScorer, person: str, forgotten: frozenset[str]
    ) -> int | None:
        """Return where somebody is among those who taught a ranker."""
        if not self.knows(person, forgotten):
            return None
        where: Mapping[Any, int] = user_positions(question.chosen)
        return where.get(self.people[person])

    def knows(self, person: str, forgotten: frozenset[str]) -> bool:
        """Say whether the model knows somebody, and may say so."""
        return person in self.people and not (forgotten and hashed(person) in forgotten)

    def names(self, forgotten: frozenset[str]) -> Iterator[str]:
        """Go through the people, but those who were deleted."""
        for name in self.people:
            if not (forgotten and hashed(name) in forgotten):
                yield name


def own_copy(path: Path, state: Path) -> Path:
    """Return a file that only the service writes to, with the content of a model's file.

    A model that `load` maps into memory is copied to the state folder: truncating a mapped file
    ends all processes that read it. Workers share the copy. Files of people stay where they are;
    the copy links to them.
    """
    version = FileVersion.of(path.stat())
    if version.size <= safetensors.READ_AT_ONCE or path.parent == state:
        return path
    folder = state / f"served-{version.modified:x}-{version.inode:x}-{version.size:x}"
    copy = folder / path.name
    lock = state / "copy.lock"
    lock.touch()
    with file_lock(lock, lambda: None):
        if not copy.exists():
            for other in state.glob("served-*"):  # who still reads one has it open
                shutil.rmtree(other, ignore_errors=True)
            folder.mkdir(parents=True)
            for one in read_users(path):
                (folder / one.name).symlink_to((path.parent / one.name).absolute())
            with path.open("rb") as file:
                write_whole(copy, iter(lambda: file.read(_PIECE), b""))
    return copy


class IdsByText(Mapping[str, Any]):
    """Ids that are elsewhere, by their texts: none of them is held."""

    def __init__(self, known: LazyIds) -> None:
        self._known = known

    def __getitem__(self, text: str) -> Any:
        for meant in (text, *_numbers_in(text)):
            if meant in self._known.places:
                return meant
        raise KeyError(text)

    def __iter__(self) -> Iterator[str]:
        return map(str, self._known)

    def __len__(self) -> int:
        return len(self._known)


def _numbers_in(text: str) -> Iterator[Any]:
    """Yield the numbers that are written as a text."""
    for kind in (int, float):
        with suppress(ValueError):
            number = kind(text)
            if str(number) == text:
                yield number


def _still_there(said: Said, question: AttributeScorer) -> dict[str, float | None]:
    """Return what was said of items, and on a scale, that the model still has."""
    there, scale = question.catalogue.positions, question.scale
    return {
        item: label
        for item, label in said.items()
        if item in there and (label is None or scale.holds(label))
    }


__all__ = ["ModelGeneration", "NoAttributeError", "UnableError"]
