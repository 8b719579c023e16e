"""Schedulers, workers and clients that are killed: what is learned is the same all the same."""

import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from likeminds import HierarchicalRanker, ThreeLevelRanker, make_schools
from likeminds.solvers.newton_three_level import FastSolver
from sharded import QUIET, same, spread

pytestmark = [pytest.mark.slow, *QUIET]

PROGRAMS = "distributed.cli"
QUIETLY = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
SIZES = {"n_users": 25, "n_labels": 8, "n_items": 15, "n_features": 3}
SAID = SIZES | {"n_schools": 2, "contested": 0.6, "random_state": 0}
GIVEN = {"n_groups": 1, "item_effects": False, "tol": 1e-3}

# A client of its own, which is killed in the middle of a fit.
DYING = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from distributed import Client
from sharded import spread
from likeminds import HierarchicalRanker, make_schools

def die(step, value, residual):
    if step == 2:
        os.kill(os.getpid(), signal.SIGKILL)

said = make_schools(**{SAID!r}).annotations
shards = spread(said, Client(sys.argv[1]), n_shards=2).checkpointed(sys.argv[2])
HierarchicalRanker(**{GIVEN!r}, callback=die).fit(shards)
"""


class Programs:
    """A scheduler and workers, each a program of its own; those that were killed start again."""

    def __init__(self, folder):
        self.folder, self.scheduler, self.workers, self.n_started = folder, None, [], 0

    @contextmanager
    def client(self, n_workers):
        """Connect to so many workers."""
        from distributed import Client

        if self.scheduler is None or self.scheduler.poll() is not None:
            self.end()
            self.n_started += 1
            self.scheduler = self._start("scheduler", "--port", "0")
        self.workers = [one for one in self.workers if one.poll() is None]
        given = ["--no-nanny", "--nthreads", "2", "--local-directory", str(self.folder)]
        self.workers += [
            self._start("worker", *given) for _ in range(n_workers - len(self.workers))
        ]
        with Client(scheduler_file=self._file, timeout=60) as client:
            client.wait_for_workers(n_workers)
            yield client

    def end(self):
        for one in [self.scheduler, *self.workers]:
            if one is not None:
                one.kill()
                one.wait()

    @property
    def _file(self):
        return str(self.folder / f"scheduler-{self.n_started}.json")

    def _start(self, name, *given):
        here = ["--scheduler-file", self._file, "--no-dashboard", "--host", "127.0.0.1"]
        command = [sys.executable, "-m", f"{PROGRAMS}.dask_{name}", *given, *here]
        return subprocess.Popen(command, **QUIETLY)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    found = Programs(tmp_path_factory.mktemp("programs"))
    yield found
    found.end()


@pytest.fixture(scope="module")
def said():
    return make_schools(**SAID).annotations


@pytest.fixture(scope="module")
def fitted(said):
    return HierarchicalRanker(**GIVEN).fit(said)


def test_a_client_that_is_killed_leaves_nothing_and_is_resumed(programs, said, fitted, tmp_path):
    with programs.client(2) as client:
        address, folder = client.scheduler.address, tmp_path / "checkpoint"
        died = subprocess.run([sys.executable, "-c", DYING, address, str(folder)], check=False)
        assert died.returncode == -signal.SIGKILL
        assert list(folder.glob("visit-*.npz"))
        # The scheduler forgets what nobody else wants.
        client.run_on_scheduler(lambda dask_scheduler: None)
        assert all(not keys for keys in client.processing().values())
        shards = spread(said, client, n_shards=2).checkpointed(folder, resume=True)
        same(HierarchicalRanker(**GIVEN).fit(shards), fitted)
        assert shards.journal.replayed > 0


def test_a_worker_that_is_killed_in_the_middle_changes_nothing(programs, said):
    given = {"n_groups": 1, "n_item_factors": 0}
    with programs.client(2) as client:

        def kill(step, value, residual):
            if step == 2:
                programs.workers[1].kill()

        shards = spread(said, client, n_shards=4)
        there = HierarchicalRanker(**given, callback=kill).fit(shards)
        assert len(client.nthreads()) == 1
    here = HierarchicalRanker(**given).fit(said)
    same(there, here)
    np.testing.assert_allclose(there.item_effect_, here.item_effect_, atol=1e-6)


def test_a_worker_that_is_killed_while_three_levels_are_visited(programs, said, monkeypatch):
    monkeypatch.setattr("likeminds.rankers.statistics_rankers._MERGED_BYTES", 0)
    given = {"n_groups": 1, "group_shrinkage": 0.1, "tol": 1e-2, "solver": FastSolver(n_starts=1)}
    with programs.client(2) as client:
        killed = []

        def kill(step, value, residual):
            if step == 1:
                programs.workers[1].kill()
                killed.append(shards.traffic.visits)

        shards = spread(said, client, n_shards=4, statistics=True)
        there = ThreeLevelRanker(**given, callback=kill).fit(shards)
        assert 0 < killed[0] < shards.traffic.visits - 5
        assert len(client.nthreads()) == 1
    same(there, ThreeLevelRanker(**given).fit(said), atol=1e-9)


def test_a_scheduler_that_is_killed_is_said_and_the_fit_resumed(
    programs, client, said, fitted, tmp_path
):
    import dask

    folder = tmp_path / "checkpoint"
    soon = dask.config.set({"distributed.comm.timeouts.connect": "2s"})
    with soon, programs.client(1) as lost:
        shards = spread(said, lost, n_shards=2).checkpointed(folder)

        def kill(step, value, residual):
            if step == 2:
                programs.scheduler.kill()

        with pytest.raises(ConnectionError):
            HierarchicalRanker(**GIVEN, callback=kill).fit(shards)
    # On another cluster.
    shards = spread(said, client, n_shards=2).checkpointed(folder, resume=True)
    same(HierarchicalRanker(**GIVEN).fit(shards), fitted)
    assert shards.journal.replayed > 0
