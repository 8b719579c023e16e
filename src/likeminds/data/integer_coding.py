"""Labels as integer codes and distinct ids, and the selection of rows."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util import checks
from likeminds._util.array_types import Bool, FloatArray, IdArray, Index
from likeminds._util.checks import listing
from likeminds._util.did_you_mean import did_you_mean
from likeminds._util.frame_backend import Frames
from likeminds._util.html import html_page, html_table
from likeminds._util.per_user_arrays import order_by
from likeminds.data.column_roles import default_verb
from likeminds.data.covariates import Covariates
from likeminds.data.identifiers import compact, encode, encode_pairs
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
    # Files written before have none of these.
    has_items: bool = True
    choice_set_ids: IdArray | None = field(default=None, metadata={"stored": "group_ids"})
    reading: LabelReading | None = None
    user_features: Covariates | None = field(default=None, metadata={"stored": "people"})
    grades: FloatArray | None = None
    picks_worst: Bool | None = None
    verb: str | None = None
    # Which kind of tables the caller works with; files have nothing to do with that.
    frames: Frames = field(default="pyarrow", metadata={"stored": False})

    @property
    def outcomes(self) -> Bool | FloatArray:
        """What scores are to put in order: the grades, or the labels where there are none."""
        return self.labels if self.grades is None else self.grades

    @property
    def users(self) -> IdArray:
        """The person of each row."""
        return self.user_ids[self.user_codes]

    @property
    def items(self) -> IdArray:
        """The item of each row."""
        return self.item_ids[self.item_codes]

    @property
    def chosen(self) -> Bool:
        """Whether each row is what was chosen in its group: the best, or the worst if asked so."""
        return self.labels if self.picks_worst is None else self.labels ^ self.picks_worst

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
    def n_users(self) -> int:
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

    def take(self, rows: ArrayLike | slice) -> Self:
        """Return some of the rows, by a mask or by their numbers (which may repeat).

        People and attributes that no longer occur are left out; the items and their features
        stay, and are shared. No rows at all are refused.
        """
        chosen = checks.as_rows(rows, len(self))
        if not chosen.size:
            raise ValueError(f"None of the {len(self)} rows is chosen. Choose at least one.")
        user_codes, people = compact(self.user_codes[chosen], self.n_users)
        changes: dict[str, Any] = {"user_codes": user_codes, "user_ids": self.user_ids[people]}
        changes |= {"labels": self.labels[chosen], "item_codes": self.item_codes[chosen]}
        by_row = self.features_per == "row"
        changes["feature_rows"] = self.feature_rows[chosen] if by_row else changes["item_codes"]
        if self.attribute_ids is not None and self.attribute_codes is not None:
            codes, kept = compact(self.attribute_codes[chosen], self.n_attributes)
            changes |= {"attribute_codes": codes, "attribute_ids": self.attribute_ids[kept]}
        if self.choice_set_codes is not None:
            codes, kept = encode(self.choice_set_codes[chosen], "choice_sets")
            changes["choice_set_codes"] = codes
            changes["choice_set_ids"] = (
                None if self.choice_set_ids is None else self.choice_set_ids[kept]
            )
        if self.weights is not None:
            changes["weights"] = self.weights[chosen]
        if self.grades is not None:
            changes["grades"] = self.grades[chosen]
        if self.picks_worst is not None:
            changes["picks_worst"] = self.picks_worst[chosen]
        return self._with(**changes)

    def __getitem__(self, rows: ArrayLike | slice) -> Self:
        return self.take(rows)

    def _repr_html_(self) -> str:
        first = self[: min(len(self), _ROWS_SHOWN)]
        said = first.labels if first.grades is None else first.grades
        rows = [
            {"user": who, "item": what, "label": label}
            for who, what, label in zip(first.users, first.items, said.tolist(), strict=True)
        ]
        more = len(self) - len(rows)
        rest = f"<p>and {more:,} more</p>" if more else ""
        return html_page(repr(self), html_table(rows), rest)

    def user_index(self) -> tuple[Index, Index]:
        """Return the rows sorted by person, and where each person starts.

        The rows of person ``p`` are ``order[offsets[p] : offsets[p + 1]]``, ascending.
        """
        return self._user_index

    @cached_property
    def _user_index(self) -> tuple[Index, Index]:
        order, offsets = order_by(self.user_codes, self.n_users)
        return checks.read_only(order), checks.read_only(offsets)

    @cached_property
    def _user_positions(self) -> dict[Hashable, int]:
        return {person: code for code, person in enumerate(self.user_ids.tolist())}

    def of_user(self, person: Hashable) -> Self:
        """Return the rows of one person."""
        return self.take(self._rows_of(self._codes_of([person])[0]))

    def of_users(self, people: Iterable[Hashable]) -> Self:
        """Return the rows of several people, in the order they have here."""
        wanted = np.zeros(self.n_users, dtype=bool)
        wanted[self._codes_of(people)] = True
        return self.take(wanted[self.user_codes])

    def by_user(self) -> Iterator[tuple[Hashable, Self]]:
        """Iterate over people and their rows."""
        for code, person in enumerate(self.user_ids.tolist()):
            yield person, self.take(self._rows_of(code))

    def of_attribute(self, attribute: Hashable) -> Self:
        """Return the rows about one attribute, without the column of attributes."""
        known = self._known_attributes()
        if attribute not in known:
            raise KeyError(f"No label is about {attribute!r}; there are {listing(known)}.")
        rows = self.take(self.attribute_codes == known.index(attribute))
        verb = self.verb or default_verb(attribute) or "find {}"
        verb = verb.replace("{}", str(attribute))
        return rows._with(attribute_ids=None, attribute_codes=None, verb=verb)

    def by_attribute(self) -> dict[Hashable, Self]:
        """Return the annotations of each attribute, by its id."""
        return {attribute: self.of_attribute(attribute) for attribute in self._known_attributes()}

    def label_counts(self) -> Index:
        """Return how many negative and positive labels each person gave: (n_users, 2)."""
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

    def _known_attributes(self) -> list[Hashable]:
        if self.attribute_ids is None:
            raise ValueError("These annotations have no attributes: pass attributes= for them.")
        return list(self.attribute_ids.tolist())

    def _codes_of(self, people: Iterable[Hashable]) -> list[int]:
        codes = {person: self._user_positions.get(person, -1) for person in people}
        unknown = [repr(person) for person, code in codes.items() if code < 0]
        if unknown:
            wrong = next(person for person, code in codes.items() if code < 0)
            raise KeyError(
                f"No label is by {listing(unknown)}; see user_ids for who is there."
                f"{did_you_mean(wrong, self.user_ids.tolist())}"
            )
        return list(codes.values())

    def _rows_of(self, code: int) -> Index:
        order, offsets = self._user_index
        return order[offsets[code] : offsets[code + 1]]

    @classmethod
    def _of(cls, **columns: Any) -> Self:
        """Return labels that are coded and checked already; what is left out is None."""
        made = object.__new__(cls)
        made._store(**(dict.fromkeys(field.name for field in fields(cls)) | columns))
        return made

    def _with(self, **changes: Any) -> Self:
        return self._of(**(self.__getstate__() | changes))

    def _store(self, **values: Any) -> None:
        self.__dict__.update({name: checks.read_only(value) for name, value in values.items()})

    # Without cached properties; arrays are read-only again once the state is set.
    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "has_items" not in state:
            own = np.array_equal(state["item_codes"], state["feature_rows"])
            state = state | {"has_items": state["features_per"] == "item" or not own}
        self._store(**state)
