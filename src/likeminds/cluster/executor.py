"""The executor of passes over users on a Dask cluster, and its traffic."""

import copy
import operator
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, reduce
from operator import itemgetter, methodcaller
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet, finalize

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import Bool, Index
from likeminds._util.atomic_files import write_whole
from likeminds._util.map_reduce import Executor, Own, in_this_thread, one_blas_thread
from likeminds._util.per_user_arrays import SubsetRows, restore_user_arrays, split_user_arrays
from likeminds.cluster.checkpoints import Journal, from_bytes, to_bytes
from likeminds.cluster.client import Future, FutureScope, identity, release
from likeminds.mixed_model.responses import InMemoryResponses
from likeminds.rankers.training_data import users_in

B = TypeVar("B")
C = TypeVar("C")
S = TypeVar("S")
R = TypeVar("R")

_add: Callable[[Any, Any], Any] = operator.iadd
# Operations of an executor.
_MAP_REDUCE, _MAP, _DERIVE = "map_reduce", "map", "derive"
# States larger than this go to the cluster once, and from worker to worker.
_LARGE = 1 << 16
# With more parts than this, workers first add up the answers of that many parts.
_ADDED_AT_ONCE = 8
# The largest number of users whose responses may be brought to this process.
_FEW = 2000


@dataclass
class Traffic:
    """Passes over the users of a fit, and the bytes sent, returned as sums, and collected."""

    visits: int = 0
    sent: int = 0
    returned: int = 0
    asked: int = 0


class Carry:
    """States of blocks for the next pass, on the cluster or in a checkpoint."""

    def __init__(
        self, session: "ClusterSession", n_parts: int, futures: "list[Any] | None"
    ) -> None:
        self.session, self.futures = session, futures
        self._files = session.journal.own_files(session.visits, n_parts)
        finalize(self, session.journal.forget, session.visits, n_parts).atexit = False
        session._carries.add(self)

    def of_parts(self) -> list[Future | None]:
        """Return the state of each part; those of an earlier process come from the checkpoint."""
        if self.futures is None:
            self.futures = [
                self.session.submit(_read_own, one) if one.exists() else None for one in self._files
            ]
        return self.futures


@dataclass
class ClusterSession(FutureScope):
    """A fit on a cluster; ``visits`` counts passes over the users, replayed ones included."""

    _: KW_ONLY
    journal: Journal
    traffic: Traffic
    visits: int = 0
    _carries: "WeakSet[Carry]" = field(default_factory=WeakSet)
    _sent: dict[tuple[int, int], tuple[Any, list[Future]]] = field(default_factory=dict)

    def results(
        self, futures: Iterable[Future], what: str | None = None, *, direct: bool = False
    ) -> Iterator[Any]:
        """Yield results: see `FutureScope`, and `in_reach`."""
        with self.in_reach():
            yield from super().results(futures, what, direct=direct)

    @contextmanager
    def in_reach(self) -> Iterator[None]:
        """Raise a ConnectionError that explains how to resume, if the scheduler is lost."""
        try:
            yield
        except CancelledError as error:
            folder = self.journal.folder
            how = (
                "start the fit again, with a checkpoint to resume from the next time"
                if folder is None
                else f"start the same fit again with resume, to continue from {folder}"
            )
            raise ConnectionError(
                f"The cluster's scheduler was lost at visit {self.visits}: {how}."
            ) from error

    def sent(self, array: NDArray[Any], pieces: list[NDArray[Any]], key: int) -> list[Future]:
        """Return the futures of an array's pieces, one for each part; each is sent once."""
        known = self._sent.get((id(array), key))
        if known is None:
            known = array, [self.submit(identity, piece) for piece in pieces]
            self._sent[id(array), key] = known
            self.traffic.sent += sum(piece.nbytes for piece in pieces)
        return known[1]

    def total(self, visited: list[Future]) -> Any:
        """Return the sum of answers, in the order of parts."""
        made = answers = [self.submit(itemgetter(0), one) for one in visited]
        try:
            while len(answers) > _ADDED_AT_ONCE:
                starts = range(0, len(answers), _ADDED_AT_ONCE)
                some = [answers[start : start + _ADDED_AT_ONCE] for start in starts]
                answers = [self.submit(add_up, one) for one in some]
                made = made + answers
            return add_up(list(self.results(answers, f"visit {self.visits}")))
        finally:
            release(made)

    def release(self) -> None:
        """Release all futures of the fit."""
        for carry in list(self._carries):
            release(carry.futures or [])
        for _, futures in self._sent.values():
            release(futures)
        self._sent.clear()
        super().release()


