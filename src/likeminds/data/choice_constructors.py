"""Constructors of annotations from comparisons, rankings and choices, and back."""

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likeminds._util.array_types import Index
from likeminds.data.choice_sets import (
    ChoiceOptions,
    TieModel,
    choice_sets,
    comparison_arguments,
    difference_arguments,
    only_available,
    preference_arguments,
    ranking_sets,
    set_arguments,
)
from likeminds.data.coded_labels import CodedLabels
from likeminds.data.identifiers import as_id_array


class ChoiceConstructors(CodedLabels):
    """Choice sets as annotations: the part of `likeminds.Annotations` that makes them."""

    if TYPE_CHECKING:  # that of Annotations

        def __init__(self, **arguments: object) -> None: ...

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
        tie_model: TieModel = "davidson",
        item_ids: Iterable[Hashable] | None = None,
        feature_names: Sequence[str] | None = None,
        user_features: object = None,
        shown_first: Iterable[Hashable] | None = None,
    ) -> Self:
        """Make annotations of comparisons: which of two items a user preferred.

        Each pair is a choice between two items, as in the Bradley-Terry model: the winner is
        preferred with probability 1 / (1 + exp(score of the loser - score of the winner)).
        Features are stored once per item. Cycles are allowed.

        Parameters
        ----------
        users, winners, losers : sequences of ids
            The user, the preferred item and the other item of each pair.
        ties : sequence of bool, optional
            Pairs without a preference.
        tie_model : {"davidson", "half"}, default="davidson"
            "davidson": a tie has a probability of its own, in proportion to nu times the geometric
            mean of exp(score) of both items; `HierarchicalRanker` learns nu (Davidson 1970), if
            all choice sets are pairs. "half": a tie is half a win of each.
        strength : sequence of float, optional
            Non-negative weights of the pairs.
        features : mapping by item, array, data frame, path or Annotations, optional
            The features of the items, one row per item; annotations provide those of their items.
            Two matrices ``(winners, losers)`` have a row for each pair. Without features,
            `HierarchicalRanker` learns effects and factors of the items.
        item_ids, feature_names : sequences, optional
            The item of each row of an array of features (by default, its number), and names.
        user_features : optional
            Covariates of users: see `Annotations`.
        shown_first : sequence of ids, optional
            The item of each pair that was shown first, or on the left. This adds the feature
            ``shown_first``, whose weight is the user's position effect. Rankings of items leave
            it out.

        Examples
        --------
        >>> from likeminds import Annotations
        >>> Annotations.from_comparisons(["ann", "ann", "bob"], ["a", "b", "a"], ["b", "c", "c"])
        Annotations: 3 choices among 2 by 2 people on 3 items, 0 features
        """
        columns = {"users": users, "winners": winners, "losers": losers, "ties": ties}
        columns["tie_model"] = tie_model
        options = ChoiceOptions(
            features=features,
            item_ids=item_ids,
            feature_names=feature_names,
            user_features=user_features,
            shown_first=shown_first,
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
        tie_model: TieModel = "davidson",
        **options: Unpack[ChoiceOptions],
    ) -> Self:
        """Read a table of comparisons with one row per pair: a chosen and a rejected item.

        Parameters
        ----------
        frame : data frame or path
            The table.
        chosen, rejected, user, ties, strength : str, optional
            The names of the columns; by default, columns with usual names (chosen or winner,
            rejected or loser, user, tie, strength). Only the first three must exist. Columns of
            vectors (embeddings of two answers) are the features of both items.
        tie_model, features, item_ids, user_features : optional
            As in `from_comparisons`.

        Examples
        --------
        >>> from likeminds import Annotations
        >>> import pyarrow
        >>> pairs = {"user": ["ann", "bob"], "chosen": [[0.1, 2.0], [1.0, 0.0]]}
        >>> pairs |= {"rejected": [[0.5, 1.0], [0.0, 3.0]]}
        >>> Annotations.from_preferences(pyarrow.table(pairs))
        Annotations: 2 choices among 2 by 2 people, 2 features
        """
        names = {"user": user, "winner": chosen, "loser": rejected}
        names |= {"tie": ties, "strength": strength}
        return cls._of_sets(preference_arguments(frame, names, tie_model, options))

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
            The user of each ranking.
        rankings : sequence of sequences of ids
            The items of each ranking, the best first. A list or set in place of an item holds tied
            items. Each of them is preferred to all later items, but not to the others in the tie.
        shown : sequence of sequences of ids, optional
            The items of each ranking that were shown; unranked ones come last.
        strength, features, item_ids, feature_names, user_features, shown_first : optional
            As in `from_comparisons`; ``strength`` is one number per ranking.
        shown_last : sequence of ids, optional
            The item of each ranking that was shown last, like ``shown_first``.

        Examples
        --------
        >>> from likeminds import Annotations
        >>> Annotations.from_rankings(["ann", "bob"], [["tuna", "eel", "egg"], ["egg", "tuna"]])
        Annotations: 3 choices among 2 to 3 by 2 people on 3 items, 0 features
        """
        who = as_id_array(users, "users")
        sets = ranking_sets(len(who), rankings, shown)
        return cls._of_sets(set_arguments(sets, who, strength, options))

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
            The user, the items shown and the chosen item of each choice.
        availability : sequence of sequences of bool, optional
            For each choice, which of the items shown were available; the others are left out.
        none : id, optional
            The id of the outside option, which is added to every set as an item. Missing values of
            ``chosen`` mean that it was chosen. Its features are zero, except a column of its own.
        strength, features, item_ids, feature_names, user_features : optional
            As in `from_comparisons`; ``strength`` is one number per choice.
        shown_first, shown_last : sequences of ids, optional
            As in `from_rankings`.

        Examples
        --------
        >>> from likeminds import Annotations
        >>> shown = [["tea", "milk"], ["tea", "coffee", "milk"]]
        >>> Annotations.from_choices(["ann", "bob"], shown, ["tea", None], none="nothing")
        Annotations: 2 choices among 3 to 4 by 2 people on 4 items, 0 features
        """
        who = as_id_array(users, "users")
        if availability is not None:
            shown = only_available(shown, availability)
        sets = choice_sets(shown, chosen, none=none, n_users=len(who))
        return cls._of_sets(set_arguments(sets, who, strength, options, none))

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
        """Make annotations of best-worst choices (MaxDiff): the best and the worst of several.

        The best is a choice among all that were shown, in proportion to exp(score). The worst is
        a choice among the others, in proportion to exp(-score).

        Parameters
        ----------
        users, shown, best, worst : sequences
            The user, the items shown, and the best and the worst of them. A missing worst item
            means that the user was asked for the best one only.
        strength, features, item_ids, feature_names, user_features : optional
            As in `from_comparisons`; ``strength`` is one number per set.
        shown_first, shown_last : sequences of ids, optional
            As in `from_rankings`.

        Examples
        --------
        >>> from likeminds import Annotations
        >>> Annotations.from_best_worst(["ann"], [["tea", "milk", "coffee"]], ["tea"], ["milk"])
        Annotations: 2 choices among 2 to 3 by 1 person on 3 items, 0 features
        """
        who = as_id_array(users, "users")
        sets = choice_sets(shown, best, worst=worst, n_users=len(who))
        return cls._of_sets(set_arguments(sets, who, strength, options))

    @classmethod
    def _of_sets(cls, arguments: dict[str, Any]) -> Self:
        """Make annotations of choice sets without ids, which are never joined with later ones."""
        marks = {name: arguments.pop(name, None) for name in ("picks_worst", "tied")}
        positions = arguments.pop("positions", {})
        made = cls(**arguments)._with(choice_set_ids=None, **marks)
        if not positions:
            return made
        return made._with(
            features=np.column_stack([made.X, *positions.values()]).astype(made.X.dtype),
            feature_names=(*made.feature_names, *positions),
            feature_rows=np.arange(len(made)),
            features_per="row",
        )

    def choices(self, most: int = 8, random_state: int = 0) -> Self:
        """Return grades as choices: each item is chosen among those the user graded lower.

        They can be joined with comparisons, so one fit learns from grades and comparisons. Items of
        the same grade are not compared.

        Parameters
        ----------
        most : int, default=8
            The largest number of lower items in a set, drawn at random.
        random_state : int, default=0
            Makes the draw reproducible.

        Examples
        --------
        >>> from likeminds import Annotations
        >>> features = {"a": [1.0], "b": [3.0], "c": [7.0]}
        >>> graded = Annotations(["ann"] * 3, list("abc"), [5, 3, 1], features)
        >>> pairs = Annotations.from_comparisons(["bob"], ["b"], ["a"], features=features)
        >>> graded.choices().concat(pairs).items.tolist()
        ['b', 'c', 'a', 'c', 'b', 'b', 'a']
        """
        rows, sizes = _graded_sets(self, most, np.random.default_rng(random_state))
        sets = np.repeat(np.arange(len(sizes)), sizes)
        first = np.diff(sets, prepend=-1) > 0
        plain: dict[str, Any] = {"grades": None, "reading": None, "choice_set_ids": None}
        if self.weights is not None:  # a choice has the weight of the chosen item's label
            plain["weights"] = self.weights[rows[first]][sets]
        return self.take(rows)._with(**plain, labels=first, choice_set_codes=sets)

    def differences(self) -> Self:
        """Return rows of differences: the features of the chosen item, less those of each other.

        Fit `ThreeLevelRanker` or `DecomposedRanker` with ``loss="least_squares_raw"`` to these
        rows: the loss of a pair is (1 - (difference of scores))^2. The learned weights score items.

        Examples
        --------
        >>> from likeminds import Annotations
        >>> pairs = Annotations.from_comparisons(["ann"] * 2, ["a", "b"], ["b", "c"], features={
        ...     "a": [1.0], "b": [3.0], "c": [7.0]})
        >>> pairs.differences().X.ravel(), pairs.differences().labels
        (array([-2.,  4.]), array([ True, False]))
        """
        return self._of_sets(difference_arguments(self))


