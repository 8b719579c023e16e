"""Labels as integer codes over distinct ids, the selection of rows, and choice sets."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util import checks
from likeminds._util.array_types import Bool, FloatArray, IdArray, Index
from likeminds._util.checks import did_you_mean, listing
from likeminds._util.per_user_arrays import order_by
from likeminds._util.result_tables import Frames, html_page, html_table
from likeminds._util.text_format import counted, read_verb
from likeminds.data.column_roles import POSITIONS, default_verb
from likeminds.data.covariates import Covariates
from likeminds.data.identifiers import coerce_ids, compact, encode, encode_pairs
from likeminds.data.label_parsing import LabelReading, count_labels

# A notebook shows the first few labels.
_ROWS_SHOWN = 6


@dataclass(frozen=True, init=False, eq=False, repr=False)
class CodedLabels:
    """The columns of `likeminds.Annotations`, and the selection of their rows."""

    user_ids: IdArray
    user_codes: Index
    item_ids: IdArray
    item_codes: Index
    labels: Bool
    features: FloatArray
    feature_rows: Index
    feature_names: tuple[str, ...]
    features_per: Literal["item", "row"]
    attribute_ids: IdArray | None
    attribute_codes: Index | None
    choice_set_codes: Index | None = field(metadata={"stored": "group_codes"})
    weights: FloatArray | None
    # Older files lack these.
    has_items: bool = True
    choice_set_ids: IdArray | None = field(default=None, metadata={"stored": "group_ids"})
    reading: LabelReading | None = None
    user_features: Covariates | None = field(default=None, metadata={"stored": "people"})
    grades: FloatArray | None = None
    picks_worst: Bool | None = None
    tied: Bool | None = None
    verb: str | None = None
    # The library of the caller's data frames; it is not saved.
    frames: Frames = field(default="pyarrow", metadata={"stored": False})

    @property
    def outcomes(self) -> Bool | FloatArray:
        """The grades, or else the labels: the target of the ranking."""
        return self.labels if self.grades is None else self.grades

    @property
    def users(self) -> IdArray:
        """The user of each row."""
        return self.user_ids[self.user_codes]

    @property
    def items(self) -> IdArray:
        """The item of each row."""
        return self.item_ids[self.item_codes]

    @property
    def chosen(self) -> Bool:
        """Whether each row was chosen in its choice set, as the best or as the worst."""
        return self.labels if self.picks_worst is None else self.labels ^ self.picks_worst

    @property
    def attributes(self) -> IdArray | None:
        """The attribute of each row; None without attributes."""
        if self.attribute_ids is None or self.attribute_codes is None:
            return None
        return self.attribute_ids[self.attribute_codes]

    @property
    def is_nominal(self) -> bool:
        """Whether labels are classes without an order: choice sets with a row per class."""
        classes = None if self.reading is None else self.reading.classes
        return classes is not None and self.attribute_ids is not None

    @property
    def X(self) -> FloatArray:  # noqa: N802 - what scikit-learn calls it
        """The features of each row; the table itself if it is in the order of the rows."""
        if np.array_equal(self.feature_rows, np.arange(len(self.features))):
            return self.features
        return self.features[self.feature_rows]

    @property
    def n_users(self) -> int:
        """The number of users who gave a label."""
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        """The number of items, including those without labels."""
        return len(self.item_ids)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.feature_names)

    @property
    def n_attributes(self) -> int:
        """The number of attributes; 1 without attributes."""
        return 1 if self.attribute_ids is None else len(self.attribute_ids)

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: ArrayLike | slice) -> Self:
        """Return some of the rows, by a mask or by their numbers (which may repeat).

        Users and attributes that no longer occur are dropped; items and their features are
        shared. An empty selection raises ValueError.
        """
        chosen = checks.as_rows(rows, len(self))
        if not chosen.size:
            raise ValueError(f"None of the {len(self)} rows is selected. Select at least one.")
        user_codes, users = compact(self.user_codes[chosen], self.n_users)
        changes: dict[str, Any] = {"user_codes": user_codes, "user_ids": self.user_ids[users]}
        for name in ("labels", "item_codes", "weights", "grades", "picks_worst", "tied"):
            values = getattr(self, name)
            changes[name] = None if values is None else values[chosen]
        by_row = self.features_per == "row"
        changes["feature_rows"] = self.feature_rows[chosen] if by_row else changes["item_codes"]
        if self.attribute_ids is not None and self.attribute_codes is not None:
            codes, remaining = compact(self.attribute_codes[chosen], self.n_attributes)
            changes |= {"attribute_codes": codes, "attribute_ids": self.attribute_ids[remaining]}
        if self.choice_set_codes is not None:
            codes, remaining = encode(self.choice_set_codes[chosen], "choice_sets")
            ids = None if self.choice_set_ids is None else self.choice_set_ids[remaining]
            changes |= {"choice_set_codes": codes, "choice_set_ids": ids}
        return self._with(**changes)

    def __getitem__(self, rows: ArrayLike | slice) -> Self:
        return self.take(rows)

    def __repr__(self) -> str:
        labelled = len(compact(self.item_codes, self.n_items)[1])
        of_all = "" if labelled == self.n_items else f"{labelled:,} of "
        several = self.n_attributes > 1 and not self.is_nominal
        attributes = f", {counted(self.n_attributes, 'attribute')}" if several else ""
        text = self.statements()
        if self.grades is not None and self.reading is not None:
            lowest, highest = self.grades.min(), self.grades.max()
            words = self.reading.grades
            named = [words[int(g)] if words else f"{g:g}" for g in (lowest, highest)]
            text += f" from {named[0]} to {named[1]}"
        elif not self._has_sets:
            word = None if self.reading is None else self.reading.positive
            which = f": {word!r}" if isinstance(word, str) else ""
            text += f" ({self.labels.mean():.0%} positive{which})"
        items = f" on {of_all}{counted(self.n_items, 'item')}"
        if self._has_sets and not self.has_items:  # each row of a choice set is a profile
            items = ""
        return (
            f"Annotations: {text} by {counted(self.n_users, 'person', 'people')}{items}, "
            f"{counted(self.n_features, 'feature')}{attributes}"
        )

    @property
    def _has_sets(self) -> bool:
        """Whether rows are choices, rather than labels or grades with ids of choice sets."""
        if self.grades is not None or self.choice_set_codes is None:
            return False
        return self.choice_set_ids is None or are_choices(self)

    @property
    def n_choices(self) -> int:
        """The number of choices; 0 if rows are single labels or grades."""
        if not self._has_sets:
            return 0
        return len(self._set_sizes) if are_choices(self) else int((self._set_sizes > 1).sum())

    @property
    def _set_sizes(self) -> Index:
        sizes = np.bincount([] if self.choice_set_codes is None else self.choice_set_codes)
        return np.asarray(sizes[sizes > 0])

    def statements(self) -> str:
        """Return the numbers of labels, grades or choices, in words."""
        if not self._has_sets:
            return counted(len(self), "label" if self.grades is None else "grade")
        sizes = self._set_sizes
        if self.is_nominal:
            return f"{counted(len(sizes), 'label')} of {self.n_attributes} classes"
        sets = sizes if are_choices(self) else sizes[sizes > 1]
        n_single = len(sizes) - len(sets)
        parts = [counted(n_single, "label")] if n_single else []
        if sets.size:
            least, most = sets.min(), sets.max()
            among = f"{least}" if least == most else f"{least} to {most}"
            parts.insert(0, f"{counted(len(sets), 'choice')} among {among}")
        return " and ".join(parts)

    def _repr_html_(self) -> str:
        first = self[: min(len(self), _ROWS_SHOWN)]
        columns = zip(first.users, first.items, first.outcomes.tolist(), strict=True)
        rows = [{"user": user, "item": item, "label": label} for user, item, label in columns]
        more = len(self) - len(rows)
        rest = f"<p>and {more:,} more</p>" if more else ""
        return html_page(repr(self), html_table(rows), rest)

    def user_index(self) -> tuple[Index, Index]:
        """Return the rows sorted by user, and where each user starts.

        The rows of user ``p`` are ``order[offsets[p] : offsets[p + 1]]``, ascending.
        """
        return self._user_index

    @cached_property
    def _user_index(self) -> tuple[Index, Index]:
        order, offsets = order_by(self.user_codes, self.n_users)
        return checks.read_only(order), checks.read_only(offsets)

    @cached_property
    def _user_positions(self) -> dict[Hashable, int]:
        return {user: code for code, user in enumerate(self.user_ids.tolist())}

    def of_user(self, user: Hashable) -> Self:
        """Return the rows of one user."""
        return self.take(self._rows_of(self._codes_of([user])[0]))

    def of_users(self, users: Iterable[Hashable]) -> Self:
        """Return the rows of several users, in their order here."""
        mask = np.zeros(self.n_users, dtype=bool)
        mask[self._codes_of(users)] = True
        return self.take(mask[self.user_codes])

    def by_user(self) -> Iterator[tuple[Hashable, Self]]:
        """Iterate over users and their rows."""
        for code, user in enumerate(self.user_ids.tolist()):
            yield user, self.take(self._rows_of(code))

    def of_attribute(self, attribute: Hashable) -> Self:
        """Return the rows about one attribute, without the column of attributes."""
        attributes = self._known_attributes()
        if attribute not in attributes:
            raise KeyError(
                f"No label is about {attribute!r}; the attributes are {listing(attributes)}."
            )
        rows = self.take(self.attribute_codes == attributes.index(attribute))
        verb = self.verb or default_verb(attribute) or "find {}"
        verb = verb.replace("{}", str(attribute))
        rows = rows._with(attribute_ids=None, attribute_codes=None, verb=verb)
        if self.is_nominal:  # one row of each choice set is left: the class, or another
            rows = rows._with(choice_set_codes=None, reading=None)
        return rows

    def by_attribute(self) -> dict[Hashable, Self]:
        """Return the annotations of each attribute, by its id."""
        return {attribute: self.of_attribute(attribute) for attribute in self._known_attributes()}

    def label_counts(self) -> Index:
        """Return how many negative and positive labels each user gave: (n_users, 2)."""
        return count_labels(self.user_codes, self.labels)

    def with_enough_labels(self, k: int = 8) -> Self:
        """Keep users with at least ``k`` negative and ``k`` positive labels (per attribute)."""
        blocks = self.user_codes
        if self.attribute_codes is not None:
            blocks = encode_pairs(blocks, self.attribute_codes)
        least = count_labels(blocks, self.labels).min(axis=1)
        if least.max() < k:
            raise ValueError(
                f"No user gave {k} labels of each kind; the most is {least.max()}. Lower k."
            )
        return self.take((least >= k)[blocks])

    def distinct_items(self) -> tuple[IdArray, FloatArray]:
        """Return each item once, and its features.

        If features are per row, an item has those of the first of its rows, without positions.
        """
        if self.features_per == "item":
            return self.item_ids, self.features
        codes, first = np.unique(self.item_codes, return_index=True)
        are_positions = np.isin(self.feature_names, POSITIONS)
        features = np.where(are_positions, 0.0, self.features[self.feature_rows[first]])
        return self.item_ids[codes], features.astype(self.features.dtype)

    def with_user_features(self, user_features: object) -> Self:
        """Return the same labels with covariates of users: see `Annotations`."""
        return self._with(user_features=read_covariates(user_features, self.user_ids))

    def with_verb(self, verb: str) -> Self:
        """Return the same labels with another verb for positive ones: see `Annotations`."""
        return self._with(verb=read_verb(verb))

    def written_as(
        self,
        users: IdArray | None = None,
        items: IdArray | None = None,
        attributes: IdArray | None = None,
    ) -> Self:
        """Convert ids to the types of the known ones: see `coerce_ids`."""
        changes: dict[str, Any] = {}
        for name, known in (("user", users), ("attribute", attributes)):
            ids, codes = getattr(self, f"{name}_ids"), getattr(self, f"{name}_codes")
            if known is not None and ids is not None:
                new, distinct = encode(coerce_ids(ids, known, f"{name}s"), f"{name}s")
                changes |= {f"{name}_ids": distinct, f"{name}_codes": new[codes]}
        if users is not None and self.user_features is not None:
            changes["user_features"] = self.user_features.written_as(users)
        if items is not None:
            changes["item_ids"] = coerce_ids(self.item_ids, items, "items")
        return self._with(**changes)

    def without_choice_set_names(self) -> Self:
        """Return the same rows without ids of choice sets, so later rows never join them."""
        return self._with(choice_set_ids=None)

    def _known_attributes(self) -> list[Hashable]:
        if self.attribute_ids is None:
            raise ValueError("These annotations have no attributes: pass attributes= for them.")
        return list(self.attribute_ids.tolist())

    def _codes_of(self, users: Iterable[Hashable]) -> list[int]:
        distinct = list(dict.fromkeys(users))
        unknown = [user for user in distinct if user not in self._user_positions]
        if unknown:
            raise KeyError(
                f"No label is by {listing([repr(user) for user in unknown])}; user_ids lists the "
                f"users.{did_you_mean(unknown[0], self.user_ids.tolist())}"
            )
        return [self._user_positions[user] for user in distinct]

    def _rows_of(self, code: int) -> Index:
        order, offsets = self._user_index
        return order[offsets[code] : offsets[code + 1]]

    @classmethod
    def _of(cls, **columns: object) -> Self:
        """Make labels of columns that are coded and checked; omitted columns are None."""
        made = object.__new__(cls)
        made._store(**(dict.fromkeys(field.name for field in fields(cls)) | columns))
        return made

    def _with(self, **changes: object) -> Self:
        return self._of(**(self.__getstate__() | changes))

    def _store(self, **values: object) -> None:
        self.__dict__.update({name: checks.read_only(value) for name, value in values.items()})

    # Without cached properties; arrays are read-only again once the state is set.
    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._store(**state)


def read_covariates(user_features: object, ids: IdArray) -> Covariates | None:
    """Return covariates whose ids of users have the type of ``ids``."""
    return None if user_features is None else Covariates.read(user_features).written_as(ids)


def are_choices(annotations: CodedLabels) -> bool:
    """Return whether all rows are in choice sets of equal weights with one chosen row each."""
    sets = annotations.choice_set_codes
    if sets is None:
        return False
    chosen, _ = classes_by_set(sets, annotations)
    return bool((chosen == 1).all() and counted_alike(sets, annotations).all())


def counted_alike(sets: Index, annotations: CodedLabels) -> Bool:
    """Return for each choice set whether all of its rows have equal weights."""
    n_sets = int(sets.max()) + 1
    if annotations.weights is None:
        return np.ones(n_sets, dtype=np.bool_)
    least, most = np.full(n_sets, np.inf), np.zeros(n_sets)
    np.minimum.at(least, sets, annotations.weights)
    np.maximum.at(most, sets, annotations.weights)
    return np.asarray(least == most)


def classes_by_set(sets: Index, annotations: CodedLabels) -> tuple[Index, Index]:
    """Return how many rows of each choice set were chosen, and how many were not."""
    n_sets, chosen = int(sets.max()) + 1, annotations.chosen
    return (
        np.bincount(sets[chosen], minlength=n_sets),
        np.bincount(sets[~chosen], minlength=n_sets),
    )
