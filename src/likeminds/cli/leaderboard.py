"""``likeminds leaderboard``: items with intervals of scores and ranks."""

from typing import TYPE_CHECKING, Annotated, Any

from likeminds.cli._options import Attribute, Model, NSchools, Table, option
from likeminds.cli._output import Output, write_rows
from likeminds.cli.main import DATA, FIT, command

if TYPE_CHECKING:
    from likeminds.rankers.leaderboards import Leaderboard


@command("Ask", DATA, FIT, "likeminds leaderboard power.likeminds --user household-007")
def leaderboard(
    output: Output,
    *,
    model: Model,
    user: Annotated[list[str] | None, option("A user, by id; may be repeated.")] = None,
    schools: NSchools = None,
    level: Annotated[float, option("The probability of each interval.")] = 0.9,
    n_next: Annotated[int, option("How many comparisons to ask next.", "--next", min=0)] = 5,
    attribute: Attribute = None,
    out: Table = None,
) -> None:
    """Rank items for everyone, for each school and for users, with intervals of the ranks.

    Scores are log-odds of beating the average item, at the same style of answers if the votes had
    one. Below each leaderboard stand the comparisons whose results would be most informative.
    """
    from likeminds.cli._models import find_user, the_ranker_of
    from likeminds.rankers.leaderboards import leaderboard as leaderboard_of
    from likeminds.schools.find import find_schools
    from likeminds.storage.models import load

    output.refuse_two_results(out)
    name, ranker = the_ranker_of(load(model), attribute)
    groups: dict[str, Any] = {"everyone": None}
    found = find_schools(ranker, n_schools="auto" if schools is None else schools)
    groups |= {f"school {s.number}": found.members(s.number).tolist() for s in found}
    groups |= {one: [find_user(one, ranker.users_)] for one in user or ()}
    boards = {
        who: leaderboard_of(ranker, users, level=level, n_next=n_next)
        for who, users in groups.items()
    }
    output.json({"model": str(model), "attribute": name or None, "leaderboards": _as_json(boards)})
    if out is not None:
        rows = [
            {"by": who} | row for who, one in boards.items() for row in one.to_arrow().to_pylist()
        ]
        write_rows(rows, out)
    if out == "-":
        return
    for who, one in boards.items():
        users = "" if one.n_users == 1 else f" ({one.n_users:,} users)"
        output.table(f"Leaderboard: {who}{users}", one.to_arrow().to_pylist())
        if one.ask_next:
            output.show(f"Ask next: {', '.join(f'{a} or {b}' for a, b in one.ask_next)}")


def _as_json(boards: "dict[str, Leaderboard]") -> list[dict[str, Any]]:
    return [
        {
            "by": who,
            "users": one.n_users,
            "items": one.to_arrow().to_pylist(),
            "ask_next": [list(pair) for pair in one.ask_next],
        }
        for who, one in boards.items()
    ]