def class_sets(annotations: CodedLabels) -> dict[str, Any]:
    """Return the columns of choice sets with a row per class, in place of a row per label.

    The class of a row is its attribute. The positions of the classes are the grades.
    """
    reading, codes = annotations.reading, annotations.grades
    assert reading is not None
    assert reading.classes is not None
    assert codes is not None
    n_classes = len(reading.classes)
    rows = np.repeat(np.arange(len(annotations)), n_classes)
    classes = np.tile(np.arange(n_classes), len(annotations))
    columns: dict[str, Any] = {
        "labels": classes == codes[rows],
        "grades": None,
        "attribute_ids": as_id_array(reading.classes, "classes"),
        "attribute_codes": classes,
        "choice_set_codes": rows,
    }
    return annotations.take(rows).__getstate__() | columns


def _graded_sets(graded: CodedLabels, most: int, rng: Generator) -> tuple[Index, Index]:
    """Return the rows of sets, each an item and some that the user graded lower; and sizes."""
    if graded.grades is None:
        raise ValueError("These labels are not grades, so they cannot become choices.")
    if most < 1:
        raise ValueError(f"most must be at least 1, but is {most}.")
    rows: list[Index] = []
    order, offsets = graded.user_index()
    for user_rows in np.split(order, offsets[1:-1]):
        ordered = user_rows[np.argsort(graded.grades[user_rows], kind="stable")]
        grades = graded.grades[ordered]
        n_lower = np.searchsorted(grades, grades, side="left")
        for place in np.flatnonzero(n_lower).tolist():
            n = int(n_lower[place])
            lower = np.arange(n) if n <= most else rng.choice(n, most, replace=False)
            rows.append(np.append(ordered[place], ordered[np.sort(lower)]))
    if not rows:
        raise ValueError("No user gave two different grades. Choices need two grades of a user.")
    return np.concatenate(rows), np.array([len(one) for one in rows])
