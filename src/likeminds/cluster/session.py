"""Where a fit is at work on a cluster: what is submitted, kept, counted, and taken away again."""

import copy
import operator
import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any
from weakref import WeakSet, finalize

from numpy.typing import NDArray

from likeminds.cluster.checkpoints import Journal, read_own, write_own

# States larger than this go to the cluster once, and from worker to worker.
_LARGE = 1 << 16
# With more answers than this, workers add up those of so many shards before they come here.
_ADDED_AT_ONCE = 8


def let_go(futures: Iterable[Any]) -> None:
    """Tell the cluster that nobody wants these any more: what is not done yet is not begun."""
    for one in futures:
        if one is not None:
            one.release()


@dataclass
class Traffic:
    """What was sent to shards and came back, in bytes: of visits, and of what people answered."""

    visits: int = 0
    sent: int = 0
    returned: int = 0
    asked: int = 0


class RemoteResult:
    """What the people of some shards keep after a visit; it goes when nobody holds on to it."""

    def __init__(
        self, site: "ClusterSession", visit: int, n_shards: int, futures: list[Any] | None
    ) -> None:
        self.site, self.visit, self.n_shards, self.futures = site, visit, n_shards, futures
        self.is_written = futures is None
        finalize(self, site.journal.forget, visit, n_shards).atexit = False

    @property
    def _files(self) -> list[str]:
        return [self.site.journal.own_file(self.visit, n) for n in range(self.n_shards)]

    def of_shards(self) -> list[Any]:
        """Return what each shard keeps; of a visit before this fit, from the checkpoint."""
        if self.futures is None:
            files = [self.site.journal.own_file(self.visit, n) for n in range(self.n_shards)]
            found = [
                self.site.submit(read_own, one) if Path(one).exists() else None for one in files
            ]
            self.futures = found
        return self.futures

    def write(self) -> None:
        """Let workers write it down."""
        if self.is_written or self.futures is None:
            return
        self.site.gathered(
            self.site.submit(write_own, one, file)
            for one, file in zip(self.futures, self._files, strict=True)
        )
        self.is_written = True


@dataclass
class ClusterSession:
    """A fit on a cluster.

    Attributes
    ----------
    client : distributed.Client
        The cluster.
    journal : Journal
        Remembers the answers of visits.
    traffic : Traffic
        Counts.
    tell : callable, optional
        Called as ``tell(what, done, total)`` as shards answer.
    visits : int
        How many visits there were, replayed ones included.
    """

    client: Any
    journal: Journal
    traffic: Traffic
    tell: Callable[[str, int, int], None] | None = None
    visits: int = 0
    _kept: "WeakSet[RemoteResult]" = field(default_factory=WeakSet)
    _sent: dict[tuple[int, int], tuple[Any, list[Any]]] = field(default_factory=dict)
    _made: list[Any] = field(default_factory=list)

    def submit(self, work: Any, *given: Any) -> Any:
        """Have something done on the cluster, anew each time."""
        return self.client.submit(work, *given, pure=False)

    def making(self, work: Any, *given: Any) -> Any:
        """Have something made that stays on the cluster until the fit is released."""
        self._made.append(self.submit(work, *given))
        return self._made[-1]

    def gathered(self, futures: Iterable[Any]) -> list[Any]:
        """Return results, and let go of them."""
        waiting = list(futures)
        try:
            with self.in_reach():
                return list(self.client.gather(waiting))
        finally:
            let_go(waiting)

    @contextmanager
    def in_reach(self) -> Iterator[None]:
        """Say in a sentence that the scheduler was lost, and how to go on."""
        try:
            yield
        except CancelledError as error:
            written = self.journal.folder
            how = (
                "with a checkpoint, the same fit could go on from there"
                if written is None
                else (f"start the same fit again with resume, and it goes on from {written}")
            )
            raise ConnectionError(
                f"The cluster's scheduler was lost at visit {self.visits}: {how}."
            ) from error

    def keep(self, n_shards: int, futures: list[Any] | None = None) -> RemoteResult:
        """Return what is kept after this visit."""
        kept = RemoteResult(self, self.visits, n_shards, futures)
        self._kept.add(kept)
        return kept

    def write_all(self) -> None:
        """Let workers write all that is kept at present."""
        for kept in sorted(self._kept, key=lambda one: one.visit):
            kept.write()

    def send(self, given: Any) -> Any:
        """Return something small as it is, and the future of something large."""
        return given if size_of(given) < _LARGE else self.submit(identity, given)

    def sent(self, array: NDArray[Any], pieces: list[NDArray[Any]], key: int) -> list[Any]:
        """Return the futures of the pieces of an array, one for each shard; they are sent once."""
        known = self._sent.get((id(array), key))
        if known is None:
            known = array, [self.submit(identity, piece) for piece in pieces]
            self._sent[id(array), key] = known
            self.traffic.sent += sum(piece.nbytes for piece in pieces)
        return known[1]

    def total(self, visited: list[Any]) -> Any:
        """Return the sum of answers, in the order of shards."""
        made = answers = [self.submit(_answer, one) for one in visited]
        try:
            while len(answers) > _ADDED_AT_ONCE:
                starts = range(0, len(answers), _ADDED_AT_ONCE)
                some = [answers[start : start + _ADDED_AT_ONCE] for start in starts]
                answers = [self.submit(add_up, one) for one in some]
                made = made + answers
            return add_up(list(self._told(answers)))
        finally:
            let_go(made)

    def _told(self, answers: list[Any]) -> Iterator[Any]:
        """Yield results in their order, and tell how many there are."""
        for done, one in enumerate(answers, start=1):
            with self.in_reach():
                yield one.result()
            if self.tell is not None:
                self.tell(f"visit {self.visits}", done, len(answers))

    def release(self) -> None:
        """Take all that is kept off the cluster."""
        for kept in list(self._kept):
            let_go(kept.futures or [])
        for _, futures in self._sent.values():
            let_go(futures)
        self._sent.clear()
        let_go(self._made)
        self._made.clear()


def size_of(given: Any) -> int:
    """Return how many bytes something takes that is sent."""
    arrays: list[Any] = []
    rest = pickle.dumps(given, protocol=5, buffer_callback=arrays.append)
    return len(rest) + sum(int(one.raw().nbytes) for one in arrays)


def identity(given: Any) -> Any:
    """Return what is given: so it gets to the cluster once, and all tasks share it."""
    return given


def _answer(visited: tuple[Any, Any]) -> Any:
    return visited[0]


def add_up(answers: list[Any]) -> Any:
    """Return the sum of several answers, none of which is changed."""
    return reduce(operator.iadd, answers[1:], copy.deepcopy(answers[0]))
