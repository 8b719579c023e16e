"""Annotations: labels of items by users, with the features of the items."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util import checks
from likeminds._util.result_tables import Frames
from likeminds._util.verbs import read_verb
from likeminds.data import tables
from likeminds.data.choice_sets import (
    ChoiceOptions,
    choice_sets,
    comparison_arguments,
    difference_arguments,
    graded_sets,
    only_available,
    preference_arguments,
    ranking_sets,
)
from likeminds.data.coded_labels import CodedLabels, known_covariates
from likeminds.data.column_roles import default_verb
from likeminds.data.grades import read_answers
from likeminds.data.identifiers import as_id_array, encode
from likeminds.data.joining import joined_columns, merge_duplicates, named_choice_sets
from likeminds.data.label_parsing import LabelReading
from likeminds.data.sources import give_back, read_csv, read_parquet, read_table
from likeminds.data.tables import FrameOptions, frame_arguments


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Annotations(CodedLabels):
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
        the median of this user's ratings (about this attribute, if there are several).
    grades : sequence or True, optional
        The grades from worst to best; True where labels are grades though there are two of them
        or fewer. Numbers are rounded to six decimals. See docs/grades.md.
    item_ids : sequence of ids, optional
        The item that each row of ``features`` describes; by default, its number.
    feature_names : sequence of str, optional
        By default those of the data frame, or x0, x1, ...
    features_per : {"auto", "item", "row"}
        What a row of ``features`` belongs to; "auto" compares the numbers of rows, and raises
        where both fit.
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
        default "find" and the attribute, "agree with" for agree, "choose" for choices,
        else "rate high".

    Attributes
    ----------
    user_ids, item_ids, attribute_ids : array
        The distinct ids. People and attributes are sorted; items are in the order of the
        table of features if it has one row per item, and include those without labels.
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
        What people do with items; None is "choose" for choices, else "rate high".

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
        features: object = None,
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
        user_features: object = None,
        verb: str | None = None,
    ) -> None:
        codes, ids = encode(users, "users")
        optional = {"items": items, "attributes": attributes, "choice_sets": choice_sets}
        coded = {name: encode(given, name) for name, given in optional.items() if given is not None}
        lengths = {name: column for name, (column, _) in coded.items()}
        about, about_ids = coded.get("attributes", (None, None))
        if not len(codes):
            raise ValueError("There are no annotations: users, items and labels are empty.")
        answers = read_answers(
            labels,
            positive=positive,
            threshold=threshold,
            grades=grades,
            within=[codes] if about is None else [codes, about],
            known=reading,
        )
        checks.same_length(users=codes, labels=answers.binary, **lengths)
        word = None if answers.reading is None else answers.reading.positive
        linked = tables.link_features(
            features,
            coded.get("items"),
            len(codes),
            item_ids=item_ids,
            names=feature_names,
            features_per=features_per,
        )
        checked = checks.as_weights(weights, len(codes))
        self._store(
            user_ids=ids,
            user_codes=codes,
            labels=answers.binary,
            reading=answers.reading,
            grades=answers.grades,
            attribute_ids=about_ids,
            attribute_codes=about,
            weights=None if checked is None else checked.copy(),
            **linked._asdict(),
            user_features=known_covariates(user_features, ids),
            verb=read_verb(verb) or (default_verb(word) if about is None else None),
            **named_choice_sets(codes, *coded.get("choice_sets", (None, None))),
        )
        merged = merge_duplicates(self, duplicates)
        if merged is not None:
            rows, total = merged
            self._store(**self.take(rows).__getstate__() | {"weights": total})

    @classmethod
    def from_frame(cls, frame: object, **options: Unpack[FrameOptions]) -> Self:
        """Read a data frame with one row per annotation.

        Parameters
        ----------
        frame : data frame (pandas, polars, pyarrow, ...)
            Files are read by `from_csv`, `from_parquet` and `from_source`.
        user, item, label, attribute, weight, choice_set : str, optional
            The names of the columns. Without them, columns with usual names are taken:
            see `likeminds.data.column_roles.COLUMN_NAMES`. Only user and label must exist.
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
        return cls._of_frame(*frame_arguments(frame, options))

    @classmethod
    def from_csv(cls, path: str | PathLike[str], **options: Unpack[FrameOptions]) -> Self:
        """Read a CSV file with a header; the options are those of `from_frame`.

        Ids are texts, whatever they look like: 007 and 7 are two users.
        """
        texts = tables.texts_among(options)
        return cls._of_frame(*frame_arguments(read_csv(path, texts), options))

    @classmethod
    def from_parquet(cls, path: str | PathLike[str], **options: Unpack[FrameOptions]) -> Self:
        """Read a Parquet file; the options are those of `from_frame`."""
        return cls._of_frame(*frame_arguments(read_parquet(path), options))

    @classmethod
    def from_source(cls, source: str | PathLike[str], **options: Unpack[FrameOptions]) -> Self:
        """Read a file of any kind, or a query on a database, by its name as on the command line.

        The options are those of `from_frame`; `likeminds.data.sources` lists what is read.
        """
        texts = tables.texts_among(options)
        return cls._of_frame(*frame_arguments(read_table(source, texts), options))

    @classmethod
    def _of_frame(cls, arguments: dict[str, Any], frames: Frames) -> Self:
        give_back()
        return cls(**arguments)._with(frames=frames)

    @classmethod
    def from_comparisons(  # noqa: PLR0917 - the columns of a table, in their usual order
        cls,
        users: Iterable[Hashable],
        winners: Iterable[Hashable],
        losers: Iterable[Hashable],
        ties: ArrayLike | None = None,
        strength: ArrayLike | None = None,
        features: object = None,
        *,
        item_ids: Iterable[Hashable] | None = None,
        feature_names: Sequence[str] | None = None,
        user_features: object = None,
    ) -> Self:
        """Make annotations of pairs: who preferred which item to which.

        Each pair is a choice among two, the Bradley-Terry model: the winner is preferred with
        probability 1 / (1 + exp(score of the loser - score of the winner)). Features are kept
        once per item, however many pairs it is in. Nothing is wrong with cycles.

        Parameters
        ----------
        users, winners, losers : sequences of ids
            Who compared, what they preferred, and to what.
        ties : sequence of bool, optional
            Pairs of which neither was preferred: half a win of each.
        strength : sequence of float, optional
            How much each pair counts; not negative.
        features : mapping by item, array, data frame, path or Annotations, optional
            What items are like, one row per item (of annotations, their items). Two matrices
            ``(winners, losers)`` have a row for each pair. Without features, items are known
            by their ids: `HierarchicalRanker` learns their effects and factors.
        item_ids, feature_names : sequences, optional
            The item of each row of an array of features (by default, its number), and names.
        user_features : optional
            Covariates of people: see `Annotations`.

        Examples
        --------
        >>> Annotations.from_comparisons(["ann", "ann", "bob"], ["a", "b", "a"], ["b", "c", "c"])
        Annotations: 3 choices among 2 by 2 people on 3 items, 0 features
        """
        columns = {"users": users, "winners": winners, "losers": losers, "ties": ties}
        options = ChoiceOptions(
            features=features,
            item_ids=item_ids,
            feature_names=feature_names,
            user_features=user_features,
        )
        return cls._of_sets(comparison_arguments(columns | {"strength": strength}, options))

    @classmethod
    def from_preferences(
        cls,
        frame: object,
        *,
        chosen: str | None = None,
        rejected: str | None = None,
        user: str | None = None,
        ties: str | None = None,
        strength: str | None = None,
        **options: Unpack[ChoiceOptions],
    ) -> Self:
        """Read a table of pairs, one row each: what was chosen, and what was rejected.

        Parameters
        ----------
        frame : data frame or path
            The table.
        chosen, rejected, user, ties, strength : str, optional
            The names of the columns; without them, columns with usual names are taken (chosen or
            winner, rejected or loser, user, tie, strength). Only the first three must exist.
            Columns of vectors (embeddings of two answers) are the features of the two.
        features, item_ids, user_features : optional
            As in `from_comparisons`.

        Examples
        --------
        >>> import pyarrow
        >>> pairs = {"user": ["ann", "bob"], "chosen": [[0.1, 2.0], [1.0, 0.0]]}
        >>> pairs |= {"rejected": [[0.5, 1.0], [0.0, 3.0]]}
        >>> Annotations.from_preferences(pyarrow.table(pairs))
        Annotations: 2 choices among 2 by 2 people, 2 features
        """
        names = {"user": user, "winner": chosen, "loser": rejected}
        names |= {"tie": ties, "strength": strength}
        return cls._of_sets(preference_arguments(frame, names, options))

    @classmethod
    def from_rankings(
        cls,
        users: Iterable[Hashable],
        rankings: Iterable[Iterable[Any]],
        *,
        shown: Iterable[Iterable[Hashable]] | None = None,
        strength: ArrayLike | None = None,
        **options: Unpack[ChoiceOptions],
    ) -> Self:
        """Make annotations of rankings, the best item first: the Plackett-Luce model.

        A ranking is a chain of choices: the best of all, the best of the others, and so on.

        Parameters
        ----------
        users : sequence of ids
            Who ranked.
        rankings : sequence of sequences of ids
            The items of each ranking, the best first. A list or set in place of an item is
            several that share a place: each is preferred to all that come later, and they are not
            compared with each other.
        shown : sequence of sequences of ids, optional
            What each person could have ranked; what they did not rank comes last.
        strength, features, item_ids, feature_names, user_features : optional
            As in `from_comparisons`; ``strength`` is one number per ranking.

        Examples
        --------
        >>> Annotations.from_rankings(["ann", "bob"], [["tuna", "eel", "egg"], ["egg", "tuna"]])
        Annotations: 3 choices among 2 to 3 by 2 people on 3 items, 0 features
        """
        who = as_id_array(users, "users")
        sets = ranking_sets(len(who), rankings, shown)
        return cls._of_sets(sets.arguments(who, strength, options))

    @classmethod
    def from_choices(
        cls,
        users: Iterable[Hashable],
        shown: Iterable[Iterable[Hashable]],
        chosen: Iterable[Hashable],
        *,
        availability: Iterable[Iterable[bool]] | None = None,
        none: Hashable | None = None,
        strength: ArrayLike | None = None,
        **options: Unpack[ChoiceOptions],
    ) -> Self:
        """Make annotations of choices of one, or none, of several items: conditional logit.

        Parameters
        ----------
        users, shown, chosen : sequences
            Who chose, among which items, and what.
        availability : sequence of sequences of bool, optional
            For each choice, which of the items shown were available; the others are left out.
        none : id, optional
            What it is called to choose none of those shown (missing values of ``chosen`` mean
            it, too). It is one more item of every set. With features, those of it are zero, and
            a column of its own says how much people want to have none.
        strength, features, item_ids, feature_names, user_features : optional
            As in `from_comparisons`; ``strength`` is one number per choice.

        Examples
        --------
        >>> shown = [["tea", "milk"], ["tea", "coffee", "milk"]]
        >>> Annotations.from_choices(["ann", "bob"], shown, ["tea", None], none="nothing")
        Annotations: 2 choices among 3 to 4 by 2 people on 4 items, 0 features
        """
        who = as_id_array(users, "users")
        if availability is not None:
            shown = only_available(shown, availability)
        sets = choice_sets(shown, chosen, none=none, n_users=len(who))
        return cls._of_sets(sets.arguments(who, strength, options, none))

    @classmethod
    def from_best_worst(
        cls,
        users: Iterable[Hashable],
        shown: Iterable[Iterable[Hashable]],
        best: Iterable[Hashable],
        worst: Iterable[Hashable],
        *,
        strength: ArrayLike | None = None,
        **options: Unpack[ChoiceOptions],
    ) -> Self:
        """Make annotations of best-worst choices (MaxDiff): of several, the best and the worst.

        The best is a choice among all that were shown, in proportion to exp(score). The worst is
        a choice among the others, in proportion to exp(-score).

        Parameters
        ----------
        users, shown, best, worst : sequences
            Who chose, among which items, and what.
        strength, features, item_ids, feature_names, user_features : optional
            As in `from_comparisons`; ``strength`` is one number per person asked.

        Examples
        --------
        >>> Annotations.from_best_worst(["ann"], [["tea", "milk", "coffee"]], ["tea"], ["milk"])
        Annotations: 2 choices among 2 to 3 by 1 person on 3 items, 0 features
        """
        who = as_id_array(users, "users")
        sets = choice_sets(shown, best, worst=worst, n_users=len(who))
        return cls._of_sets(sets.arguments(who, strength, options))

    @classmethod
    def _of_sets(cls, arguments: dict[str, Any]) -> Self:
        """Make annotations of choice sets without names, which meet none that come later."""
        worst = arguments.pop("picks_worst", None)
        return cls(**arguments)._with(choice_set_ids=None, picks_worst=worst)

    def choices(self, most: int = 8, random_state: int = 0) -> Self:
        """Return grades as choices: each item is chosen among those the person graded lower.

        They can be joined with comparisons, so that people who grade and people who compare are
        learned from in one fit. Items of the same grade are not compared.

        Parameters
        ----------
        most : int, default=8
            So many lower items at most are in a set, drawn at random.
        random_state : int, default=0
            Makes the draw reproducible.

        Examples
        --------
        >>> features = {"a": [1.0], "b": [3.0], "c": [7.0]}
        >>> graded = Annotations(["ann"] * 3, list("abc"), [5, 3, 1], features)
        >>> pairs = Annotations.from_comparisons(["bob"], ["b"], ["a"], features=features)
        >>> graded.choices().concat(pairs).items.tolist()
        ['b', 'c', 'a', 'c', 'b', 'b', 'a']
        """
        rows, sizes = graded_sets(self, most, np.random.default_rng(random_state))
        sets = np.repeat(np.arange(len(sizes)), sizes)
        first = np.diff(sets, prepend=-1) > 0
        plain: dict[str, Any] = {"grades": None, "reading": None, "choice_set_ids": None}
        if self.weights is not None:  # a choice counts as often as what was chosen
            plain["weights"] = self.weights[rows[first]][sets]
        return self.take(rows)._with(**plain, labels=first, choice_set_codes=sets)

    def differences(self) -> Self:
        """Return rows of differences: the features of what was chosen, less those of each other.

        With ``loss="least_squares_raw"``, rankers made of statistics learn from these as they do
        from labels: the loss is (1 - (difference of scores))^2 of each pair. Their weights score
        items.

        Examples
        --------
        >>> pairs = Annotations.from_comparisons(["ann"] * 2, ["a", "b"], ["b", "c"], features={
        ...     "a": [1.0], "b": [3.0], "c": [7.0]})
        >>> pairs.differences().X.ravel(), pairs.differences().labels
        (array([-2.,  4.]), array([ True, False]))
        """
        return self._of_sets(difference_arguments(self))

    def concat(self, other: Self) -> Self:
        """Append the rows of other annotations about the same features.

        With features per item, the items of both are united, and an item that has other
        features there is refused; otherwise each row keeps the features it has. Ids there are
        written as here (7 as "7"), rows of a user's choice set there join that of the same id here
        (comparisons and choices have no ids, and join none), and missing weights are ones. Labels
        that were read in another way are refused, and so are other covariates of the same user.
        """
        return self._with(**joined_columns(self, other))
