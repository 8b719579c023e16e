"""Annotations: labels of items by users, with their features, and other sources of labels."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Generic, Literal, Self, TypeVar, Unpack

from numpy.typing import ArrayLike

from likeminds._util import checks
from likeminds._util.result_tables import Frames
from likeminds._util.text_format import read_verb
from likeminds.data.choice_constructors import ChoiceConstructors, class_sets
from likeminds.data.coded_labels import read_covariates
from likeminds.data.column_roles import MARKS, default_verb
from likeminds.data.grades import read_answers
from likeminds.data.identifiers import encode
from likeminds.data.joining import (
    joined_columns,
    link_features,
    merge_duplicates,
    named_choice_sets,
)
from likeminds.data.label_parsing import LabelReading
from likeminds.data.sources import give_back, read_csv, read_parquet, read_table
from likeminds.data.tables import FrameOptions, LabelKeywords, frame_arguments, texts_among
from likeminds.data.wide import matrix_arguments

R_contra = TypeVar("R_contra", contravariant=True)
P_co = TypeVar("P_co", covariant=True)


class LabelSource(ABC, Generic[R_contra, P_co]):
    """Labels that rankers accept in place of `Annotations`, to be fitted to and scored on.

    The base of `AnnotationFolder`, `cluster.Shards` and `cluster.spark.SparkRows`. Its parameters
    are the types of the rankers and of their posteriors.
    """

    @abstractmethod
    def fit_ranker(self, ranker: R_contra) -> None:
        """Fit a ranker with checked parameters: ``ranker.fit(source)``."""

    @abstractmethod
    def score(self, ranker: R_contra) -> float:
        """Return the mean over users of the AUC of their rows: ``ranker.score(source)``."""

    @abstractmethod
    def newcomers(self, ranker: R_contra) -> P_co:
        """Return the posteriors of these users as new users: ``ranker.newcomer(source)``."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Annotations(ChoiceConstructors):
    """Labels that users gave to items, and the features of the items.

    A row is one label of one item by one user. Annotations are immutable, and all slices share one
    table of features.

    Parameters
    ----------
    users, items : sequence of ids
        The user and the item of each row; any hashable is an id. ``items=None`` makes every row
        an item of its own.
    labels : sequence
        True/False, 0/1, -1/+1, yes/no, agree/disagree and the like. With ``positive``, any two
        values; with ``threshold``, ratings. More than two numbers, an ordered categorical, or any
        values with ``grades`` are grades.
    features : array, data frame, or mapping from item id to vector, optional
        Numbers, one row per item or one per annotation. Single precision is kept, and an
        array is not copied.
    attributes : sequence of ids, optional
        The attribute that each row is about.
    weights : sequence of float, optional
        Non-negative weights of the rows.
    choice_sets : sequence of ids, optional
        Rows of one user with the same id were shown together and are never split. The same id used
        by two users makes two choice sets.
    positive : hashable, optional
        The positive one of two labels, in upper or lower case; by default yes, true, agree.
    threshold : float or "median", optional
        Ratings *strictly* above it are positive; "median" is the median of the user's ratings
        (about this attribute, if there are several).
    grades : sequence or True, optional
        The grades from worst to best; with True, one or two values are grades, too. Numbers are
        rounded to six decimals. See the page on grades.
    nominal : sequence or True, optional
        The classes of labels without an order, such as toxic, spam and fine; True takes the classes
        that occur. Each label becomes a choice set with a row per class, and the class becomes the
        attribute of the row: see `NominalRanker`.
    item_ids : sequence of ids, optional
        The item that each row of ``features`` describes; by default, its number.
    feature_names : sequence of str, optional
        By default those of the data frame, or x0, x1, ...
    features_per : {"auto", "item", "row"}
        Whether a row of ``features`` describes an item or an annotation; "auto" compares the
        numbers of rows, and raises ValueError if both fit.
    reading : LabelReading, optional
        The reading of earlier labels; labels that do not fit it raise ValueError.
    duplicates : {"keep", "weights", "error"}
        If a user labels an item twice (for the same attribute and choice set): keep both rows,
        merge equal labels and add their weights, or raise ValueError.
    user_features : Covariates, mapping by user, data frame or path, optional
        Covariates of users (age, country): see `Covariates`. Users may lack covariates, or labels.
    verb : str, optional
        The verb for a positive label in explanations and reports: "like", "agree with", "find
        offensive", "would give it a prize"; {} stands for the attribute. By default, "find" and the
        attribute, "agree with" for the label agree, "choose" for choices, or else "rate high".

    Attributes
    ----------
    user_ids, item_ids, attribute_ids : array
        The distinct ids. Users and attributes are sorted; items are in the order of the
        table of features if it has one row per item, and include those without labels.
    user_codes, item_codes, attribute_codes : array of int
        For each row, the position of its id among the distinct ids.
    features, feature_names, feature_rows : array, tuple of str, array of int
        The table of features, the names of its columns, and for each row its row in it.
    features_per : {"item", "row"}
        With "item", ``feature_rows`` are the ``item_codes``.
    has_items : bool
        Whether rows have item ids; otherwise each row is an item of its own.
    labels, weights, choice_set_codes : array of bool, of float or None, of int or None
        For each row, its label, its weight and the number of its choice set. Grades are true above
        the grade that divides them most evenly.
    grades : array of float or None
        For each row, its grade: the number, or the position in the order of words.
    outcomes : array
        The grades, or the labels if there are none: the target of the ranking.
    choice_set_ids : array or None
        The id of each choice set.
    reading : LabelReading or None
        How labels were read: the positive value, or the threshold; None for true and false.
    user_features : Covariates or None
        Covariates of users.
    picks_worst : array of bool, or None
        Rows of choice sets in which the worst was chosen, whose label is negative.
    tied : array of bool, or None
        Rows of tied pairs, each of which is half a win of either item: see `from_comparisons`.
    verb : str or None
        The verb for a positive label; None is "choose" for choices, else "rate high".

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
        nominal: bool | Sequence[Hashable] = False,
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
            nominal=nominal,
            within=[codes] if about is None else [codes, about],
            reading=reading,
        )
        checks.same_length(users=codes, labels=answers.binary, **lengths)
        word = None if answers.reading is None else answers.reading.positive
        linked = link_features(
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
            user_features=read_covariates(user_features, ids),
            verb=read_verb(verb) or (default_verb(word) if about is None else None),
            **named_choice_sets(codes, *coded.get("choice_sets", (None, None))),
        )
        merged = merge_duplicates(self, duplicates)
        if merged is not None:
            rows, total = merged
            self._store(**self.take(rows).__getstate__() | {"weights": total})
        if answers.reading is not None and answers.reading.classes is not None:
            if choice_sets is not None or attributes is not None:
                raise ValueError(
                    "Labels with nominal= are choices among classes, which are their attributes: "
                    "leave out choice_sets= and attributes=, and read each attribute by itself."
                )
            self._store(**class_sets(self))

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
            Columns of choice experiments: the alternative of a row (alt, alternative), and whether
            it was available (availability, av). Rows with availability 0 are left out.
        constants : bool, default=True
            Whether to add alternative-specific constants: a dummy of each alternative but the base,
            unless it is a combination of other features. The logger `likeminds` lists them.
        base : optional
            The base alternative; by default the first in sorted order.
        features : list of str, data frame or path, optional
            Columns of ``frame``; or a second table with one row per item: its id, and columns of
            numbers. By default, all columns of numbers (or true/false) in ``frame`` that have no
            other role.
        item_column : str, optional
            The column of item ids in the second table; by default, named as in ``frame``.
        positive, threshold, grades, nominal, reading, duplicates : optional
            See `Annotations`.
        user_features : data frame, path or mapping, optional
            Covariates: a table with one row per user. The column of users is named as in
            ``frame``, or has a usual name.
        verb : str, optional
            See `Annotations`. By default also "agree with" for a column vote, "choose" for choice
            or chosen.

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

        Ids are texts, even if they look like numbers: 007 and 7 are two users.
        """
        return cls._of_frame(*frame_arguments(read_csv(path, texts_among(options)), options))

    @classmethod
    def from_parquet(cls, path: str | PathLike[str], **options: Unpack[FrameOptions]) -> Self:
        """Read a Parquet file; the options are those of `from_frame`."""
        return cls._of_frame(*frame_arguments(read_parquet(path), options))

    @classmethod
    def from_source(cls, source: str | PathLike[str], **options: Unpack[FrameOptions]) -> Self:
        """Read a file of any supported kind, or a query on a database, as on the command line.

        The options are those of `from_frame`; `likeminds.data.sources` lists the kinds of files.
        """
        return cls._of_frame(*frame_arguments(read_table(source, texts_among(options)), options))

    @classmethod
    def _of_frame(cls, arguments: dict[str, Any], frames: Frames) -> Self:
        give_back()
        marks = {name: arguments.pop(name) for name in MARKS if name in arguments}
        made = cls(**arguments)
        if any(len(mark) != len(made) for mark in marks.values()):
            raise ValueError(f'Rows with {checks.listing(list(marks))} need duplicates="keep".')
        return made._with(frames=frames, **marks)

    @classmethod
    def from_matrix(
        cls,
        matrix: object,
        users: Iterable[Hashable] | str | None = None,
        items: Iterable[Hashable] | None = None,
        features: object = None,
        **options: Unpack[LabelKeywords],
    ) -> Self:
        """Read a matrix or a wide data frame of users (rows) by items (columns).

        Users without labels, and items without labels and features, are left out.

        Parameters
        ----------
        matrix : array, SciPy sparse matrix or data frame
            The label of each user and item; None and NaN mean no label. The labels of a sparse
            matrix are its stored entries, explicit zeros included.
        users, items : sequences of ids, optional
            The ids of the rows and of the columns; by default their numbers. In a data frame,
            ``users`` may name a column; by default, users are in the column with a usual name, or
            in the index of pandas. Names of the other columns are the items.
        features : mapping by item, array, data frame or path, optional
            The features of the items; an array has one row per column of ``matrix``.
        positive, threshold, grades, nominal, reading, duplicates, user_features, verb : optional
            See `Annotations`.

        Examples
        --------
        >>> nan = float("nan")
        >>> Annotations.from_matrix([[1, nan, 0], [0, 1, nan]], ["ann", "bob"], list("xyz"))
        Annotations: 4 labels (50% positive) by 2 people on 3 items, 0 features
        >>> from scipy.sparse import coo_array
        >>> stars = coo_array(([5.0, 0.0, 3.0], ([0, 0, 1], [0, 2, 2])), shape=(2, 3))
        >>> Annotations.from_matrix(stars).items
        array([0, 2, 2])
        """
        return cls(**matrix_arguments(matrix, users, items, features), **options)

    def concat(self, other: Self) -> Self:
        """Append the rows of other annotations about the same features.

        With features per item, the items of both are united; otherwise each row keeps its features.
        Ids of ``other`` get the type of the ids here (7 becomes "7"), and missing weights are ones.
        Choice sets with the same user and id are joined. Comparisons and choices have no ids, so
        they are never joined. Different features of an item, covariates of a user or readings of
        labels raise ValueError.
        """
        return self._with(**joined_columns(self, other))
