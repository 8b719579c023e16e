"""A fitted ranker on a cluster: rankings for all users, scores, and new users."""

import os
import secrets
import shutil
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from likeminds._util.array_types import FloatArray
from likeminds._util.atomic_files import folder_for
from likeminds._util.checks import listing
from likeminds.cluster.client import Client, FutureScope, identity, release
from likeminds.cluster.in_place_posteriors import folder_on_workers, is_visible
from likeminds.data.annotations import Annotations
from likeminds.data.column_roles import as_arrow
from likeminds.data.covariates import Covariates
from likeminds.data.identifiers import lookup
from likeminds.data.sources import write_table
from likeminds.metrics.concordance import concordance_by_user
from likeminds.mixed_model.posterior import Posterior
from likeminds.rankers.capabilities import subset_users
from likeminds.rankers.item_table import ItemTableView
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.validation import find_users, joint_reading
from likeminds.storage.models import load
from likeminds.storage.user_files import user_files_of

if TYPE_CHECKING:
    from likeminds.cluster.shards import Shards

T = TypeVar("T")
# Features by item.
FeaturesByItem = dict[Hashable, FloatArray]

# The number of users per part, if the ranker's users are in memory.
_USERS_AT_ONCE = 50_000


def write_rankings(
    ranker: Ranker,
    folder: str | os.PathLike[str],
    items: Mapping[Hashable, ArrayLike] | Annotations | None = None,
    *,
    k: int = 10,
    client: Client | None = None,
) -> Path:
    """Rank items for all users, and write a folder of Parquet files atomically.

    Parameters
    ----------
    ranker : Ranker
        A fitted ranker. If its users are in files (`load`, `Shards.saved_to`), there is a part for
        each file, and one file is in memory at a time.
    folder : path
        The folder to write. An existing folder of such parts is replaced once the new one is
        complete.
    items : mapping from item to features, or Annotations, optional
        The items; by default the training items, if the ranker has kept them.
    k : int, default=10
        The number of items per user.
    client : distributed.Client, optional
        A cluster whose workers read users and write parts, if they can access the folders.

    Returns
    -------
    Path
        The folder, with columns user, rank, item and score.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow.parquet as pq
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
        raise ValueError("There are no items to rank: pass at least one.")
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
    ranker: Ranker, items: FeaturesByItem, k: int, scratch: Path, client: Client | None
) -> Iterator[pa.Table | None]:
    """Yield the table of each part; None if a worker has written it."""
    there = user_files_of(ranker)
    starts = range(0, len(ranker.users_), _USERS_AT_ONCE)
    places = [slice(start, start + _USERS_AT_ONCE) for start in starts]
    if there is not None:
        places = [there.slice_of(number) for number in range(len(there))]
    if client is None:
        for some in places:
            yield _ranked(subset_users(ranker, some), items, k)
        return
    model, is_shared = folder_on_workers(ranker, client), is_visible(scratch, client)
    session = FutureScope(client)
    given = session.make(identity, items)
    waiting = [
        session.submit(
            _part_there,
            subset_users(ranker, some) if model is None else (model, some),
            given,
            k,
            (scratch, number) if is_shared else None,
        )
        for number, some in enumerate(places)
    ]
    session.release()
    yield from session.results(waiting)


def _part_there(
    whose: Ranker | tuple[Path, slice],
    items: FeaturesByItem,
    k: int,
    where: tuple[Path, int] | None,
) -> pa.Table | None:
    """Rank for some users on a worker, which writes the part if it gets a path."""
    ranker = subset_users(load(whose[0]), whose[1]) if isinstance(whose, tuple) else whose
    table = _ranked(ranker, items, k)
    if where is None:
        return table
    _write(table, *where)
    return None


def _ranked(ranker: Ranker, items: FeaturesByItem, k: int) -> pa.Table:
    found = list(ranker.rank_all(items, k=k))
    users = [one.user for one in found for _ in range(len(one))]
    best = [item for one in found for item in one.items.tolist()]
    columns = {
        "user": as_arrow(users),
        "rank": pa.array([n for one in found for n in range(1, len(one) + 1)], pa.int64()),
        "item": as_arrow(best),
        "score": pa.array([x for one in found for x in one.scores.tolist()], pa.float64()),
    }
    grades = [x for one in found if one.expected is not None for x in one.expected.tolist()]
    return pa.table(columns | ({"expected": pa.array(grades)} if grades else {}))


def _write(table: pa.Table, folder: Path, number: int) -> None:
    write_table(table, folder / f"part-{number:05d}.parquet")


def _refuse_other(target: Path) -> None:
    if not target.is_dir():
        return
    other = [one.name for one in target.iterdir() if not one.match("part-*.parquet")]
    if other:
        raise FileExistsError(
            f"{target} is a folder with other files ({listing(sorted(other))}): pass another "
            "folder for the rankings."
        )


def _put_in_place(scratch: Path, target: Path) -> None:
    """Rename a complete folder, and only then delete the earlier one."""
    if not target.exists():
        scratch.rename(target)
        return
    before = scratch.with_name(f"{scratch.name}.before")
    target.rename(before)
    scratch.rename(target)
    shutil.rmtree(before)


def mean_auc(shards: "Shards", ranker: Ranker) -> float:
    """Return the mean over users of the AUC of their rows; each shard returns two numbers."""
    parts = list(_answers(shards, sum_of_auc, _for_each(shards, ranker)))
    return mean_of_sums([total for total, _ in parts], [count for _, count in parts])


def mean_of_sums(totals: Iterable[float], counts: Iterable[int]) -> float:
    """Return the mean of AUCs, given sums and numbers of users."""
    n_users = sum(counts)
    if not n_users:
        raise ValueError("No user has labels of both classes, so the AUC is not defined.")
    return float(sum(totals) / n_users)


def posteriors_of_new_users(shards: "Shards", ranker: Ranker) -> Posterior:
    """Return the posteriors of all users in the shards, as new users."""
    bare = shards.client.submit(identity, subset_users(ranker, slice(0, 0)), pure=False)
    answers = _answers(shards, _fold_in, [bare] * len(shards))
    release([bare])
    found = list(answers)
    order = lookup(shards.counts.user_ids, np.concatenate([one.users for one in found]), "users")
    first, ways = found[0], found[0].response_style
    if ways is not None:
        gradings = [one.response_style.grading for one in found if one.response_style is not None]
        use = np.concatenate([one.use for one in gradings])[order]
        shifts = np.concatenate([one.shifts for one in gradings])[order]
        ways = replace(ways, grading=replace(ways.grading, use=use, shifts=shifts))
    return replace(
        first,
        users=shards.counts.user_ids,
        points=np.concatenate([one.points for one in found])[order],
        variance_reduction=np.concatenate([one.variance_reduction for one in found])[order],
        response_style=ways,
    )


def _for_each(shards: "Shards", ranker: Ranker) -> Iterator[Ranker | Path]:
    """Yield a ranker of each shard's users: a future, or the ranker itself."""
    folder = folder_on_workers(ranker, shards.client)
    for places in shards.counts.places:
        known = find_users(ranker, shards.counts.user_ids[places])
        yield folder or subset_users(ranker, known[known >= 0])


