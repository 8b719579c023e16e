"""``likeminds rank``: the best items for a person, or for everyone."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likeminds.cli._command import command
from likeminds.cli._options import Attribute, ItemOptions, Model, Table
from likeminds.cli._output import Output
from likeminds.cli.fit import DATA, FIT

if TYPE_CHECKING:
    from likeminds.cli._items import ModelItems

_EVERYONE = "everyone"

Top = Annotated[int, typer.Option("--top", "-k", min=1, help="How many items.")]
Like = Annotated[
    list[str] | None,
    typer.Option(help="An attribute the items should have; may be repeated."),
]
NotLike = Annotated[
    list[str] | None,
    typer.Option("--not", help="An attribute the items should not have; may be repeated."),
]


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    ask = "likeminds rank power.likeminds --features power/features.csv"
    examples = [DATA, FIT, f"{ask} --user household-007 --top 3", f"{ask} --out everyone.csv"]
    command(app, panel="Ask", examples=examples)(rank)


def rank(
    talk: Output,
    *,
    model: Model,
    items: ItemOptions,
    user: Annotated[
        list[str] | None, typer.Option(help="For whom; may be repeated. By default, everyone.")
    ] = None,
    each_user: Annotated[
        bool,
        typer.Option(
            "--each-user",
            help="One ranking for each person there is; with --out and a name without an ending, "
            "a folder of Parquet files.",
        ),
    ] = False,
    unseen: Annotated[
        bool, typer.Option("--unseen", help="Leave out what the person has judged already.")
    ] = False,
    top: Top = 10,
    attribute: Attribute = None,
    like: Like = None,
    not_like: NotLike = None,
    out: Table = None,
) -> None:
    """Rank items for a person, or for everyone: by what all agree on.

    For everyone, items are sorted by the lower 95 % bound of their score. Models of grades show the
    expected grade as well.
    A model of several attributes ranks by each of them, or by a wish, such as
    --like comfortable --like open --not pointy: the mean share of items that an item beats.
    Without --features or --images, the items are those the model has learned from.
    """
    from likeminds.cli._id_lookup import as_known
    from likeminds.cli._items import read_shown
    from likeminds.cli._models import open_model, rankers_of, verbs_of
    from likeminds.cli._tables import refuse_two_outputs
    from likeminds.rankers.item_table import ItemTableView
    from likeminds.rankers.label_validation import places_of

    to_folder = each_user and out is not None and _is_folder(out)
    refuse_two_outputs(talk, None if to_folder else out)
    known = open_model(model)
    shown = read_shown(talk, items, known)
    if to_folder and out is not None:
        if attribute or like or not_like or unseen or known.has_attributes:
            raise ValueError(
                "A folder of rankings is about one attribute, and about all of the items: name a "
                "file with --out, such as rankings.parquet."
            )
        _write_for_everybody(talk, known, shown, top, out)
        return
    people: list[Any] = [None]
    if each_user:
        people = known.people_.tolist()
    elif user:
        people = [as_known(text, known.people_, "user") for text in user]
    rows = []
    if each_user and not (unseen or known.has_attributes or like or not_like or attribute):
        rows, people = _for_everybody(known, shown, top), []
    for one in people:
        fresh = _unseen(shown, known, one) if unseen else shown
        if like or not_like:
            scores = _by_wish(known, fresh, one, attribute, like or [], not_like or [])
            rows += best(fresh, scores, top, one, as_wish(like or [], not_like or []))
            continue
        for about, ranker in rankers_of(known, attribute).items():
            if attribute is None and one is not None and places_of(ranker, [one])[0] < 0:
                talk.remark(f"{one} has no labels about {about}: no ranking.")
                continue
            items_shown = ItemTableView(ranker, fresh.ids, fresh.features)
            rows += as_rows(fresh, ranker.rank(one, items_shown, k=top), one, about)
    show(talk, rows, out, brief=each_user, verbs=verbs_of(known), unseen=unseen)


def _is_folder(out: str) -> bool:
    """Say whether a table goes to a folder of Parquet files: a name without an ending."""
    from pathlib import Path

    return out != "-" and "://" not in out and (Path(out).is_dir() or not Path(out).suffix)


def _write_for_everybody(talk: Output, model: Any, shown: "ModelItems", top: int, out: str) -> None:
    """Write a folder with everybody's best items, some people at a time."""
    from likeminds.cluster.rankings import write_rankings

    items = dict(zip(shown.ids.tolist(), shown.features, strict=True))
    folder = write_rankings(model, out, items, k=top)
    n_parts, n_users = len(list(folder.iterdir())), len(model.people_)
    talk.result({"folder": str(folder), "parts": n_parts, "people": n_users})
    talk.remark(f"Written: {out} ({n_users:,} people, {n_parts} parts)")


