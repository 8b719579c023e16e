"""People who stay where they are: each shard's posteriors are found there, and written there."""

import secrets
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._support.arrays import IdArray, Index
from likeminds._support.optional import require
from likeminds.cluster.site import let_go
from likeminds.data.annotations import Annotations
from likeminds.prior.settling import Settling, settle
from likeminds.rankers.some import arrays_of_people
from likeminds.rankers.voices import About
from likeminds.storage.folders import PeopleFolder, with_people_in, write_apart
from likeminds.storage.models import write_model
from likeminds.storage.people import Written, people_of, write_people

# Seconds for which those who fail wait for the others.
_PATIENCE = 60


@dataclass(frozen=True)
class KeptIn:
    """Where the people of a fit are kept.

    Attributes
    ----------
    folder : Path
        The folder of the model.
    through_client : bool, optional
        Whether people come here, shard by shard, to be written: where workers do not see the
        folder. By default it is tried out.
    """

    folder: Path
    through_client: bool | None = None

    def is_seen(self, client: Any) -> bool:
        """Say whether all workers see the folder, and what is in it."""
        if self.through_client is not None:
            return not self.through_client
        token = secrets.token_hex(8)
        probe = self.folder / f".{token}"
        probe.write_text(token)
        try:
            return all(client.run(_reads, str(probe.resolve()), token).values())
        finally:
            probe.unlink()


def settle_there(ranker: Any, tasks: Any, learned: Any, crowd: Any, folder: PeopleFolder) -> None:
    """Find everybody's posterior where they are; give the ranker people that are read from there.

    Parameters
    ----------
    ranker : HierarchicalRanker
        Which has learned the prior.
    tasks : ShardTasks
        Everybody's labels.
    learned : Learned
        What it has learned.
    crowd : Shards
        Where they are.
    folder : PeopleFolder
        Where people go.
    """
    client, is_seen = crowd.client, crowd.kept_in.is_seen(crowd.client)
    ranker._set_levels(np.zeros((0, len(ranker.crowd_.prior.mean))))
    settling = Settling.of(
        ranker.crowd_, ranker.covariance_rank, quick=learned.sampling is not None
    )
    bare = client.submit(_same, _bare(ranker), pure=False)
    answers = tasks.asked(settle, settling, learned.pulls.own)
    waiting = [
        client.submit(_settled, *given, bare, folder.file(number) if is_seen else None, pure=False)
        for number, given in enumerate(
            zip(zip(answers, crowd.census.places, strict=True), crowd.said, strict=True)
        )
    ]
    let_go(answers)
    try:
        written = []
        for number, future in enumerate(waiting):
            found = future.result()
            if not isinstance(found, Written):  # one shard at a time is here
                found = write_people(folder.file(number), *found)
            written.append(found)
            let_go(waiting[number : number + 1])
    except BaseException:
        _await(waiting[len(written) :])
        raise
    finally:
        let_go([*waiting, bare])
    _take_over(ranker, with_people_in(ranker, folder.path, written))


def refuse_to_stay(about: About, folder: PeopleFolder | None) -> None:
    """Refuse people who cannot stay on the cluster."""
    what = "who gave grades" if about.has_grades else "with covariates"
    if folder is not None and (about.has_grades or about.people is not None):
        raise ValueError(
            f"People {what} do not stay on the cluster: fit without saved_to, and save the ranker "
            "with people_per_file=."
        )


def put_away(ranker: Any, folder: PeopleFolder, n_files: int) -> None:
    """Write the people of a ranker that was solved here; it reads them from there from now on."""
    stored = write_apart(ranker, folder, -(-len(ranker.users_) // n_files))
    finish(stored, folder)
    _take_over(ranker, stored)


def finish(ranker: Any, folder: PeopleFolder) -> None:
    """Write the model's own file, last; a function that watched the fit has no place in it."""
    bare = _bare(ranker)
    write_model(bare, folder.main, people=people_of(bare))
    ranker._read_from = bare._read_from


def _await(futures: list[Any]) -> None:
    """Let tasks that have begun come to their end, so that what they write can be cleared up."""
    wait = require("distributed", "A crowd on a cluster", "dask").wait
    with suppress(TimeoutError):
        wait(futures, timeout=_PATIENCE)


def _take_over(ranker: Any, stored: Any) -> None:
    for name in ("users_", *arrays_of_people(stored)):
        setattr(ranker, name, getattr(stored, name))
    ranker.__dict__.pop("statistics_", None)  # which have as much of each person as their weights


def _bare(ranker: Any) -> Any:
    """Return a copy that knows the crowd, and goes to every worker."""
    bare = copy(ranker)
    if "callback" in bare.get_params(deep=False):
        bare.callback = None
    bare.__dict__.pop("annotations_", None)
    return bare


def _settled(
    answered: tuple[list[Any], Index],
    said: Annotations,
    ranker: Any,
    file: Path | None,
) -> Written | tuple[IdArray, dict[str, NDArray[Any]]]:
    """Make people of what the blocks of a shard answered, on the worker that has them."""
    (answers, places), mine, crowd = answered, copy(ranker), ranker.crowd_
    mine.users_ = said.user_ids
    settling = Settling.of(crowd, ranker.covariance_rank)
    points, known = settling.without_labels(crowd, crowd.told(None, said.n_people))
    order = np.argsort(places)
    for people, found, inner in answers:
        rows = order[np.searchsorted(places, people, sorter=order)]
        points[rows], known[rows, : inner.shape[1]] = found, inner
    mine.information_ = known
    mine._set_levels(points)
    arrays = arrays_of_people(mine)
    return (mine.users_, arrays) if file is None else write_people(file, mine.users_, arrays)


def _reads(path: str, token: str) -> bool:
    try:
        return Path(path).read_text() == token
    except OSError:
        return False


def _same(given: Any) -> Any:
    return given