def _answers(
    shards: "Shards", work: Callable[[Annotations, Any], T], rankers: Iterable[object]
) -> Iterator[T]:
    session, known = FutureScope(shards.client), shards.user_features
    users = [shards.counts.user_ids[places].tolist() for places in shards.counts.places]
    waiting = [
        session.submit(_with_covariates, work, rows, one, known and known.of(theirs))
        for rows, one, theirs in zip(shards.parts, rankers, users, strict=True)
    ]
    return session.results(waiting)


def _with_covariates(
    work: Callable[[Annotations, Any], T],
    rows: Annotations,
    ranker: Ranker | Path,
    covariates: Covariates | None,
) -> T:
    return work(rows if covariates is None else rows.with_user_features(covariates), ranker)


def sum_of_auc(rows: Annotations, whose: Ranker | Path) -> tuple[float, int]:
    """Return the sum of the users' AUCs, and the number of users with an AUC."""
    ranker = load(whose) if isinstance(whose, str | Path) else whose
    joint_reading(ranker, rows)
    scores = ranker.decision_function(rows)
    values = concordance_by_user(rows.outcomes, scores, rows.users, rows.weights).values
    there = np.isfinite(values)
    return float(values[there].sum()), int(there.sum())


def _fold_in(rows: Annotations, ranker: Ranker) -> Posterior:
    found: Posterior = ranker.newcomer(rows)
    return found
