"""Who said what about which item: the data that everything else works on."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from os import PathLike
from typing import Any, Literal, Self, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike

from likeminds._support import checks
from likeminds._support.arrays import Bool, FloatArray, IdArray, Index
from likeminds._support.checks import counted, listing
from likeminds._support.grouping import order_by
from likeminds.data import tables
from likeminds.data.identifiers import as_id_array, compact, encode, encode_pairs, join_codes
from likeminds.data.labels import as_binary, count_labels
from likeminds.data.sources import read_csv, read_parquet
from likeminds.data.tables import FrameOptions, LinkedFeatures


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Annotations:
    """Labels that people gave to items, and the features of these items.

    A row is one label by one person about one item. Nothing can be changed afterwards, and
    all slices share one table of features.

    Parameters
    ----------
    users, items : sequence of ids
        The person and the item of each row; ids are strings, integers, tuples or anything
        else hashable. ``items=None`` makes every row an item of its own.
    labels : sequence
        True/False, 0/1, -1/+1; any two values with ``positive``; ratings with ``threshold``.
    features : array, data frame, or mapping from item id to vector
        Numbers, one row per item or one per annotation. Single precision is kept, and an
        array is not copied.
    attributes : sequence of ids, optional
        The attribute that each row is about.
    weights : sequence of float, optional
        How much each row counts; not negative.
    groups : sequence of ids, optional
        Rows of one person with the same id were shown together and must not be split.
        The same id used by two people makes two groups.
    positive : hashable, optional
        Which of two labels is the positive one.
    threshold : float or "median", optional
        Above which number a rating is positive, *strictly*; "median" means strictly above
        the median of what this person said (about this attribute, if there are several).
    item_ids : sequence of ids, optional
        The item that each row of ``features`` describes; by default, its number.
    feature_names : sequence of str, optional
        By default those of the data frame, or x0, x1, ...
    features_per : {"auto", "item", "row"}
        What a row of ``features`` belongs to; "auto" tells by the numbers of rows, or asks.

    Attributes
    ----------
    user_ids, item_ids, attribute_ids : array
        The distinct ids. People and attributes are sorted; items are in the order of the
        table of features if it has one row per item, and include those nobody labelled.
    user_codes, item_codes, attribute_codes : array of int
        For each row, the position of its id among the distinct ids.
    features, feature_names, feature_rows : array, tuple of str, array of int
        The table of features, the names of its columns, and for each row its row in it.
    features_per : {"item", "row"}
        With "item", ``feature_rows`` are the ``item_codes``.
    labels, weights, group_codes : array of bool, of float or None, of int or None
        For each row, its label, its weight and the number of its group.

    Examples
    --------
    >>> annotations = Annotations(
    ...     users=["zoe", "ann", "zoe"],
    ...     items=["cat", "cat", "dog"],
    ...     labels=[1, 0, 0],
    ...     features={"cat": [0.1, 2.0], "dog": [0.7, 1.0]},
    ... )
    >>> annotations
    Annotations: 3 labels (33% positive) by 2 people on 2 items, 2 features
    >>> annotations.of_person("zoe").items
    array(['cat', 'dog'], dtype=object)
    """

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
    group_codes: Index | None
    weights: FloatArray | None

    def __init__(  # noqa: PLR0917 - the columns of a table, in their usual order
        self,
        users: Iterable[Hashable],
        items: Iterable[Hashable] | None,
        labels: Iterable[Hashable],
        features: Any,
        attributes: Iterable[Hashable] | None = None,
        weights: ArrayLike | None = None,
        groups: Iterable[Hashable] | None = None,
        *,
        positive: Hashable | None = None,
        threshold: float | str | None = None,
        item_ids: Iterable[Hashable] | None = None,
        feature_names: Sequence[str] | None = None,
        features_per: Literal["auto", "item", "row"] = "auto",
    ) -> None:
        values = as_id_array(labels, "labels")
        people, people_ids = encode(users, "users")
        optional = {"items": items, "attributes": attributes, "groups": groups}
        coded = {name: encode(ids, name) for name, ids in optional.items() if ids is not None}
        lengths = {name: codes for name, (codes, _) in coded.items()}
        checks.same_length(users=people, labels=values, **lengths)
        if not len(values):
            raise ValueError("There are no annotations: users, items and labels are empty.")
        about, about_ids = coded.get("attributes", (None, None))
        linked = tables.link_features(
            features,
            coded.get("items"),
            len(values),
            item_ids=item_ids,
            names=feature_names,
            features_per=features_per,
        )
        within = [people] if about is None else [people, about]
        checked = checks.as_weights(weights, len(values))
        self._store(
            user_ids=people_ids,
            user_codes=people,
            labels=as_binary(values, positive=positive, threshold=threshold, within=within),
            attribute_ids=about_ids,
            attribute_codes=about,
            group_codes=encode_pairs(people, coded["groups"][0]) if "groups" in coded else None,
            weights=None if checked is None else checked.copy(),
            **linked._asdict(),
        )

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        person: str | None = None,
        item: str | None = None,
        label: str | None = None,
        attribute: str | None = None,
        weight: str | None = None,
        group: str | None = None,
        features: Any = None,
        item_column: str | None = None,
        positive: Hashable | None = None,
        threshold: float | str | None = None,
    ) -> Self:
        """Read a data frame with one row per annotation.

        Parameters
        ----------
        frame : data frame (pandas, polars, pyarrow, ...), or a name that `data.sources` reads
        person, item, label, attribute, weight, group : str, optional
            The names of the columns. Without them, columns with usual names are taken:
            see `likeminds.data.tables.COLUMN_NAMES`. Only person and label must exist.
        features : list of str, data frame or path, optional
            Columns of ``frame``; or a second table with one row per item, which has no other
            columns than numbers and the id of the item. By default all columns of numbers
            (or true/false) in ``frame`` that have no other role.
        item_column : str, optional
            The column of item ids in the second table; by default called as in ``frame``.
        positive, threshold : optional
            How labels are read: see `Annotations`.

        Examples
        --------
        >>> import pyarrow
        >>> frame = pyarrow.table({"user": ["a", "b"], "label": [1, 0], "size": [0.5, 2.0]})
        >>> Annotations.from_frame(frame)
        Annotations: 2 labels (50% positive) by 2 people on 2 items, 1 feature
        """
        names = {"person": person, "item": item, "label": label}
        names |= {"attribute": attribute, "weight": weight, "group": group}
        columns = tables.read_columns(frame, names, features, item_column)
        return cls(**columns, positive=positive, threshold=threshold)

    @classmethod
    def from_csv(cls, path: str | PathLike[str], **options: Unpack[FrameOptions]) -> Self:
        """Read a CSV file with a header; the options are those of `from_frame`."""
        return cls.from_frame(read_csv(path), **options)

    @classmethod
    def from_parquet(cls, path: str | PathLike[str], **options: Unpack[FrameOptions]) -> Self:
        """Read a Parquet file; the options are those of `from_frame`."""
        return cls.from_frame(read_parquet(path), **options)

    @property
    def users(self) -> IdArray:
        """The person of each row."""
        return self.user_ids[self.user_codes]

    @property
    def items(self) -> IdArray:
        """The item of each row."""
        return self.item_ids[self.item_codes]

    @property
    def attributes(self) -> IdArray | None:
        """The attribute of each row, None without attributes."""
        if self.attribute_ids is None or self.attribute_codes is None:
            return None
        return self.attribute_ids[self.attribute_codes]

    @property
    def X(self) -> FloatArray:  # noqa: N802 - what scikit-learn calls it
        """The features of each row; the table itself if it is in the order of the rows."""
        if np.array_equal(self.feature_rows, np.arange(len(self.features))):
            return self.features
        return self.features[self.feature_rows]

    @property
    def n_people(self) -> int:
        """The number of people that gave a label."""
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        """The number of items, including those nobody labelled."""
        return len(self.item_ids)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.feature_names)

    @property
    def n_attributes(self) -> int:
        """The number of attributes; 1 if they are not told apart."""
        return 1 if self.attribute_ids is None else len(self.attribute_ids)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        labelled = len(compact(self.item_codes, self.n_items)[1])
        of_all = "" if labelled == self.n_items else f"{labelled:,} of "
        attributes = f", {counted(self.n_attributes, 'attribute')}" if self.n_attributes > 1 else ""
        return (
            f"Annotations: {counted(len(self), 'label')} ({self.labels.mean():.0%} positive) "
            f"by {counted(self.n_people, 'person', 'people')} on {of_all}"
            f"{counted(self.n_items, 'item')}, {counted(self.n_features, 'feature')}{attributes}"
        )

    def take(self, rows: ArrayLike | slice) -> Self:
        """Return some of the rows, by a mask or by their numbers (which may repeat).

        People and attributes that no longer occur are left out; the items and their features
        stay, and are shared. No rows at all are refused.
        """
        chosen = checks.as_rows(rows, len(self))
        if not chosen.size:
            raise ValueError(f"None of the {len(self)} rows is chosen. Choose at least one.")
        user_codes, people = compact(self.user_codes[chosen], self.n_people)
        changes: dict[str, Any] = {"user_codes": user_codes, "user_ids": self.user_ids[people]}
        changes |= {"labels": self.labels[chosen], "item_codes": self.item_codes[chosen]}
        by_row = self.features_per == "row"
        changes["feature_rows"] = self.feature_rows[chosen] if by_row else changes["item_codes"]
        if self.attribute_ids is not None and self.attribute_codes is not None:
            codes, kept = compact(self.attribute_codes[chosen], self.n_attributes)
            changes |= {"attribute_codes": codes, "attribute_ids": self.attribute_ids[kept]}
        if self.group_codes is not None:
            changes["group_codes"] = encode(self.group_codes[chosen], "groups")[0]
        if self.weights is not None:
            changes["weights"] = self.weights[chosen]
        return self._with(**changes)

    def __getitem__(self, rows: ArrayLike | slice) -> Self:
        return self.take(rows)

    def person_index(self) -> tuple[Index, Index]:
        """Return the rows sorted by person, and where each person starts.

        The rows of person ``p`` are ``order[offsets[p] : offsets[p + 1]]``, ascending.
        """
        return self._person_index

    @cached_property
    def _person_index(self) -> tuple[Index, Index]:
        order, offsets = order_by(self.user_codes, self.n_people)
        return checks.read_only(order), checks.read_only(offsets)

    @cached_property
    def _person_positions(self) -> dict[Hashable, int]:
        return {person: code for code, person in enumerate(self.user_ids.tolist())}

    def of_person(self, person: Hashable) -> Self:
        """Return the rows of one person."""
        return self.take(self._rows_of(self._codes_of([person])[0]))

    def of_people(self, people: Iterable[Hashable]) -> Self:
        """Return the rows of several people, in the order they have here."""
        wanted = np.zeros(self.n_people, dtype=bool)
        wanted[self._codes_of(people)] = True
        return self.take(wanted[self.user_codes])

    def by_person(self) -> Iterator[tuple[Hashable, Self]]:
        """Iterate over people and their rows."""
        for code, person in enumerate(self.user_ids.tolist()):
            yield person, self.take(self._rows_of(code))

    def of_attribute(self, attribute: Hashable) -> Self:
        """Return the rows about one attribute, without the column of attributes."""
        known = self._known_attributes()
        if attribute not in known:
            raise KeyError(f"No label is about {attribute!r}; there are {listing(known)}.")
        rows = self.take(self.attribute_codes == known.index(attribute))
        return rows._with(attribute_ids=None, attribute_codes=None)

    def by_attribute(self) -> dict[Hashable, Self]:
        """Return the annotations of each attribute, by its id."""
        return {attribute: self.of_attribute(attribute) for attribute in self._known_attributes()}

    def label_counts(self) -> Index:
        """Return how many negative and positive labels each person gave: (n_people, 2)."""
        return count_labels(self.user_codes, self.labels)

    def with_enough_labels(self, k: int = 8) -> Self:
        """Keep who gave at least ``k`` negative and ``k`` positive labels (per attribute)."""
        blocks = self.user_codes
        if self.attribute_codes is not None:
            blocks = encode_pairs(blocks, self.attribute_codes)
        least = count_labels(blocks, self.labels).min(axis=1)
        if least.max() < k:
            raise ValueError(
                f"Nobody gave {k} labels of each kind; the most is {least.max()}. Lower k."
            )
        return self.take((least >= k)[blocks])

    def concat(self, other: Self) -> Self:
        """Append the rows of other annotations about the same features.

        With features per item, the items of both are united, and an item that has other
        features there is refused; otherwise each row keeps the features it has. Groups stay
        distinct, and missing weights are ones.
        """
        if self.feature_names != other.feature_names:
            raise ValueError(
                f"The features differ: {listing(self.feature_names)} here, "
                f"{listing(other.feature_names)} there."
            )
        changes: dict[str, Any] = tables.unite_features(self._linked, other._linked)._asdict()
        for names in (("user_codes", "user_ids"), ("attribute_codes", "attribute_ids")):
            ours, theirs = (tuple(getattr(part, name) for name in names) for part in (self, other))
            if checks.both_or_neither(ours[0], theirs[0], "attributes"):
                changes |= zip(names, join_codes(ours, theirs), strict=True)
        if checks.both_or_neither(self.group_codes, other.group_codes, "groups"):
            groups, more = cast("Index", self.group_codes), cast("Index", other.group_codes)
            changes["group_codes"] = np.concatenate([groups, more + groups.max() + 1])
        if self.weights is not None or other.weights is not None:
            weights = [np.ones(len(a)) if a.weights is None else a.weights for a in (self, other)]
            changes["weights"] = np.concatenate(weights)
        return self._with(**changes, labels=np.concatenate([self.labels, other.labels]))

    def _known_attributes(self) -> list[Hashable]:
        if self.attribute_ids is None:
            raise ValueError("These annotations have no attributes: pass attributes= for them.")
        return list(self.attribute_ids.tolist())

    def _codes_of(self, people: Iterable[Hashable]) -> list[int]:
        codes = {person: self._person_positions.get(person, -1) for person in people}
        unknown = [repr(person) for person, code in codes.items() if code < 0]
        if unknown:
            raise KeyError(f"No label is by {listing(unknown)}; see user_ids for who is there.")
        return list(codes.values())

    @property
    def _linked(self) -> LinkedFeatures:
        return LinkedFeatures(*(getattr(self, name) for name in LinkedFeatures._fields))

    def _rows_of(self, code: int) -> Index:
        order, offsets = self._person_index
        return order[offsets[code] : offsets[code + 1]]

    def _with(self, **changes: Any) -> Self:
        changed = object.__new__(type(self))
        changed._store(**(self.__getstate__() | changes))
        return changed

    def _store(self, **values: Any) -> None:
        self.__dict__.update({name: checks.read_only(value) for name, value in values.items()})

    # Without what is computed on demand, and read-only again on the other side.
    def __getstate__(self) -> dict[str, Any]:
        return {field.name: self.__dict__[field.name] for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._store(**state)
