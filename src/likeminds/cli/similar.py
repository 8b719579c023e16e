"""``likeminds similar``: who ranks like somebody, and what the same people like."""

from typing import Annotated, Any

import typer

from likeminds.cli._command import command
from likeminds.cli._options import Attribute, ItemOptions, Model, Table
from likeminds.cli._output import Output
from likeminds.cli.fit import DATA, FIT
from likeminds.cli.rank import Top


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    ask = "likeminds similar power.likeminds"
    examples = [DATA, FIT, f"{ask} --user household-007 --top 3", f"{ask} --item 7ct-5y-local"]
    command(app, panel="Ask", examples=examples)(similar)


def similar(
    talk: Output,
    *,
    model: Model,
    items: ItemOptions,
    user: Annotated[str | None, typer.Option(help="Who ranks like this person?")] = None,
    item: Annotated[str | None, typer.Option(help="What do the same people like?")] = None,
    top: Top = 10,
    attribute: Attribute = None,
    out: Table = None,
) -> None:
    """List the people most like a person, or the items most like an item.

    Two people are alike as far as their scores of the items correlate, two items as far as their
    scores by the people do: who likes one more than others do likes the other more than others do.
    """
    from likeminds.cli._id_lookup import as_known, find_item
    from likeminds.cli._items import read_shown
    from likeminds.cli._models import open_model, the_ranker_of
    from likeminds.cli._tables import arrow_table, refuse_two_outputs, rich_table
    from likeminds.data.sources import write_table

    refuse_two_outputs(talk, out)
    if (user is None) == (item is None):
        raise ValueError("Give --user or --item.")
    known = open_model(model)
    _, ranker = the_ranker_of(known, attribute)
    shown = read_shown(talk, items, known)
    names = shown.names
    among = dict(zip(shown.ids.tolist(), shown.features, strict=True))
    if user is not None:
        found = ranker.similar_users(as_known(user, ranker.people_, "user"), top, among)
        rows: list[dict[str, Any]] = [{"user": one, "likeness": like} for one, like in found]
    else:
        assert item is not None
        found = ranker.similar_items(find_item(item, shown.ids, names), top, among)
        rows = [
            {"item": one} | ({"name": names.get(one)} if names else {}) | {"likeness": like}
            for one, like in found
        ]
    talk.result({"model": str(model), "of": found.of, "similar": rows})
    if out is not None:
        write_table(arrow_table(rows), out)
    if out != "-":
        of = names.get(found.of, found.of) if item is not None else found.of
        talk.tell(rich_table(f"{found.what.capitalize()} most like {of}", rows))
        talk.remark("likeness: 1 is the same ranking, -1 the reverse.")
