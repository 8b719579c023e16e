"""``likeminds newcomer``: somebody new, from any number of labels, without a refit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likeminds.cli._command import command
from likeminds.cli._options import Columns, ItemOptions, Model, Pairs, Table
from likeminds.cli._talk import Talk
from likeminds.cli.fit import DATA, FIT
from likeminds.cli.rank import Like, NotLike, Scores, Top, as_wish, best, show

if TYPE_CHECKING:
    from likeminds._support.arrays import IdArray, Index
    from likeminds.cli._items import Shown
    from likeminds.data.annotations import Annotations
    from likeminds.data.covariates import Covariates

_NEW = "newcomer"


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    ask = "likeminds newcomer --model power.likeminds --features power/features.csv"
    examples = [
        DATA,
        FIT,
        "printf 'item,label\\n7ct-1y-known,1\\n9ct-5y-known,0\\n' > zoe.csv",
        f"{ask} --labels zoe.csv --top 3 --ask 2",
    ]
    command(app, panel="Ask", examples=examples)(newcomer)


def newcomer(
    talk: Talk,
    *,
    model: Model,
    items: ItemOptions,
    columns: Columns,
    pairs: Pairs,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            "-l",
            help="What newcomers said: items and labels, as a table or - for CSV on standard "
            "input; with a column of people where there are several. Without it: somebody of "
            "whom nothing is known.",
        ),
    ] = None,
    top: Top = 10,
    ask: Annotated[
        int, typer.Option(min=0, help="Propose so many items whose labels would teach most.")
    ] = 0,
    like: Like = None,
    not_like: NotLike = None,
    out: Table = None,
) -> None:
    """Rank items for people the model does not know, by a few labels of theirs.

    Nothing is fitted again. Without labels, the ranking is that of the consensus; or, with
    --people, of what goes with their covariates in the crowd the model has learned from.
    """
    from likeminds.cli._items import read_shown
    from likeminds.cli._labels import refuse_several_from_stdin
    from likeminds.cli._models import open_model, verbs_of
    from likeminds.cli._show import refuse_two_outputs, rich_table

    refuse_two_outputs(talk, out)
    refuse_several_from_stdin(labels, items.features, columns.people, pairs.comparisons)
    known = open_model(model)
    shown = read_shown(talk, items, known, columns.item)
    said = _read_both(labels, pairs, columns, shown, known)
    new = _Newcomers.of(known, said, _covariates(columns))
    rows, asked = [], []
    for person in new.people:
        for about, scores in new.questions(person, like or [], not_like or [], shown.ids):
            rows += best(shown, scores(shown.features), top, person, about)
        asked += new.items_to_ask(person, shown, ask) if ask else []
    more = {"ask": asked} if ask else {}
    show(talk, rows, out, more=more, verbs=verbs_of(known))
    if asked and out != "-":
        talk.tell(rich_table("Labels of these would teach most", asked))


@dataclass(frozen=True)
class _Newcomers:
    """Posteriors of newcomers by attribute: given labels (beliefs), or none (strangers)."""

    model: Any
    said: "Annotations | None"
    beliefs: dict[str, Any]
    strangers: dict[str, Any]
    described: list[Any]

    @classmethod
    def of(
        cls, model: Any, said: "Annotations | None", covariates: "Covariates | None" = None
    ) -> "_Newcomers":
        """Compute the posteriors; nothing is fitted."""
        from likeminds.cli._models import parts_of, rankers_of
        from likeminds.rankers.model import Ability

        rankers = rankers_of(model)
        for ranker in rankers.values():
            Ability.NEWCOMERS.require(ranker)
        if said is not None and covariates is not None:
            said = said.with_people(covariates)
            covariates = said.people
        parts = {} if said is None else parts_of(said, model)
        beliefs = {
            name: rankers_of(model, name or None)[name].newcomer(part)
            for name, part in parts.items()
        }
        described = [] if covariates is None else list(covariates.ids.tolist())
        strangers = {
            name: ranker.newcomer(users=described or [_NEW], people=covariates)
            for name, ranker in rankers.items()
        }
        return cls(model, said, beliefs, strangers, described)

    @property
    def people(self) -> list[Any]:
        """Who they are."""
        labelled = [] if self.said is None else list(self.said.user_ids.tolist())
        return list(dict.fromkeys([*labelled, *self.described])) or [_NEW]

    def questions(
        self, person: Any, like: Sequence[str], not_like: Sequence[str], items: Any
    ) -> Iterator[tuple[str, Scores]]:
        """Give, by what it is about, each function that scores items for a newcomer."""
        if like or not_like:
            from likeminds.rankers.attributes import AttributeNewcomers

            if not self.model.has_attributes:
                raise ValueError("This model tells no attributes apart: leave out --like, --not.")
            new = AttributeNewcomers(self.model, self.beliefs)
            yield (
                as_wish(like, not_like),
                lambda X: new.match(X, person, like=like, not_like=not_like),
            )
            return
        for name in self.strangers:
            belief, who = self._belief(name, person)
            yield name, _scores(belief, who, items)

    def items_to_ask(self, person: Any, shown: "Shown", n: int) -> list[dict[str, Any]]:
        """Return the items to ask about, most telling first, as rows of a table."""
        import numpy as np

        rows = []
        for name in self.strangers:
            belief, who = self._belief(name, person)
            left = np.setdiff1d(np.arange(len(shown.ids)), self._rows_labelled(name, person))
            asked = _about(who, shown.ids[left], shown.features[left])
            chosen = left[belief.next_items(asked, who, min(n, len(left)))]
            named = {"attribute": name} if name else {}
            rows += [
                {"person": person} | named | {"place": place, "item": shown.ids[i]}
                for place, i in enumerate(chosen, start=1)
            ]
        return rows

    def _belief(self, name: str, person: Any) -> tuple[Any, Any]:
        belief = self.beliefs.get(name)
        if belief is not None and person in belief.users.tolist():
            return belief, person
        stranger = self.strangers[name]
        if person in self.described or not self.described:
            return stranger, person if self.described else _NEW
        # Labels about something else, and no covariates: what the crowd is like.
        return self.model.ranker_of(name).newcomer(users=[_NEW]), _NEW

    def _rows_labelled(self, name: str, person: Any) -> Any:
        """Return the items somebody has labelled already."""
        from likeminds.cli._models import parts_of

        part = None if self.said is None else parts_of(self.said, self.model).get(name)
        if part is None or person not in part.user_ids.tolist():
            return []
        return part.of_person(person).item_codes


def _covariates(columns: Columns) -> "Covariates | None":
    if columns.people is None:
        return None
    from likeminds.data.covariates import Covariates

    return Covariates.read(columns.people, columns.person)


def _scores(belief: Any, person: Any, items: Any) -> Scores:
    return lambda X: belief.decision_function(_about(person, items, X))


def _about(person: Any, items: Any, features: Any) -> "Annotations":
    """Return items to be scored for a person: rows whose labels nobody knows yet."""
    import numpy as np

    from likeminds.data.annotations import Annotations

    users = np.empty(len(items), dtype=object)
    users[:] = [person] * len(items)
    return Annotations(
        users=users,
        items=items,
        labels=np.zeros(len(items), dtype=bool),
        features=features,
        features_per="row",
    )


def _read_both(
    labels: str | None, pairs: Pairs, columns: Columns, shown: "Shown", model: Any
) -> "Annotations | None":
    """Read labels, comparisons, or both, of items that are shown."""
    from likeminds.cli._pairs import read_pairs
    from likeminds.data.annotations import Annotations

    said = None if labels is None else _read_labels(labels, columns, shown, model)
    if pairs.comparisons is None:
        return said
    table = read_pairs(pairs, columns.person, alone=_NEW)
    names = {"users": "person", "labels": "label", "weights": "weight", "groups": "group"}
    compared = Annotations(
        **{argument: table[name].to_numpy() for argument, name in names.items()},
        items=_rows(table["item"].to_numpy(), shown),
        features=shown.features,
        feature_names=[str(name) for name in model.feature_names_],
        features_per="item",
    ).without_group_names()
    return compared if said is None else said.concat(compared)


def _read_labels(source: str, columns: Columns, shown: "Shown", model: Any) -> "Annotations":
    """Read labels of items that are shown; where no column says whose, they are one person's."""
    import pyarrow as pa

    from likeminds.cli._labels import label_reading
    from likeminds.cli._names import item_key
    from likeminds.data.annotations import Annotations
    from likeminds.data.columns import as_frame, find_column, find_columns, id_texts, read_values
    from likeminds.data.sources import read_table

    roles = ("person", "item", "label", "attribute", "weight", "group")
    names = {role: getattr(columns, role) for role in roles}
    table = read_table(source, id_texts(names))
    names["item"] = item_key(table, columns.item or "item")
    if columns.person is None and find_column("person", table.column_names) is None:
        table = table.append_column("person", pa.array([_NEW] * table.num_rows))
    frame = as_frame(table)
    found = find_columns(frame, names, ())
    values = {role: read_values(frame, name) for role, name in found.items() if name is not None}
    return Annotations(
        users=values["person"],
        items=_rows(values["item"], shown),
        labels=values["label"],
        features=shown.features,
        attributes=values.get("attribute"),
        weights=values.get("weight"),
        groups=values.get("group"),
        feature_names=[str(name) for name in model.feature_names_],
        features_per="item",
        **label_reading(columns, model),
    )


def _rows(called: "IdArray", shown: "Shown") -> "Index":
    """Return where items are that are called exactly so; pictures, as when a model is fitted."""
    from likeminds._support.checks import listing
    from likeminds.data.identifiers import encode, lookup
    from likeminds.data.item_features import find_names
    from likeminds.data.spelling import write_as_known

    codes, distinct = encode(called, "items")
    if shown.pictures:
        names = find_names([str(name) for name in distinct], shown.ids.tolist(), "--images")
        return lookup(names, shown.ids, "items")[codes]
    found = lookup(write_as_known(distinct, shown.ids, "items"), shown.ids, "items")
    if (found < 0).any():
        raise ValueError(
            f"There are no features of item(s) {listing(distinct[found < 0])}. Give them with "
            "--features, or drop the rows about these items."
        )
    return found[codes]
