"""Annotations: labels by people about items, with the items' features."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util import checks
from likeminds._util.array_types import FloatArray, IdArray, Index
from likeminds._util.checks import listing
from likeminds._util.text_format import counted
from likeminds._util.verbs import read_verb
from likeminds.data import tables
from likeminds.data.choice_sets import are_choices
from likeminds.data.column_roles import default_verb
from likeminds.data.comparisons import ComparedLabels
from likeminds.data.covariates import Covariates
from likeminds.data.duplicates import settle_duplicates
from likeminds.data.frame_arguments import arguments_of
from likeminds.data.grades import join_grades, read_answers
from likeminds.data.id_coercion import write_as_known
from likeminds.data.identifiers import compact, encode, join_codes
from likeminds.data.label_parsing import LabelReading, join_readings
from likeminds.data.row_groups import have_choice_sets, join_choice_sets, named_choice_sets
from likeminds.data.sources import give_back, read_csv, read_parquet, read_table
from likeminds.data.tables import FrameOptions, LinkedFeatures


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Annotations(ComparedLabels):
    """Labels that people gave to items, and the features of these items.

    A row is one label by one person about one item. Nothing can be changed afterwards, and
    all slices share one table of features.

    Parameters
    ----------
    users, items : sequence of ids
        The person and the item of each row; ids are strings, integers, tuples or anything
        else hashable. ``items=None`` makes every row an item of its own.
    labels : sequence
        True/False, 0/1, -1/+1, yes/no, agree/disagree and the like; any two values with
        ``positive``; ratings with ``threshold``; grades: more than two numbers, an ordered
        categorical, or anything with ``grades``.
    features : array, data frame, or mapping from item id to vector, optional
        Numbers, one row per item or one per annotation. Single precision is kept, and an
        array is not copied. Without them, items are known by what people say of them.
    attributes : sequence of ids, optional
        The attribute that each row is about.
    weights : sequence of float, optional
        How much each row counts; not negative.
    choice_sets : sequence of ids, optional
        Rows of one person with the same id were shown together and must not be split, now or
        in annotations that are added later. The same id used by two people makes two choice sets.
    positive : hashable, optional
        Which of two labels is the positive one, in any case; of yes and no, it is yes.
    threshold : float or "median", optional
        Above which number a rating is positive, *strictly*; "median" means strictly above
        the median of what this person said (about this attribute, if there are several).
    grades : sequence or True, optional
        The grades from worst to best; True where labels are grades though there are two of them
        or fewer. Numbers are rounded to six decimals. See docs/grades.md.
    item_ids : sequence of ids, optional
        The item that each row of ``features`` describes; by default, its number.
    feature_names : sequence of str, optional
        By default those of the data frame, or x0, x1, ...
    features_per : {"auto", "item", "row"}
        What a row of ``features`` belongs to; "auto" tells by the numbers of rows, or asks.
    reading : LabelReading, optional
        How other labels were read before; these are read likewise, or refused.
    duplicates : {"keep", "weights", "error"}
        What becomes of rows in which a person judges an item again (about the same attribute,
        in the same choice set): each counts, and splits may part them; or equal ones become one
        row that weighs as much as all; or they are refused.
    user_features : Covariates, mapping by person, data frame or path, optional
        What is known about people besides their labels (age, country): see `Covariates`. People
        may be missing there, or have no labels here.
    verb : str, optional
        What people who say yes do with an item, as in "like", "agree with", "find offensive" or
        "would give it a prize". Explanations and reports use it; {} stands for the attribute. By
        default "find" and the attribute, "agree with" for agree, else "like".

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
    has_items : bool
        Whether rows say which item they are about; else each is an item of its own.
    labels, weights, choice_set_codes : array of bool, of float or None, of int or None
        For each row, its label, its weight and the number of its choice set. Where labels are
        grades, those above the one that divides them most evenly are true.
    grades : array of float or None
        For each row, its grade: the number, or the position in the order of words.
    outcomes : array
        The grades, or the labels where there are none: what scores should put in order.
    choice_set_ids : array or None
        The id of each choice set.
    reading : LabelReading or None
        How labels were read: which of two values, or which ratings, are positive. None where
        they were true and false already.
    user_features : Covariates or None
        Covariates of people; rows that are taken share it.
    picks_worst : array of bool, or None
        Rows of choice sets in which the worst was chosen: there, the negative label is the choice.
    verb : str or None
        What people do with items; None is "like".

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
    >>> annotations.of_user("zoe").items
    array(['cat', 'dog'], dtype=object)
    """

    def __init__(  # noqa: PLR0917 - the columns of a table, in their usual order
        self,
        users: Iterable[Hashable],
        items: Iterable[Hashable] | None,
        labels: Iterable[Hashable],
        features: Any = None,
        attributes: Iterable[Hashable] | None = None,
        weights: ArrayLike | None = None,
        choice_sets: Iterable[Hashable] | None = None,
        *,
        positive: Hashable | None = None,
        threshold: float | str | None = None,
        grades: bool | Sequence[Hashable] | None = None,
        item_ids: Iterable[Hashable] | None = None,
        feature_names: Sequence[str] | None = None,
        features_per: Literal["auto", "item", "row"] = "auto",
        reading: LabelReading | None = None,
        duplicates: str = "keep",
        user_features: Any = None,
        verb: str | None = None,
    ) -> None:
        persons, person_ids = encode(users, "users")
        optional = {"items": items, "attributes": attributes, "choice_sets": choice_sets}
        coded = {name: encode(ids, name) for name, ids in optional.items() if ids is not None}
        lengths = {name: codes for name, (codes, _) in coded.items()}
        about, about_ids = coded.get("attributes", (None, None))
        if not len(persons):
            raise ValueError("There are no annotations: users, items and labels are empty.")
        answers = read_answers(
            labels,
            positive=positive,
            threshold=threshold,
            grades=grades,
            within=[persons] if about is None else [persons, about],
            known=reading,
        )
        checks.same_length(users=persons, labels=answers.binary, **lengths)
        word = None if answers.reading is None else answers.reading.positive
        linked = tables.link_features(
            features,
            coded.get("items"),
            len(persons),
            item_ids=item_ids,
            names=feature_names,
            features_per=features_per,
        )
        checked = checks.as_weights(weights, len(persons))
        self._store(
            user_ids=person_ids,
            user_codes=persons,
            labels=answers.binary,
            reading=answers.reading,
            grades=answers.grades,
            attribute_ids=about_ids,
            attribute_codes=about,
            weights=None if checked is None else checked.copy(),
            **linked._asdict(),
            user_features=_known(user_features, person_ids),
            verb=read_verb(verb) or (default_verb(word) if about is None else None),
            **named_choice_sets(persons, *coded.get("choice_sets", (None, None))),
        )
        settled = settle_duplicates(self, duplicates)
        if settled is not None:
            rows, total = settled
            self._store(**self.take(rows).__getstate__() | {"weights": total})

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        user: str | None = None,
        item: str | None = None,
        label: str | None = None,
        attribute: str | None = None,
        weight: str | None = None,
        choice_set: str | None = None,
        alternative: str | None = None,
        availability: str | None = None,
        constants: bool = True,
        base: Hashable | None = None,
        features: Any = None,
        item_column: str | None = None,
        positive: Hashable | None = None,
        threshold: float | str | None = None,
        grades: bool | Sequence[Hashable] | None = None,
        reading: LabelReading | None = None,
        duplicates: str = "keep",
        user_features: Any = None,
        verb: str | None = None,
    ) -> Self:
        """Read a data frame with one row per annotation.

        Parameters
        ----------
        frame : data frame (pandas, polars, pyarrow, ...)
            Files are read by `from_csv`, `from_parquet` and `from_source`.
        user, item, label, attribute, weight, choice_set : str, optional
            The names of the columns. Without them, columns with usual names are taken:
            see `likeminds.data.tables.COLUMN_NAMES`. Only user and label must exist.
        alternative, availability : str, optional
            Columns of choice experiments: which alternative a row is about (alt, alternative), and
            whether it was available (availability, av): rows with 0 are left out.
        constants : bool, default=True
            Whether to add alternative-specific constants: a dummy of each alternative but the base,
            unless other features imply it. Messages of the logger `likeminds` name them.
        base : optional
            The base alternative; by default the first in sorted order.
        features : list of str, data frame or path, optional
            Columns of ``frame``; or a second table with one row per item, which has no other
            columns than numbers and the id of the item. By default all columns of numbers
            (or true/false) in ``frame`` that have no other role.
        item_column : str, optional
            The column of item ids in the second table; by default called as in ``frame``.
        positive, threshold, grades, reading, duplicates : optional
            How labels are read, and what becomes of those given twice: see `Annotations`.
        user_features : data frame, path or mapping, optional
            Covariates of people: a table with one row per person. The person's column is called
            as in ``frame``, or has a usual name.
        verb : str, optional
            What people do with items: see `Annotations`. By default also "agree with" for a column
            vote, "choose" for choice or chosen.

        Examples
        --------
        >>> import pyarrow
        >>> frame = pyarrow.table({"user": ["a", "b"], "label": [1, 0], "size": [0.5, 2.0]})
        >>> Annotations.from_frame(frame)
        Annotations: 2 labels (50% positive) by 2 people on 2 items, 1 feature
        """
        options = FrameOptions(
            user=user,
            item=item,
            label=label,
            attribute=attribute,
            weight=weight,
            choice_set=choice_set,
            alternative=alternative,
            availability=availability,
            constants=constants,
            base=base,
            features=features,
            item_column=item_column,
            positive=positive,
            threshold=threshold,
            grades=grades,
            reading=reading,
            duplicates=duplicates,
            user_features=user_features,
            verb=verb,
        )
        return cls._of_arguments(*arguments_of(frame, options))

    @classmethod
    def from_csv(cls, path: str | PathLike[str], **options: Unpack[FrameOptions]) -> Self:
        """Read a CSV file with a header; the options are those of `from_frame`.

        Ids are texts, whatever they look like: 007 and 7 are two people.
        """
        texts = tables.texts_among(options)
        return cls._of_arguments(*arguments_of(read_csv(path, texts), options))

    @classmethod
    def from_parquet(cls, path: str | PathLike[str], **options: Unpack[FrameOptions]) -> Self:
        """Read a Parquet file; the options are those of `from_frame`."""
        return cls._of_arguments(*arguments_of(read_parquet(path), options))

    @classmethod
    def from_source(cls, source: str | PathLike[str], **options: Unpack[FrameOptions]) -> Self:
        """Read a file of any kind, or a query on a database, by its name as on the command line.

        The options are those of `from_frame`; `likeminds.data.sources` lists what is read.
        """
        texts = tables.texts_among(options)
        return cls._of_arguments(*arguments_of(read_table(source, texts), options))

    @classmethod
    def _of_arguments(cls, arguments: dict[str, Any], frames: Any) -> Self:
        give_back()
        return cls(**arguments)._with(frames=frames)

    def __repr__(self) -> str:
        labelled = len(compact(self.item_codes, self.n_items)[1])
        of_all = "" if labelled == self.n_items else f"{labelled:,} of "
        attributes = f", {counted(self.n_attributes, 'attribute')}" if self.n_attributes > 1 else ""
        said = self.statements()
        if self.grades is not None and self.reading is not None:
            lowest, highest = self.grades.min(), self.grades.max()
            words = self.reading.grades
            named = [words[int(g)] if words else f"{g:g}" for g in (lowest, highest)]
            said += f" from {named[0]} to {named[1]}"
        elif not self._has_sets:
            word = None if self.reading is None else self.reading.positive
            which = f": {word!r}" if isinstance(word, str) else ""
            said += f" ({self.labels.mean():.0%} positive{which})"
        items = f" on {of_all}{counted(self.n_items, 'item')}"
        if self._has_sets and not self.has_items:  # each row of a choice set is a profile
            items = ""
        return (
            f"Annotations: {said} by {counted(self.n_users, 'person', 'people')}{items}, "
            f"{counted(self.n_features, 'feature')}{attributes}"
        )

    @property
    def _has_sets(self) -> bool:
        """Whether all groups are choice sets, or single labels beside them."""
        if self.grades is not None or self.choice_set_codes is None:
            return False
        return self.choice_set_ids is None or are_choices(self)

    @property
    def n_choices(self) -> int:
        """How many choices there are; 0 where rows are single labels or grades."""
        if not self._has_sets:
            return 0
        return len(self._set_sizes) if are_choices(self) else int((self._set_sizes > 1).sum())

    @property
    def _set_sizes(self) -> Index:
        sizes = np.bincount([] if self.choice_set_codes is None else self.choice_set_codes)
        return np.asarray(sizes[sizes > 0])

    def statements(self) -> str:
        """Return how much people said, in words: labels, grades, or choices.

        Examples
        --------
        >>> Annotations.from_comparisons(["ann", "bob"], ["a", "b"], ["b", "c"]).statements()
        '2 choices among 2'
        """
        if not self._has_sets:
            return counted(len(self), "label" if self.grades is None else "grade")
        sizes = self._set_sizes
        sets = sizes if are_choices(self) else sizes[sizes > 1]
        n_single = len(sizes) - len(sets)
        parts = [counted(n_single, "label")] if n_single else []
        if sets.size:
            least, most = sets.min(), sets.max()
            among = f"{least}" if least == most else f"{least} to {most}"
            parts.insert(0, f"{counted(len(sets), 'choice')} among {among}")
        return " and ".join(parts)

    def concat(self, other: Self) -> Self:
        """Append the rows of other annotations about the same features.

        With features per item, the items of both are united, and an item that has other
        features there is refused; otherwise each row keeps the features it has. Ids there are
        written as here (7 as "7"), rows of one person's group there join that group here (of
        comparisons and choices, which have no names, none is joined), and missing weights are
        ones. Labels that were read in another way are refused, and so are
        other covariates of the same person.
        """
        if self.feature_names != other.feature_names:
            raise ValueError(
                f"The features differ: {listing(self.feature_names)} here, "
                f"{listing(other.feature_names)} there."
            )
        reading = join_readings(self.reading, other.reading)
        other = other.written_as(self.user_ids, self.item_ids, self.attribute_ids)
        changes: dict[str, Any] = tables.unite_features(self._linked, other._linked)._asdict()
        for names in (("user_codes", "user_ids"), ("attribute_codes", "attribute_ids")):
            ours, theirs = (tuple(getattr(part, name) for name in names) for part in (self, other))
            if checks.both_or_neither(ours[0], theirs[0], "attributes"):
                changes |= zip(names, join_codes(ours, theirs), strict=True)
        if have_choice_sets(self, other):
            changes |= join_choice_sets(changes["user_codes"], self, other)
        if self.picks_worst is not None or other.picks_worst is not None:
            asked = [a.labels ^ a.chosen for a in (self, other)]
            changes["picks_worst"] = np.concatenate(asked)
        if self.weights is not None or other.weights is not None:
            weights = [np.ones(len(a)) if a.weights is None else a.weights for a in (self, other)]
            changes["weights"] = np.concatenate(weights)
        changes |= join_grades(self, other, reading)
        if self.user_features is not None or other.user_features is not None:
            changes["user_features"] = _joint_features(self.user_features, other.user_features)
        changes["verb"] = self.verb or other.verb
        return self._with(**changes)

    def distinct_items(self) -> tuple[IdArray, FloatArray]:
        """Return each item once, and its features.

        Where rows have features of their own, an item's are those of the first of its rows.
        """
        if self.features_per == "item":
            return self.item_ids, self.features
        codes, first = np.unique(self.item_codes, return_index=True)
        return self.item_ids[codes], self.features[self.feature_rows[first]]

    def with_user_features(self, user_features: Any) -> Self:
        """Return the same labels with covariates of people: see `Annotations`."""
        return self._with(user_features=_known(user_features, self.user_ids))

    def with_verb(self, verb: str) -> Self:
        """Return the same labels with a verb: see `Annotations`.

        Examples
        --------
        >>> crowd = Annotations(["ann", "bob"], ["joke", "joke"], [1, 0])
        >>> crowd.with_verb("find funny").verb
        'find funny'
        """
        return self._with(verb=read_verb(verb))

    def written_as(
        self,
        people: IdArray | None = None,
        items: IdArray | None = None,
        attributes: IdArray | None = None,
    ) -> Self:
        """Write ids as others are written that are known: see `write_as_known`."""
        changes: dict[str, Any] = {}
        if people is not None:
            ids = write_as_known(self.user_ids, people, "users")
            codes, distinct = encode(ids, "users")
            changes |= {"user_ids": distinct, "user_codes": codes[self.user_codes]}
            if self.user_features is not None:
                changes["user_features"] = self.user_features.written_as(people)
        if items is not None:
            changes["item_ids"] = write_as_known(self.item_ids, items, "items")
        if attributes is not None and self.attribute_ids is not None:
            ids = write_as_known(self.attribute_ids, attributes, "attributes")
            codes, distinct = encode(ids, "attributes")
            changes |= {"attribute_ids": distinct, "attribute_codes": codes[self.attribute_codes]}
        return self._with(**changes)

    @property
    def _linked(self) -> LinkedFeatures:
        return LinkedFeatures(*(getattr(self, name) for name in LinkedFeatures._fields))


def _known(user_features: Any, ids: IdArray) -> Covariates | None:
    return None if user_features is None else Covariates.read(user_features).written_as(ids)


def _joint_features(first: Covariates | None, second: Covariates | None) -> Covariates | None:
    if first is None or second is None or first is second:
        return first or second
    return first.join(second)
