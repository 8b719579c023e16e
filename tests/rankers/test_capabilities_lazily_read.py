"""Several threads on what is read lazily."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from crowds import make_crowd
from likeminds import AttributeModel, HierarchicalRanker, ThreeLevelRanker, load, save
from likeminds.rankers.capabilities import PendingReaders, ReadableModel
from likeminds.storage import safetensors

pytestmark = pytest.mark.filterwarnings("ignore:.*one class only:UserWarning")

N_THREADS = 8


@pytest.fixture
def impatient():
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def all_at_once(work):
    """Return what each thread gets of the same work, begun by all at the same time."""
    together = threading.Barrier(N_THREADS)

    def begin(_):
        together.wait()
        return work()

    with ThreadPoolExecutor(N_THREADS) as pool:
        return list(pool.map(begin, range(N_THREADS)))


def _noted(read, name):
    read.append(name)
    return [name]


class Thing(ReadableModel):
    def __init__(self, readers):
        self._unread = PendingReaders(readers, threading.RLock())


def test_every_attribute_is_read_once(impatient):
    names = [f"part_{n}_" for n in range(50)]
    for _ in range(5):
        read = []
        readers = {name: partial(_noted, read, name) for name in names}
        thing = Thing(readers)
        found = all_at_once(lambda thing=thing: [getattr(thing, name) for name in names])
        assert sorted(read) == sorted(names)
        for one in found:
            assert all(mine is theirs for mine, theirs in zip(one, found[0], strict=True))


def test_reading_all_while_others_read(impatient):
    names = [f"part_{n}_" for n in range(50)]
    for _ in range(10):
        thing = Thing({name: lambda name=name: [name] for name in names})
        turns = iter([thing._read_all, thing._fitted_names, thing.__getstate__] * N_THREADS)

        def work(thing=thing, turns=turns):
            next(turns)()
            return [getattr(thing, name) for name in names], thing._fitted_names()

        for values, fitted in all_at_once(work):
            assert values == [[name] for name in names]
            assert fitted == sorted(names)
    with pytest.raises(AttributeError):
        thing.nothing_  # noqa: B018


def test_what_cannot_be_read_is_an_error_every_time():
    def fail():
        raise ValueError("damaged")

    thing = Thing({"part_": fail})
    for _ in range(2):
        with pytest.raises(ValueError):
            thing.part_  # noqa: B018


@pytest.mark.parametrize(
    "ranker",
    [ThreeLevelRanker(tol=1e-2), HierarchicalRanker(1), AttributeModel(ThreeLevelRanker(tol=1e-2))],
    ids=lambda ranker: type(ranker).__name__,
)
@pytest.mark.slow
def test_many_threads_on_a_freshly_loaded_model(tmp_path, monkeypatch, impatient, ranker):
    monkeypatch.setattr(safetensors, "READ_AT_ONCE", 0)
    crowd = make_crowd(np.random.default_rng(0))
    several = isinstance(ranker, AttributeModel)
    path = save(ranker.fit({"open": crowd} if several else crowd), tmp_path / "m")
    expected = load(path).decision_function(crowd)
    for _ in range(20):
        model = load(path)
        for scores in all_at_once(lambda model=model: model.decision_function(crowd)):
            np.testing.assert_array_equal(scores, expected)