@dataclass
class DaskExecutor(Executor[B]):
    """Users on a cluster: each part is the future of an executor on a worker.

    Attributes
    ----------
    session : ClusterSession
        The fit on the cluster.
    parts : list of futures
        The parts; the cluster computes one again when its worker is lost.
    users : list of arrays
        The positions of each part's users among all users.
    here : callable, optional
        Makes the blocks of some users, by their positions, in this process.
    """

    session: ClusterSession
    parts: list[Future]
    users: list[Index]
    here: Callable[[Index], Any] | None = None

    @property
    def n_users(self) -> int:
        """The number of users."""
        return sum(map(len, self.users))

    @cached_property
    def _positions(self) -> Index:
        return np.arange(max(int(one.max()) for one in self.users) + 1)

    def map_reduce(
        self,
        work: Callable[[B, S, Any], tuple[R, Any]],
        state: S,
        own: Own = None,
        *,
        start: R | None = None,
    ) -> tuple[R, Own]:
        """Return the sum of the parts' answers, in their order, and their new states."""
        session, given = self.session, (work, state)
        session.visits += 1
        request = (work, self.n_users, state)
        found, visited = session.journal.replay(request), None
        if found is None:
            files = session.journal.own_files(session.visits, len(self.parts))
            visited = self._submitted(_MAP_REDUCE, own, given, files)
            try:
                found = session.total(visited)
            except BaseException:
                release(visited)
                raise
            session.traffic.visits += 1
            session.traffic.returned += len(self.parts) * size_of(found)
            session.journal.note(request, found)
        carry = Carry(session, len(self.parts), visited)
        return (found if start is None else _add(start, found)), carry

    def submit_map(self, work: Callable[[B, S, Any], R], state: S, own: Own = None) -> list[Future]:
        """Return the answers of each part's blocks as futures, which stay on the workers."""
        return self._submitted(_MAP, own, (work, state))

    def map(self, work: Callable[[B, S, Any], R], state: S, own: Own = None) -> Iterator[R]:
        """Yield the answer of each block, part by part."""
        for answers in self.session.results(self.submit_map(work, state, own), direct=True):
            self.session.traffic.asked += size_of(answers)
            yield from answers

    def derive(
        self,
        work: Callable[[B, S], Executor[C]],
        state: S,
        *,
        consume: bool = False,
        here: Callable[[Index], Executor[C]] | None = None,
    ) -> "DaskExecutor[C]":
        """Return the results of ``work`` on the block of each part, which stay on its worker."""
        session = self.session
        parts = self._submitted(_DERIVE, None, (work, state))
        session._made += parts
        if consume:  # Dask computes results again that are lost with a worker
            release(self.parts)
        users = session.results(session.submit(_positions_of, one) for one in parts)
        both = zip(users, self.users, strict=True)
        known = [before if found is None else found for found, before in both]
        return DaskExecutor(session, parts, known, here)

    def of_users(self, chosen: Bool) -> Any:
        """Return the blocks of some users; those of a few are in this process."""
        wanted = np.sort(np.concatenate(self.users))[chosen]
        if len(wanted) <= _FEW and self.here is not None:
            return self.here(wanted)
        return self._subset(wanted)[0]

    def collected(self) -> Any:
        """Return the blocks of all users in this process."""
        assert self.here is not None
        return self.here(np.sort(np.concatenate(self.users)))

    def submit_map_of_users(
        self, work: Callable[[B, S, Any], R], state: S, wanted: Index
    ) -> list[Future | None]:
        """Return the answers of some users' blocks as futures; None for parts without any."""
        some, there = self._subset(wanted)
        found: list[Future | None] = [None] * len(self.parts)
        for number, future in zip(there, some.submit_map(work, state), strict=True):
            found[number] = future
        return found

    def _subset(self, wanted: Index) -> "tuple[DaskExecutor[B], list[int]]":
        """Return some of the users on their workers, and their parts."""
        masks = [np.isin(theirs, wanted) for theirs in self.users]
        there = [number for number, mask in enumerate(masks) if mask.any()]
        parts = [
            self.session.make(methodcaller("of_users", masks[n]), self.parts[n]) for n in there
        ]
        users = [self.users[n][masks[n]] for n in there]
        return DaskExecutor(self.session, parts, users, self.here), there

    def _submitted(
        self, method: str, own: Own, given: tuple[Any, Any], files: Sequence[Path | None] = ()
    ) -> list[Future]:
        arrays: list[Any] = []
        given = given[0], split_user_arrays(given[1], arrays)
        self.session.traffic.sent += len(self.parts) * size_of(given)
        if arrays:  # parts index it by positions
            arrays.insert(0, self._positions)
        pieces = [self._pieces(array) for array in arrays]
        before = [None] * len(self.parts) if own is None else own.of_parts()
        sent = self.session.submit(identity, given) if size_of(given) >= _LARGE else None
        submitted = [
            self.session.submit(
                _run, method, part, mine, file, given if sent is None else sent, *theirs
            )
            for part, mine, file, *theirs in zip(
                self.parts, before, files or [None] * len(before), *pieces, strict=True
            )
        ]
        release([sent])
        return submitted

    def _pieces(self, array: NDArray[Any]) -> list[Future]:
        return self.session.sent(array, [array[np.sort(one)] for one in self.users], id(self))


