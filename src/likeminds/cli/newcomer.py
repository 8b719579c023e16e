"""``likeminds newcomer``: somebody new, from any number of labels, without a refit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likeminds.cli._command import command
from likeminds.cli._options import ComparisonOptions, ItemOptions, LabelColumns, Model, Table
from likeminds.cli._output import Output
from likeminds.cli.fit import DATA, FIT
from likeminds.cli.rank import Like, NotLike, Top, as_rows, as_wish, best, show

if TYPE_CHECKING:
    from likeminds._util.array_types import IdArray, Index
    from likeminds.cli._items import ModelItems
    from likeminds.data.annotations import Annotations
    from likeminds.data.covariates import Covariates

_NEW = "newcomer"


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    ask = "likeminds newcomer power.likeminds --features power/features.csv"
    examples = [
        DATA,
        FIT,
        "printf 'item,label\\n7ct-1y-known,1\\n9ct-5y-known,0\\n' > zoe.csv",
        f"{ask} --annotations zoe.csv --top 3 --ask 2",
    ]
    command(app, panel="Ask", examples=examples)(newcomer)


def newcomer(
    talk: Output,
    *,
    model: Model,
    items: ItemOptions,
    columns: LabelColumns,
    pairs: ComparisonOptions,
    annotations: Annotated[
        str | None,
        typer.Option(
            "--annotations",
            "-a",
            help="What newcomers said: items and labels, as a table or - for CSV on standard "
            "input; with a column of people where there are several. Without it: somebody of "
            "whom nothing is known.",
        ),
    ] = None,
    top: Top = 10,
    ask: Annotated[
        int, typer.Option(min=0, help="Propose so many items whose labels would teach most.")
    ] = 0,
    labelled: Annotated[
        bool, typer.Option("--labelled", help="Rank the items they labelled, too.")
    ] = False,
    like: Like = None,
    not_like: NotLike = None,
    out: Table = None,
) -> None:
    """Rank items for people the model does not know, by a few labels of theirs.

    Labels name items by id or by title. Nothing is fitted again, and labelled items are left out.
    Without labels, the ranking is that of the consensus; or, with
    --user-features, of what goes with their covariates in the crowd the model has learned from.
    """
    from likeminds.cli._items import read_shown
    from likeminds.cli._labels import refuse_several_from_stdin
    from likeminds.cli._models import open_model, verbs_of
    from likeminds.cli._tables import refuse_two_outputs, rich_table

    refuse_two_outputs(talk, out)
    refuse_several_from_stdin(annotations, items.features, columns.user_features, pairs.comparisons)
    known = open_model(model)
    shown = read_shown(talk, items, known, columns.item)
    said = _read_both(talk, annotations, pairs, columns, shown, known)
    new = _Newcomers.of(known, said, _covariates(columns))
    rows, asked = [], []
    for person in new.people:
        if like or not_like:
            rows += new.by_wish(person, shown, like or [], not_like or [], top)
        else:
            rows += new.rankings(person, shown, top, labelled=labelled)
        asked += new.items_to_ask(person, shown, ask) if ask else []
    more = {"ask": asked} if ask else {}
    show(talk, rows, out, more=more, verbs=verbs_of(known), unseen=not labelled)
    if asked and out != "-":
        talk.tell(rich_table("Labels of these would teach most", asked))


@dataclass(frozen=True)
class _Newcomers:
    """Posteriors of newcomers by attribute: given labels (posterior), or none (strangers)."""

    model: Any
    said: "Annotations | None"
    posterior: dict[str, Any]
    strangers: dict[str, Any]
    described: list[Any]

    @classmethod
    def of(
        cls, model: Any, said: "Annotations | None", covariates: "Covariates | None" = None
    ) -> "_Newcomers":
        """Compute the posteriors; nothing is fitted."""
        from likeminds.cli._models import parts_of, rankers_of
        from likeminds.rankers.capabilities import Capability

        rankers = rankers_of(model)
        for ranker in rankers.values():
            Capability.NEWCOMERS.require(ranker)
        if said is not None and covariates is not None:
            said = said.with_user_features(covariates)
            covariates = said.user_features
        parts = {} if said is None else parts_of(said, model)
        posterior = {
            name: rankers_of(model, name or None)[name].newcomer(part)
            for name, part in parts.items()
        }
        described = [] if covariates is None else list(covariates.ids.tolist())
        strangers = {
            name: ranker.newcomer(users=described or [_NEW], user_features=covariates)
            for name, ranker in rankers.items()
        }
        return cls(model, said, posterior, strangers, described)

    @property
    def people(self) -> list[Any]:
        """Who they are."""
        labelled = [] if self.said is None else list(self.said.user_ids.tolist())
        return list(dict.fromkeys([*labelled, *self.described])) or [_NEW]

    def by_wish(
        self,
        person: Any,
        shown: "ModelItems",
        like: Sequence[str],
        not_like: Sequence[str],
        top: int,
    ) -> list[dict[str, Any]]:
        """Return the best items by a wish for attributes, as rows of a table."""
        from likeminds.rankers.multi_attribute import AttributeNewcomers

        if not self.model.has_attributes:
            raise ValueError("This model tells no attributes apart: leave out --like, --not.")
        has_labels = any(person in one.users.tolist() for one in self.posterior.values())
        new = AttributeNewcomers(self.model, self.posterior) if has_labels else self.model
        who = person if has_labels else None
        scores = new.match(who, shown.features, like=like, not_like=not_like)
        return best(shown, scores, top, person, as_wish(like, not_like))

    def rankings(
        self, person: Any, shown: "ModelItems", top: int, *, labelled: bool
    ) -> list[dict[str, Any]]:
        """Return the best items by each attribute, as rows of a table."""
        from likeminds.rankers.item_table import ItemTableView

        rows = []
        for name in self.strangers:
            belief, who = self._belief(name, person)
            items = ItemTableView(belief.ranker, shown.ids, shown.features)
            found = belief.rank(who, items, k=top, labelled=labelled)
            rows += as_rows(shown, found, person, name)
        return rows

    def items_to_ask(self, person: Any, shown: "ModelItems", n: int) -> list[dict[str, Any]]:
        """Return the items to ask about, most telling first, as rows of a table."""
        import numpy as np

        from likeminds.rankers.newcomers import to_score

        rows = []
        for name in self.strangers:
            belief, who = self._belief(name, person)
            left = np.setdiff1d(np.arange(len(shown.ids)), self._rows_labelled(name, person))
            asked = to_score(who, shown.ids[left], shown.features[left])
            chosen = left[belief.next_items(asked, user=who, n=min(n, len(left)))]
            named = {"attribute": name} if name else {}
            rows += [
                {"user": person} | named | {"place": place} | shown.called(shown.ids[i])
                for place, i in enumerate(chosen, start=1)
            ]
        return rows

    def _belief(self, name: str, person: Any) -> tuple[Any, Any]:
        belief = self.posterior.get(name)
        if belief is not None and person in belief.users.tolist():
            return belief, person
        stranger = self.strangers[name]
        if person in self.described or not self.described:
            return stranger, person if self.described else _NEW
        # Labels about something else, and no covariates: what the crowd is like.
        return self.model._ranker_of(name).newcomer(users=[_NEW]), _NEW

    def _rows_labelled(self, name: str, person: Any) -> Any:
        """Return the items somebody has labelled already."""
        from likeminds.cli._models import parts_of

        part = None if self.said is None else parts_of(self.said, self.model).get(name)
        if part is None or person not in part.user_ids.tolist():
            return []
        return part.of_user(person).item_codes


def _covariates(columns: LabelColumns) -> "Covariates | None":
    if columns.user_features is None:
        return None
    from likeminds.data.covariates import Covariates

    return Covariates.read(columns.user_features, columns.user)


def _read_both(  # noqa: PLR0917 - where labels and comparisons come from
    talk: Output,
    labels: str | None,
    pairs: ComparisonOptions,
    columns: LabelColumns,
    shown: "ModelItems",
    model: Any,
) -> "Annotations | None":
    """Read labels, comparisons, or both, of items that are shown."""
    from likeminds.cli._comparisons import read_pairs
    from likeminds.data.annotations import Annotations

    said = None if labels is None else _read_labels(talk, labels, columns, shown, model)
    if pairs.comparisons is None:
        return said
    table = read_pairs(pairs, columns.user, alone=_NEW)
    names = {"users": "user", "labels": "label", "weights": "weight", "choice_sets": "choice_set"}
    compared = Annotations(
        **{argument: table[name].to_numpy() for argument, name in names.items()},
        **_items(table["item"].to_numpy(), shown),
        feature_names=[str(name) for name in model.feature_names_],
        features_per="item",
    ).without_choice_set_names()
    return compared if said is None else said.concat(compared)


def _read_labels(
    talk: Output, source: str, columns: LabelColumns, shown: "ModelItems", model: Any
) -> "Annotations":
    """Read labels of items that are shown; where no column says whose, they are one person's."""
    import pyarrow as pa

    from likeminds.cli._input_tables import with_item
    from likeminds.cli._items import item_column
    from likeminds.cli._labels import label_reading
    from likeminds.data.annotations import Annotations
    from likeminds.data.column_roles import (
        as_frame,
        find_column,
        find_columns,
        id_texts,
        read_values,
    )
    from likeminds.data.sources import read_table

    roles = ("user", "item", "label", "attribute", "weight", "choice_set")
    names = {role: getattr(columns, role) for role in roles}
    table = read_table(source, id_texts(names))
    names = with_item(talk, table, names)
    if columns.user is None and find_column("user", table.column_names) is None:
        table = table.append_column("user", pa.array([_NEW] * table.num_rows))
    names["item"] = item_column(table, names)
    frame = as_frame(table)
    found = find_columns(frame, names, ())
    values = {role: read_values(frame, name) for role, name in found.items() if name is not None}
    return Annotations(
        users=values["user"],
        **_items(values["item"], shown),
        labels=values["label"],
        attributes=values.get("attribute"),
        weights=values.get("weight"),
        choice_sets=values.get("choice_set"),
        feature_names=[str(name) for name in model.feature_names_],
        features_per="item",
        **label_reading(columns, model),
    )


def _items(called: "IdArray", shown: "ModelItems") -> dict[str, Any]:
    """Return the items of labels and the features of all items, as `Annotations` takes them."""
    items = shown.ids[_rows(called, shown)]
    return {"items": items, "features": shown.features, "item_ids": shown.ids}


def _rows(called: "IdArray", shown: "ModelItems") -> "Index":
    """Return where items are, by their ids or names; pictures, as when a model is fitted."""
    from likeminds.data.identifiers import encode, lookup
    from likeminds.data.item_features import find_names
    from likeminds.rankers.item_table import places_of_items

    if shown.pictures:
        codes, distinct = encode(called, "items")
        names = find_names([str(name) for name in distinct], shown.ids.tolist(), "--images")
        return lookup(names, shown.ids, "items")[codes]
    return places_of_items(called.tolist(), shown.ids, shown.names)