def _for_everybody(model: Any, shown: "ModelItems", top: int) -> list[dict[str, Any]]:
    """Return everybody's best items as rows of a table, by products of many people at a time."""
    from likeminds.cli._models import rankers_of
    from likeminds.rankers.item_table import ItemTableView

    ((about, ranker),) = rankers_of(model).items()
    items = ItemTableView(ranker, shown.ids, shown.features)
    rows = []
    for found in ranker.rank_all(items, k=top):
        rows += as_rows(shown, found, found.user, about)
    return rows


def _unseen(shown: "ModelItems", model: Any, person: Any) -> "ModelItems":
    from dataclasses import replace

    from likeminds.rankers.ranking import judged_by

    fresh = ~judged_by(model, person, shown.ids)
    if not fresh.any():
        raise ValueError(f"{person} has judged all of these items: leave out --unseen.")
    return replace(shown, ids=shown.ids[fresh], features=shown.features[fresh])


def _by_wish(  # noqa: PLR0917 - who wishes for what
    model: Any,
    shown: "ModelItems",
    person: Any,
    attribute: str | None,
    like: Sequence[str],
    not_like: Sequence[str],
) -> Any:
    """Return the scores of items by a wish for attributes."""
    if attribute is not None:
        raise ValueError("A wish names its attributes: leave out --attribute.")
    if not model.has_attributes:
        raise ValueError("This model tells no attributes apart: leave out --like and --not.")
    return model.match(person, shown.features, like=like, not_like=not_like)


def best(
    shown: "ModelItems", scores: Any, top: int, person: Any, about: str
) -> list[dict[str, Any]]:
    """Return the best items as rows of a table."""
    import numpy as np

    from likeminds.rankers.ranking import Ranking

    order = np.argsort(-scores, kind="stable")[:top]
    return as_rows(shown, Ranking(person, shown.ids[order], scores[order]), person, about)


def as_rows(shown: "ModelItems", ranking: Any, person: Any, about: str) -> list[dict[str, Any]]:
    """Return items, the best first, as rows of a table."""
    from dataclasses import replace

    for_whom = {"user": _EVERYONE if person is None else person}
    named = {"attribute": about} if about else {}
    return [for_whom | named | row for row in replace(ranking, names=shown.names).rows()]


def show(
    talk: Output,
    rows: list[dict[str, Any]],
    out: str | None,
    *,
    brief: bool = False,
    more: Mapping[str, Any] | None = None,
    verbs: Mapping[str, str | None] | None = None,
    unseen: bool = False,
) -> None:
    """Write, print or show rankings.

    ``more`` is what else programs are told; ``verbs`` are what people do with items, by attribute;
    ``unseen`` items are what people would like.
    """
    from likeminds.cli._tables import arrow_table
    from likeminds.data.sources import write_table

    talk.result({"rankings": rows, **(more or {})})
    if out is not None:
        write_table(arrow_table(rows), out)
        if out != "-":
            talk.remark(f"Written: {out} ({len(rows):,} rows)")
        return
    if brief and not talk.as_json:
        talk.console.print(_brief(rows))
        return
    _print_each(talk, rows, verbs, unseen)


def _print_each(
    talk: Output, rows: list[dict[str, Any]], verbs: Mapping[str, str | None] | None, unseen: bool
) -> None:
    from likeminds._util.verbs import Verb
    from likeminds.cli._tables import rich_table

    tables: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
    for row in rows:
        wanted = ("rank", "item", "name", "score", "expected")
        line = {str(key): row[key] for key in wanted if key in row}
        tables.setdefault((row["user"], row.get("attribute")), []).append(line)
    for (person, about), lines in tables.items():
        verb = Verb.of((verbs or {}).get(about or ""))
        title = f"What {person} {(verb.conditional if unseen else verb).most()}"
        told = not about or about in title
        talk.tell(rich_table(title if told else f"{title}: {about}", lines))


def _brief(rows: list[dict[str, Any]]) -> Any:
    """Return one line for each person (and attribute), with expected grades in brackets."""
    from likeminds._util.text_format import written_grade
    from likeminds.cli._tables import rich_table

    lines: dict[tuple[Any, ...], list[str]] = {}
    for row in rows:
        grade = f" ({written_grade(row['expected'])})" if "expected" in row else ""
        lines.setdefault((row["user"], row.get("attribute")), []).append(
            f"{row.get('name') or row['item']}{grade}"
        )
    table = [
        {"user": who} | ({"attribute": about} if about else {}) | {"best first": ", ".join(names)}
        for (who, about), names in lines.items()
    ]
    return rich_table("Best for each person", table)


def as_wish(like: Sequence[str], not_like: Sequence[str]) -> str:
    """Put a wish into words."""
    return " and ".join([*like, *(f"not {name}" for name in not_like)])
