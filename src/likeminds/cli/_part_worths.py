"""The choice modeller's table, as ``likeminds explain --table`` shows it."""

from typing import Any

from likeminds.cli._output import Output


def tell_part_worths(talk: Output, ranker: Any, price: str | None) -> dict[str, Any]:
    """Show part-worths, and what people would pay where a price is named; return the facts."""
    from likeminds.rankers.capabilities import Capability

    Capability.PART_WORTHS.require(ranker)
    if ranker._learned("annotations_") is None:
        raise ValueError(
            "The table needs the labels that the model has learned from, and it has not kept them: "
            "fit it with --keep-data."
        )
    table = ranker.summary()
    facts: dict[str, Any] = table.to_dict()
    _tell(talk, table, table.notes)
    if table.correlations:
        _tell(talk, table.correlated())
    if price is not None:
        paid = ranker.wtp(price)
        facts["wtp"] = paid.to_dict()
        _tell(talk, paid, paid.notes)
    else:
        talk.remark("\nNext: --price FEATURE says what people would pay for the others.")
    return facts


def _tell(talk: Output, table: Any, notes: tuple[str, ...] = ()) -> None:
    from likeminds.cli._tables import rich_table

    talk.tell(rich_table(table.title, table.rows))
    for note in notes:
        talk.tell(note)