def _run(  # noqa: PLR0917 - what a worker needs for a part
    method: str,
    part: Executor[Any],
    before: tuple[object, object] | None,
    file: Path | None,
    given: tuple[Callable[..., Any], object],
    positions: Index | None = None,
    *pieces: NDArray[Any],
) -> Any:
    """Run a function on a part, with its users' rows of the arrays in the state.

    It writes the states of the blocks to ``file``, if given.
    """
    work, state = given
    if positions is not None:
        state = restore_user_arrays(state, [SubsetRows(piece, positions) for piece in pieces])
    with in_this_thread(), one_blas_thread():
        if method == _DERIVE:
            return part.derive(work, state)
        carried = before and before[1]
        if method == _MAP:
            return list(part.map(work, state, carried))
        found = part.map_reduce(work, state, carried)
    if file is not None:
        write_whole(file, to_bytes(found[1]))
    return found


def _read_own(file: Path) -> tuple[None, Any]:
    """Return the states of blocks from a file, in the form of `_run`."""
    return None, from_bytes(file.read_bytes())[0]


def _positions_of(part: Executor[Any]) -> Index | None:
    return users_in(part) if isinstance(part, InMemoryResponses) else None


def size_of(given: object) -> int:
    """Return the size of a sent object in bytes."""
    arrays: list[Any] = []
    rest = pickle.dumps(given, protocol=5, buffer_callback=arrays.append)
    return len(rest) + sum(int(one.raw().nbytes) for one in arrays)


def add_up(answers: list[Any]) -> Any:
    """Return the sum of several answers without changing them; None is a missing answer."""
    some = [one for one in answers if one is not None]
    return reduce(operator.iadd, some[1:], copy.deepcopy(some[0])) if some else None
