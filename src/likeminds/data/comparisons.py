"""Annotations made of comparisons, rankings and choices."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.array_types import FloatArray, IdArray
from likeminds._util.checks import as_matrix, listing
from likeminds.data.choice_sets import (
    ChoiceSets,
    ItemTable,
    choice_sets,
    difference_columns,
    lower_graded,
    only_available,
    pair_columns,
    ranking_sets,
    refuse_equal,
)
from likeminds.data.column_roles import ID_ROLES, as_frame, find_columns, id_texts, read_values
from likeminds.data.identifiers import as_id_array, join_ids
from likeminds.data.integer_coding import CodedLabels
from likeminds.data.sources import read_table

# What names the column of a role in a table of preferences.
_ARGUMENTS = {"winner": "chosen", "loser": "rejected", "tie": "ties"}


@dataclass(frozen=True, init=False, eq=False, repr=False)
class ComparedLabels(CodedLabels):
    """Ways to make annotations of what people preferred: groups of rows, one chosen in each."""

    @classmethod
    def from_comparisons(  # noqa: PLR0917 - the columns of a table, in their usual order
        cls,
        users: Iterable[Hashable],
        winners: Iterable[Hashable],
        losers: Iterable[Hashable],
        ties: ArrayLike | None = None,
        strength: ArrayLike | None = None,
        features: Any = None,
        *,
        item_ids: Iterable[Hashable] | None = None,
        feature_names: Sequence[str] | None = None,
        user_features: Any = None,
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
        >>> from likeminds import Annotations
        >>> Annotations.from_comparisons(["ann", "ann", "bob"], ["a", "b", "a"], ["b", "c", "c"])
        Annotations: 3 choices among 2 by 2 people on 3 items, 0 features
        """
        won, lost = as_id_array(winners, "winners"), as_id_array(losers, "losers")
        columns, sides = pair_columns(users, won, lost, ties, strength)
        items = join_ids(won, lost)[sides]
        if _are_two(features):
            rows = _stack_two(features, len(won))[sides]
            columns |= {"features": rows, "features_per": "row", "feature_names": feature_names}
            return cls._of_sets(columns | {"items": items, "user_features": user_features})
        table = ItemTable.read(features, items, item_ids, feature_names)
        return cls._of_sets(columns | {"items": items, "user_features": user_features}, table)

    @classmethod
    def from_preferences(
        cls,
        frame: Any,
        *,
        chosen: str | None = None,
        rejected: str | None = None,
        user: str | None = None,
        ties: str | None = None,
        strength: str | None = None,
        features: Any = None,
        item_ids: Iterable[Hashable] | None = None,
        user_features: Any = None,
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
        >>> from likeminds import Annotations
        >>> pairs = {"user": ["ann", "bob"], "chosen": [[0.1, 2.0], [1.0, 0.0]]}
        >>> pairs |= {"rejected": [[0.5, 1.0], [0.0, 3.0]]}
        >>> Annotations.from_preferences(pyarrow.table(pairs))
        Annotations: 2 choices among 2 by 2 people, 2 features
        """
        names = {"user": user, "winner": chosen, "loser": rejected}
        names |= {"tie": ties, "strength": strength}
        if isinstance(frame, str | PathLike):
            frame = read_table(frame, id_texts(names))
        table = as_frame(frame)
        found = find_columns(table, names, (), _ARGUMENTS)
        kept = {role: name for role, name in found.items() if name is not None}
        vectors = {role: _vectors(table.get_column(kept[role])) for role in ("winner", "loser")}
        won, lost = vectors["winner"], vectors["loser"]
        values = {
            role: read_values(table, name, as_ids=role in ID_ROLES)
            for role, name in kept.items()
            if vectors.get(role) is None
        }
        if won is None or lost is None:
            return cls.from_comparisons(
                users=values["user"],
                winners=values["winner"],
                losers=values["loser"],
                ties=values.get("tie"),
                strength=values.get("strength"),
                features=features,
                item_ids=item_ids,
                user_features=user_features,
            )
        if features is not None:
            raise ValueError(
                f"The columns {kept['winner']} and {kept['loser']} are features already: leave "
                "out features=."
            )
        return cls._of_vectors(won, lost, values, user_features)

    @classmethod
    def _of_vectors(
        cls, won: FloatArray, lost: FloatArray, values: Mapping[str, IdArray], user_features: Any
    ) -> Self:
        """Make annotations of pairs of items that have no ids."""
        stacked = _stack_two((won, lost), len(won))
        refuse_equal(np.flatnonzero((won == lost).all(axis=1)))
        columns, sides = pair_columns(
            values["user"], None, None, values.get("tie"), values.get("strength")
        )
        columns |= {"items": None, "features": stacked[sides], "features_per": "row"}
        return cls._of_sets(columns | {"user_features": user_features})

    @classmethod
    def from_rankings(
        cls,
        users: Iterable[Hashable],
        rankings: Iterable[Iterable[Any]],
        *,
        shown: Iterable[Iterable[Hashable]] | None = None,
        strength: ArrayLike | None = None,
        features: Any = None,
        item_ids: Iterable[Hashable] | None = None,
        feature_names: Sequence[str] | None = None,
        user_features: Any = None,
    ) -> Self:
        """Make annotations of rankings, the best item first: the Plackett-Luce model.

        A ranking is a chain of choices: the best of all, the best of the others, and so on.

        Parameters
        ----------
        users : sequence of ids
            Who ranked.
        rankings : sequence of sequences of ids
            The items of each ranking, the best first. A list or set in place of an item is
            several that share a place: each is preferred to all that come later, and nothing is
            said about them among each other.
        shown : sequence of sequences of ids, optional
            What each person could have ranked; what they did not rank comes last.
        strength, features, item_ids, feature_names, user_features : optional
            As in `from_comparisons`; ``strength`` is one number per ranking.

        Examples
        --------
        >>> from likeminds import Annotations
        >>> Annotations.from_rankings(["ann", "bob"], [["tuna", "eel", "egg"], ["egg", "tuna"]])
        Annotations: 3 choices among 2 to 3 by 2 people on 3 items, 0 features
        """
        who = as_id_array(users, "users")
        sets = ranking_sets(len(who), rankings, shown)
        table = (features, item_ids, feature_names)
        return cls._of_choices(sets, who, strength, table, user_features)

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
        features: Any = None,
        item_ids: Iterable[Hashable] | None = None,
        feature_names: Sequence[str] | None = None,
        user_features: Any = None,
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
        >>> from likeminds import Annotations
        >>> shown = [["tea", "milk"], ["tea", "coffee", "milk"]]
        >>> Annotations.from_choices(["ann", "bob"], shown, ["tea", None], none="nothing")
        Annotations: 2 choices among 3 to 4 by 2 people on 4 items, 0 features
        """
        who = as_id_array(users, "users")
        if availability is not None:
            shown = only_available(shown, availability)
        sets = choice_sets(shown, chosen, none=none, n_users=len(who))
        table = (features, item_ids, feature_names)
        return cls._of_choices(sets, who, strength, table, user_features, none)

    @classmethod
    def from_best_worst(
        cls,
        users: Iterable[Hashable],
        shown: Iterable[Iterable[Hashable]],
        best: Iterable[Hashable],
        worst: Iterable[Hashable],
        *,
        strength: ArrayLike | None = None,
        features: Any = None,
        item_ids: Iterable[Hashable] | None = None,
        feature_names: Sequence[str] | None = None,
        user_features: Any = None,
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
        >>> from likeminds import Annotations
        >>> Annotations.from_best_worst(["ann"], [["tea", "milk", "coffee"]], ["tea"], ["milk"])
        Annotations: 2 choices among 2 to 3 by 1 person on 3 items, 0 features
        """
        who = as_id_array(users, "users")
        sets = choice_sets(shown, best, worst=worst, n_users=len(who))
        table = (features, item_ids, feature_names)
        return cls._of_choices(sets, who, strength, table, user_features)

    @classmethod
    def _of_choices(  # noqa: PLR0917 - what all ways in have
        cls,
        sets: ChoiceSets,
        users: IdArray,
        strength: ArrayLike | None,
        described: tuple[Any, Any, Any],
        user_features: Any,
        none: Hashable | None = None,
    ) -> Self:
        if not sets.sizes:
            raise ValueError("There are no choices: users, and what they were shown, are empty.")
        columns = sets.columns(users, strength)
        items = columns["items"]
        features, item_ids, names = described
        table = ItemTable.read(features, items, item_ids, names)
        table = table if none is None else table.with_none(none)
        return cls._of_sets(columns | {"user_features": user_features}, table)

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
        >>> from likeminds import Annotations
        >>> features = {"a": [1.0], "b": [3.0], "c": [7.0]}
        >>> graded = Annotations(["ann"] * 3, list("abc"), [5, 3, 1], features)
        >>> pairs = Annotations.from_comparisons(["bob"], ["b"], ["a"], features=features)
        >>> graded.choices().concat(pairs).items.tolist()
        ['b', 'c', 'a', 'c', 'b', 'b', 'a']
        """
        if self.grades is None:
            raise ValueError("These labels are no grades, of which choices could be made.")
        rng = np.random.default_rng(random_state)
        rows, sizes = lower_graded(self.grades, *self.user_index(), most=most, rng=rng)
        first = np.cumsum(sizes) - sizes
        chosen = np.zeros(len(rows), dtype=np.bool_)
        chosen[first] = True
        groups = np.repeat(np.arange(len(sizes)), sizes)
        plain: dict[str, Any] = {"grades": None, "reading": None, "choice_set_ids": None}
        if self.weights is not None:  # a choice counts as often as what was chosen
            plain["weights"] = self.weights[rows[first]][groups]
        return self.take(rows)._with(**plain, labels=chosen, choice_set_codes=groups)

    def differences(self) -> Self:
        """Return rows of differences: the features of what was chosen, less those of each other.

        With ``loss="least_squares_raw"``, rankers made of statistics learn from these as they do
        from labels: the loss is (1 - (difference of scores))^2 of each pair. Their weights score
        items.

        Examples
        --------
        >>> from likeminds import Annotations
        >>> said = Annotations.from_comparisons(["ann"] * 2, ["a", "b"], ["b", "c"], features={
        ...     "a": [1.0], "b": [3.0], "c": [7.0]})
        >>> said.differences().X.ravel(), said.differences().labels
        (array([-2.,  4.]), array([ True, False]))
        """
        make: Any = type(self)
        found: Self = make(**difference_columns(self), user_features=self.user_features)
        return found.without_choice_set_names()

    def without_choice_set_names(self) -> Self:
        """Return the same rows, whose groups stay apart from all that are added later."""
        return self._with(choice_set_ids=None)

    @classmethod
    def _of_sets(cls, columns: dict[str, Any], table: ItemTable | None = None) -> Self:
        """Make annotations of columns; sets have no names, and meet none that come later."""
        worst = columns.pop("picks_worst", None)
        if table is not None:
            columns |= {"features": table.features, "item_ids": table.ids}
            columns |= {"feature_names": table.names, "features_per": "item"}
        make: Any = cls
        said: Self = make(**columns)
        return said._with(choice_set_ids=None, picks_worst=worst)


def _are_two(features: Any) -> bool:
    return isinstance(features, tuple) and len(features) == 2 and np.ndim(features[0]) == 2


def _stack_two(features: tuple[Any, Any], n_pairs: int) -> FloatArray:
    """Return the features of all winners, and then those of all losers."""
    first, second = (as_matrix(part, "features") for part in features)
    if first.shape != second.shape or len(first) != n_pairs:
        raise ValueError(
            f"features of winners and losers have the shapes {first.shape} and {second.shape}, "
            f"but there are {n_pairs} pairs. Give one row for each pair in both."
        )
    return np.concatenate([first, second])


def _vectors(column: Any) -> FloatArray | None:
    """Return a column of vectors as a matrix; None where it is one of ids."""
    values = column.to_list()
    if not values or not isinstance(values[0], list | tuple | np.ndarray):
        return None
    lengths = {len(value) if hasattr(value, "__len__") else 0 for value in values}
    if len(lengths) > 1:
        raise ValueError(
            f"The vectors of column {column.name} have different lengths: "
            f"{listing(sorted(lengths))}. Give all the same number of features."
        )
    return as_matrix(np.array(values, dtype=np.float64), str(column.name))
