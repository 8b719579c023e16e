"""Schedulers, workers and clients that are killed: what is learned is the same all the same."""

import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from likeminds import HierarchicalRanker, make_schools
from sharded import same, spread

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PROGRAMS = "distributed.cli"
QUIETLY = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
SIZES = {"n_people": 25, "n_labels": 8, "n_items": 15, "n_features": 3}
SAID = SIZES | {"n_schools": 2, "contested": 0.6, "random_state": 0}
GIVEN = {"n_groups": 1, "item_effects": False}

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


@contextmanager
def real_cluster(folder, n_workers=1):
    """Start a scheduler and workers as programs of their own; end them, whatever happens."""
    from distributed import Client

    folder.mkdir()
    file = str(folder / "scheduler.json")
    here = ["--scheduler-file", file, "--no-dashboard", "--host", "127.0.0.1"]
    worker = ["--no-nanny", "--nthreads", "2", "--local-directory", str(folder)]
    begun = [
        subprocess.Popen([sys.executable, "-m", f"{PROGRAMS}.dask_{name}", *more, *here], **QUIETLY)
        for name, more in [("scheduler", ["--port", "0"]), *[("worker", worker)] * n_workers]
    ]
    try:
        with Client(scheduler_file=file, timeout=60) as client:
            client.wait_for_workers(n_workers)
            yield client, begun
    finally:
        for one in begun:
            one.kill()
            one.wait()


@pytest.fixture(scope="module")
def said():
    return make_schools(**SAID).annotations


@pytest.fixture(scope="module")
def fitted(said):
    return HierarchicalRanker(**GIVEN).fit(said)


def test_a_client_that_is_killed_leaves_nothing_and_is_resumed(said, fitted, tmp_path):
    with real_cluster(tmp_path / "cluster") as (client, _):
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


def test_a_scheduler_that_is_killed_is_said_and_the_fit_resumed(said, fitted, tmp_path):
    import dask

    folder = tmp_path / "checkpoint"
    soon = dask.config.set({"distributed.comm.timeouts.connect": "2s"})
    with soon, real_cluster(tmp_path / "first") as (client, begun):
        shards = spread(said, client, n_shards=2).checkpointed(folder)

        def kill(step, value, residual):
            if step == 2:
                begun[0].kill()

        with pytest.raises(ConnectionError, match=r"scheduler was lost .* again with resume"):
            HierarchicalRanker(**GIVEN, callback=kill).fit(shards)
    with real_cluster(tmp_path / "second") as (client, _):
        shards = spread(said, client, n_shards=2).checkpointed(folder, resume=True)
        same(HierarchicalRanker(**GIVEN).fit(shards), fitted)
        assert shards.journal.replayed > 0


def test_a_worker_that_is_killed_in_the_middle_changes_nothing(said, tmp_path):
    given = {"n_groups": 1, "n_item_factors": 0}
    with real_cluster(tmp_path / "cluster", n_workers=2) as (client, begun):

        def kill(step, value, residual):
            if step == 2:
                begun[1].kill()

        shards = spread(said, client, n_shards=4)
        there = HierarchicalRanker(**given, callback=kill).fit(shards)
        assert len(client.nthreads()) == 1
    here = HierarchicalRanker(**given).fit(said)
    same(there, here)
    np.testing.assert_allclose(there.item_effect_, here.item_effect_, atol=1e-6)
