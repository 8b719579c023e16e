"""The best items for everybody, as a folder of Parquet files: one for the people of each shard."""

import io
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from likeminds._util.atomic_files import folder_for, write_whole
from likeminds._util.checks import listing
from likeminds.cluster.executor import identity, release
from likeminds.cluster.in_place_posteriors import PosteriorFolder
from likeminds.data.column_roles import as_arrow
from likeminds.rankers.capabilities import some_of
from likeminds.rankers.item_table import ItemTableView
from likeminds.storage.models import load
from likeminds.storage.user_files import people_of

# People of a ranker in memory that are ranked for at a time.
_PEOPLE_AT_ONCE = 50_000


def write_rankings(
    ranker: Any,
    folder: str | os.PathLike[str],
    items: Any = None,
    *,
    k: int = 10,
    client: Any = None,
) -> Path:
    """Rank items for everybody, and write a folder of Parquet files, whole or not at all.

    Parameters
    ----------
    ranker : Ranker
        A fitted one. Of one whose people are in files (`load`, `Shards.saved_to`), each file makes
        a part, and no more than one of them is in memory.
    folder : path
        Where to. What is there is replaced if it has such parts only, once the new ones are
        complete.
    items : mapping from item to features, or Annotations, optional
        What is ranked; without them, the items it was fitted to, where it has kept them.
    k : int, default=10
        How many of the best of each person's.
    client : distributed.Client, optional
        A cluster that does it: workers read people and write parts, where they see the folders.

    Returns
    -------
    Path
        The folder, with columns person, rank, item and score.

    Examples
    --------
    >>> import tempfile
    >>> from likeminds import ThreeLevelRanker, load_electricity
    >>> ranker = ThreeLevelRanker().fit(load_electricity())
    >>> offers = {"cheap": [7.0, 1, 1, 0, 0, 0], "dear": [9.0, 1, 1, 0, 0, 0]}
    >>> with tempfile.TemporaryDirectory() as scratch:
    ...     made = write_rankings(ranker, f"{scratch}/best", offers, k=1)
    ...     table = pq.read_table(made)
    >>> table.num_rows, table.column_names
    (361, ['user', 'rank', 'item', 'score'])
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, but is {k}.")
    shown = ItemTableView.of(ranker, items)
    plain = dict(zip(shown.ids.tolist(), shown.features, strict=True))
    if not plain:
        raise ValueError("There are no items to rank.")
    target = folder_for(folder, "the rankings").absolute()
    _refuse_other(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    scratch.mkdir()
    try:
        for number, part in enumerate(_parts(ranker, plain, k, scratch, client)):
            if part is not None:
                _write(part, scratch, number)
        _put_in_place(scratch, target)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    return Path(folder)


def _parts(
    ranker: Any, items: dict[Any, Any], k: int, scratch: Path, client: Any
) -> Iterator[pa.Table | None]:
    """Yield the table of each part; None where a worker has written it."""
    there, n_users = people_of(ranker), len(ranker.users_)
    each = range(0, n_users, _PEOPLE_AT_ONCE)
    places = [slice(start, start + _PEOPLE_AT_ONCE) for start in each]
    if there is not None:
        places = [there.slice_of(number) for number in range(len(there))]
    if client is None:
        for some in places:
            yield _ranked(some_of(ranker, some), items, k)
        return
    is_seen = PosteriorFolder(scratch).is_seen(client)
    model = (
        there.folder
        if there is not None and PosteriorFolder(there.folder).is_seen(client)
        else None
    )
    given = client.submit(identity, items, pure=False)
    waiting = [
        client.submit(
            _part_there,
            some_of(ranker, some) if model is None else (model, some),
            given,
            k,
            (scratch, number) if is_seen else None,
            pure=False,
        )
        for number, some in enumerate(places)
    ]
    try:
        for number, future in enumerate(waiting):
            yield future.result()
            release(waiting[number : number + 1])
    finally:
        release([*waiting, given])


def _part_there(
    whose: Any, items: dict[Any, Any], k: int, where: tuple[Path, int] | None
) -> pa.Table | None:
    """Rank for some people on a worker, which writes the part if it is told where."""
    if isinstance(whose, tuple):
        folder, some = whose
        whose = some_of(load(folder), some)
    table = _ranked(whose, items, k)
    if where is None:
        return table
    _write(table, *where)
    return None


def _ranked(ranker: Any, items: dict[Any, Any], k: int) -> pa.Table:
    people: list[Any] = []
    ranks: list[int] = []
    best: list[Any] = []
    scores: list[float] = []
    grades: list[Any] = []
    for one in ranker.rank_all(items, k=k):
        people += [one.user] * len(one)
        ranks += range(1, len(one) + 1)
        best += one.items.tolist()
        scores += one.scores.tolist()
        grades += [] if one.expected is None else one.expected.tolist()
    columns = {"user": as_arrow(people), "rank": pa.array(ranks, pa.int64())}
    columns |= {"item": as_arrow(best), "score": pa.array(scores, pa.float64())}
    return pa.table(columns | ({"expected": pa.array(grades)} if grades else {}))


def _write(table: pa.Table, folder: Path, number: int) -> None:
    content = io.BytesIO()
    pq.write_table(table, content)
    write_whole(folder / f"part-{number:05d}.parquet", content.getvalue())


def _refuse_other(target: Path) -> None:
    if not target.is_dir():
        return
    other = [one.name for one in target.iterdir() if not one.match("part-*.parquet")]
    if other:
        raise FileExistsError(
            f"{target} is a folder with other files ({listing(sorted(other))}): name another one "
            "for the rankings."
        )


def _put_in_place(scratch: Path, target: Path) -> None:
    """Give a complete folder its name; the one before is there until then."""
    if not target.exists():
        scratch.rename(target)
        return
    before = scratch.with_name(f"{scratch.name}.before")
    target.rename(before)
    scratch.rename(target)
    shutil.rmtree(before)
