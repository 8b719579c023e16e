"""``likeminds rank``, ``leaderboard`` and ``similar``: items by score, similar users and items."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import likeminds
from likeminds._util.lazy_imports import np
from likeminds._util.text_format import Verb, written_grade
from likeminds.cli._models import (
    ModelItems,
    Rows,
    about,
    find_item,
    find_user,
    rankers_of,
    read_items,
    the_ranker_of,
)
from likeminds.cli._options import (
    Attribute,
    ItemOptions,
    Like,
    Model,
    NotLike,
    NSchools,
    Table,
    Top,
    option,
)
from likeminds.cli._output import Output, write_rows
from likeminds.cli.main import DATA, FIT, command

if TYPE_CHECKING:
    from likeminds._util.array_types import Float
    from likeminds.rankers.multi_attribute import AttributeModel, AttributeNewcomers
    from likeminds.rankers.ranker import Ranker
    from likeminds.rankers.ranking import Ranking

_EVERYONE = "everyone"
_ASK = "likeminds rank power.likeminds --features power/features.csv"
_SIMILAR = "likeminds similar power.likeminds"


@command("Ask", DATA, FIT, f"{_ASK} --user household-007 --top 3", f"{_ASK} --out everyone.csv")
def rank(
    output: Output,
    *,
    model: Model,
    items: ItemOptions,
    user: list[str] | None = option(
        "A user, by id; may be repeated. By default, everyone.", default=None
    ),
    each_user: bool = option(
        "One ranking for each user. If --out is a name without an ending, write a folder of "
        "Parquet files.",
        "--each-user",
        default=False,
    ),
    unseen: bool = option(
        "Leave out the items that the user has labelled.", "--unseen", default=False
    ),
    top: Top = 10,
    attribute: Attribute = None,
    like: Like = None,
    not_like: NotLike = None,
    out: Table = None,
) -> None:
    """Rank items for a user, or for everyone by the consensus.

    For everyone, items are sorted by the lower 95 % bound of their score. Models of grades also
    show the expected grade. A model of several attributes ranks by each of them, or by a wish such
    as --like comfortable --like open --not pointy: the mean share of items that an item beats.
    Without --features or --images, the items are those of the model's training data.
    """
    from likeminds.rankers.item_table import ItemTableView
    from likeminds.rankers.validation import find_users

    to_folder = each_user and out is not None and _is_folder(out)
    output.refuse_two_results(None if to_folder else out)
    loaded = likeminds.load(model)
    shown = read_items(output, items, loaded)
    wish = bool(like or not_like)
    whole = not (attribute or wish or unseen or loaded.has_attributes)
    if to_folder and out is not None:
        if not whole:
            raise ValueError(
                "A folder of rankings needs a model without attributes, and no --unseen. Name a "
                "file with --out, such as rankings.parquet."
            )
        _write_folder(output, loaded, shown, top, out)
        return
    if wish and attribute is not None:
        raise ValueError("--like and --not name the attributes: leave out --attribute.")
    rows: Rows = []
    users: list[Any] = [find_user(text, loaded.users_) for text in user or ()] or [None]
    if each_user:
        users = [] if whole else loaded.users_.tolist()
        rows = _rank_all(loaded, shown, top) if whole else []
    for one in users:
        fresh = _unseen(shown, loaded, one) if unseen else shown
        if wish:
            rows += by_wish(loaded, fresh, one, like or [], not_like or [], top)
            continue
        for name, ranker in rankers_of(loaded, attribute).items():
            if attribute is None and one is not None and find_users(ranker, [one])[0] < 0:
                output.hint(f"{one} has no labels about {name}, so no ranking.")
                continue
            view = ItemTableView(ranker, fresh.ids, fresh.features)
            rows += _with_counts(ranker, as_rows(fresh, ranker.rank(one, view, k=top), one, name))
    show_rankings(output, loaded, rows, out, brief=each_user, unseen=unseen)


def _rank_all(model: "Ranker | AttributeModel", shown: "ModelItems", top: int) -> Rows:
    """Return the best items of each user, computed for many users at a time."""
    from likeminds.rankers.item_table import ItemTableView

    ((name, ranker),) = model.rankers_.items()
    found = ranker.rank_all(ItemTableView(ranker, shown.ids, shown.features), k=top)
    rows = [row for one in found for row in as_rows(shown, one, one.user, name)]
    return _with_counts(ranker, rows)


def _with_counts(ranker: "Ranker", rows: Rows) -> Rows:
    """Add the number of training labels of each item, if the labels are loaded."""
    from likeminds.data.identifiers import as_id_array, lookup

    annotations = ranker.training_annotations_
    if annotations is None or not annotations.has_items:
        return rows
    counts = np.append(np.bincount(annotations.item_codes, minlength=len(annotations.item_ids)), 0)
    items = as_id_array([row["item"] for row in rows], "items")
    found = counts[lookup(items, annotations.item_ids, "items")]  # -1 is the zero at the end
    return [row | {"labels": n} for row, n in zip(rows, found.tolist(), strict=True)]


def _is_folder(out: str) -> bool:
    """Return whether a name is of a folder of Parquet files: it exists, or has no ending."""
    return out != "-" and "://" not in out and (Path(out).is_dir() or not Path(out).suffix)


def _write_folder(
    output: Output, model: "Ranker | AttributeModel", shown: "ModelItems", top: int, out: str
) -> None:
    """Write a folder with the best items of each user, some users at a time."""
    from likeminds.cluster.rankings import write_rankings

    folder = write_rankings(model, out, shown.by_id, k=top)
    n_parts, n_users = len(list(folder.iterdir())), len(model.users_)
    output.json({"folder": str(folder), "parts": n_parts, "users": n_users})
    output.hint(f"Written: {out} ({n_users:,} people, {n_parts} parts)")


def _unseen(shown: "ModelItems", model: "Ranker | AttributeModel", user: Hashable) -> "ModelItems":
    from likeminds.rankers.ranking import are_labelled_by

    fresh = ~are_labelled_by(model, user, shown.ids)
    if not fresh.any():
        raise ValueError(f"{user} has labelled all of these items: leave out --unseen.")
    return replace(shown, ids=shown.ids[fresh], features=shown.features[fresh])


def by_wish(  # noqa: PLR0917 - the options of `rank`
    model: "Ranker | AttributeModel | AttributeNewcomers",
    shown: "ModelItems",
    user: Hashable,
    like: Sequence[str],
    not_like: Sequence[str],
    top: int,
    shown_as: Hashable = None,
) -> Rows:
    """Return the best items by a wish for attributes, as rows of a table."""
    from likeminds.rankers.capabilities import ReadableModel

    if isinstance(model, ReadableModel) and not model.has_attributes:
        raise ValueError("This model has no attributes: leave out --like and --not.")
    scores: Float = model.match(user, shown.features, like=like, not_like=not_like)
    order = np.argsort(-scores, kind="stable")[:top]
    wish = " and ".join([*like, *(f"not {name}" for name in not_like)])
    user = user if shown_as is None else shown_as
    return as_rows(shown, likeminds.Ranking(user, shown.ids[order], scores[order]), user, wish)


def as_rows(shown: "ModelItems", ranking: "Ranking", user: Hashable, attribute: str) -> Rows:
    """Return items, the best first, as rows of a table."""
    head = {"user": _EVERYONE if user is None else user} | about(attribute)
    return [head | row for row in replace(ranking, names=shown.names).rows()]


def show_rankings(
    output: Output,
    model: "Ranker | AttributeModel",
    rows: Rows,
    out: str | None,
    *,
    brief: bool = False,
    more: Mapping[str, Any] | None = None,
    unseen: bool = False,
) -> None:
    """Write, print or show rankings; ``more`` is added to the JSON."""
    output.json({"rankings": rows, **(more or {})})
    if out is not None:
        write_rows(rows, out)
        if out != "-":
            output.hint(f"Written: {out} ({len(rows):,} rows)")
        return
    if output.as_json:
        return
    tables: dict[tuple[Any, str], Rows] = {}
    for row in rows:
        tables.setdefault((row["user"], row.get("attribute", "")), []).append(row)
    if brief:
        _show_brief(output, tables)
        return
    learned = {name: one._best_model.verb_ for name, one in model.rankers_.items()}
    columns = ("rank", "item", "name", "score", "expected", "labels")
    for (user, attribute), ranked in tables.items():
        verb = Verb.of(learned.get(attribute))
        title = f"Items that {user} {(verb.conditional if unseen else verb).most()}"
        lines = [{key: row[key] for key in columns if key in row} for row in ranked]
        output.table(title if attribute in title else f"{title}: {attribute}", lines)
    rises = {
        row["user"] == _EVERYONE
        for ranked in tables.values()
        for row, after in pairwise(ranked)
        if _grade(row) < _grade(after)
    }
    if True in rises:
        output.hint(
            "(sorted by score, the lower 95 % bound: an item with few labels may rank below one "
            "with a lower expected grade)"
        )
    if False in rises:
        output.hint(
            "(sorted by score: expected grades may be in another order, since they are closer to "
            "the average if the score is uncertain)"
        )


def _grade(row: Mapping[str, Any]) -> float:
    """Return the expected grade of a row, if it is a number."""
    grade = row.get("expected")
    return grade if isinstance(grade, float) else 0.0


def _show_brief(output: Output, tables: dict[tuple[Any, str], Rows]) -> None:
    """Show one line for each user and attribute, with expected grades in brackets."""
    lines = []
    for (user, attribute), ranked in tables.items():
        names = [
            f"{row.get('name') or row['item']}"
            + (f" ({written_grade(row['expected'])})" if "expected" in row else "")
            for row in ranked
        ]
        lines.append({"user": user} | about(attribute) | {"best first": ", ".join(names)})
    output.table("Best items for each user", lines)


@command(
    "Ask", DATA, FIT, f"{_SIMILAR} --user household-007 --top 3", f"{_SIMILAR} --item 7ct-5y-local"
)
def similar(
    output: Output,
    *,
    model: Model,
    items: ItemOptions,
    user: str | None = option("A user, by id.", default=None),
    item: str | None = option("An item, by id or name.", default=None),
    top: Top = 10,
    attribute: Attribute = None,
    out: Table = None,
) -> None:
    """List the users most similar to a user, or the items most similar to an item.

    The similarity of two users is the correlation of their scores of the items. The similarity of
    two items is the correlation of their scores over users.
    """
    output.refuse_two_results(out)
    if (user is None) == (item is None):
        raise ValueError("Give either --user or --item.")
    loaded = likeminds.load(model)
    _, ranker = the_ranker_of(loaded, attribute)
    shown = read_items(output, items, loaded)
    if item is None:
        assert user is not None
        found = ranker.similar_users(find_user(user, ranker.users_), top, shown.by_id)
        rows = [{"user": one, "likeness": like} for one, like in found]
        of = found.of
    else:
        found = ranker.similar_items(find_item(item, shown.ids, shown.names), top, shown.by_id)
        rows = [shown.named(one) | {"likeness": like} for one, like in found]
        of = shown.names.get(found.of, found.of)
    output.json({"model": str(model), "of": found.of, "similar": rows})
    if out is not None:
        write_rows(rows, out)
    if out != "-":
        output.table(f"{found.what.capitalize()} most like {of}", rows)
        output.hint("likeness: 1 is the same ranking, -1 the reverse ranking.")


@command("Ask", DATA, FIT, "likeminds leaderboard power.likeminds --user household-007")
def leaderboard(
    output: Output,
    *,
    model: Model,
    user: list[str] | None = option("A user, by id; may be repeated.", default=None),
    schools: NSchools = None,
    level: float = option("The probability of each interval.", default=0.9),
    n_next: int = option("Number of comparisons to propose.", "--next", min=0, default=5),
    attribute: Attribute = None,
    out: Table = None,
) -> None:
    """Rank items for everyone, for each school and for users, with intervals of the ranks.

    Scores are log-odds of beating the average item, with style held equal if the votes have
    features of style. Each leaderboard ends with the most informative comparisons to ask next.
    """
    output.refuse_two_results(out)
    name, ranker = the_ranker_of(likeminds.load(model), attribute)
    groups: dict[str, Any] = {"everyone": None}
    found = likeminds.find_schools(ranker, n_schools="auto" if schools is None else schools)
    groups |= {f"school {s.number}": found.members(s.number).tolist() for s in found}
    groups |= {one: [find_user(one, ranker.users_)] for one in user or ()}
    boards = {
        who: likeminds.leaderboard(ranker, users, level=level, n_next=n_next)
        for who, users in groups.items()
    }
    items = {who: one.to_arrow().to_pylist() for who, one in boards.items()}
    listed = [
        {"by": who, "users": one.n_users, "items": items[who], "ask_next": one.ask_next}
        for who, one in boards.items()
    ]
    output.json({"model": str(model), "attribute": name or None, "leaderboards": listed})
    if out is not None:
        write_rows([{"by": who} | row for who, rows in items.items() for row in rows], out)
    if out == "-":
        return
    for who, one in boards.items():
        users = "" if one.n_users == 1 else f" ({one.n_users:,} users)"
        output.table(f"Leaderboard: {who}{users}", items[who])
        if one.ask_next:
            output.show(f"Ask next: {', '.join(f'{a} or {b}' for a, b in one.ask_next)}")
