"""``likeminds fit --dask``: the same model from a cluster, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from likeminds import HierarchicalRanker, ThreeLevelRanker, load, make_schools
from likeminds.cli.main import app

Client = pytest.importorskip("distributed", reason="a cluster needs likeminds[dask]").Client

LIKEMINDS = [sys.executable, "-c", "from likeminds.cli import main; main()"]


@pytest.fixture(scope="module")
def said():
    return make_schools(20, 8, 12, 3, n_schools=2, contested=0.6, random_state=0).annotations


@pytest.fixture(scope="module")
def folder(said, tmp_path_factory):
    place = tmp_path_factory.mktemp("votes")
    (place / "votes").mkdir()
    columns = {"user": said.users.tolist(), "item": said.items.tolist(), "label": said.labels}
    whole = pa.table(columns)
    for number in range(2):
        pq.write_table(whole[number * 80 : (number + 1) * 80], place / f"votes/{number}.parquet")
    table = {"item": said.item_ids.tolist()}
    table |= dict(zip(said.feature_names, said.features.T, strict=True))
    pq.write_table(pa.table(table), place / "items.parquet")
    return place


def fit(folder, *more, out="crowd.likeminds"):
    given = ["--annotations", f"{folder}/votes", "--features", f"{folder}/items.parquet"]
    return ["fit", *given, "--out", f"{folder}/{out}", *more]


def left_of(group):
    """Return the processes of a group that are still there half a minute after its first ended."""
    end = time.monotonic() + 30
    while (found := running(group)) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def running(group):
    """Return the processes of a group that have not ended."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, pgid = place.read_text().rpartition(")")[2].split()[:3]
            found += [place.parent.name] if int(pgid) == group and state != "Z" else []
    return found


@pytest.mark.slow
def test_a_fit_on_workers_of_this_machine_leaves_a_model_and_nothing_else(said, folder):
    begun = subprocess.run(
        [*LIKEMINDS, *fit(folder, "--dask", "local:2", "--json")],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    assert begun.returncode == 0, begun.stderr
    assert json.loads(begun.stdout)["card"]["users"] == 20
    model, here = load(folder / "crowd.likeminds"), HierarchicalRanker().fit(said)
    np.testing.assert_allclose(model.coef_, here.coef_, atol=1e-6)
    np.testing.assert_allclose(model.item_effect_, here.item_effect_, atol=1e-6)


@pytest.mark.seconds
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_rankers_that_need_no_rows_are_fitted_to_statistics(said, folder):
    given = {"n_workers": 1, "threads_per_worker": 2, "processes": False}
    with Client(**given, dashboard_address=":0", set_as_default=False) as client:
        for name, told in (("ThreeLevelRanker", True), ("RidgeToConsensus", False)):
            asked = ["--dask", client.scheduler.address, "--ranker", name, "--folds", "2"]
            found = CliRunner().invoke(app, fit(folder, *asked, out=f"{name}.likeminds"))
            assert found.exit_code == 0, found.output
            assert ("shards of statistics" in " ".join(found.output.split())) == told
    model, here = load(folder / "ThreeLevelRanker.likeminds"), ThreeLevelRanker().fit(said)
    np.testing.assert_allclose(model.coef_, here.coef_, atol=1e-6)


@pytest.mark.slow
def test_an_interrupt_ends_all_processes_and_says_how_to_go_on(folder):
    checkpoint = folder / "interrupted"
    given = fit(
        folder, "--dask", "local:2", "--checkpoint", str(checkpoint), out="stopped.likeminds"
    )
    begun = subprocess.Popen(
        [*LIKEMINDS, *given], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        end = time.monotonic() + 120
        while len(list(checkpoint.glob("visit-*"))) < 5 and time.monotonic() < end:
            time.sleep(0.05)
        os.killpg(begun.pid, signal.SIGINT)
        _, said = begun.communicate(timeout=120)
        left = left_of(begun.pid)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(begun.pid, signal.SIGKILL)
    assert not left
    assert b"Traceback" not in said
    assert b"Interrupted" in said
    assert b"--resume to resume from" in said
    assert not (folder / "stopped.likeminds").exists()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--dask", "local:none"], "local:N takes a number"),
        pytest.param(
            ["--dask", "tcp://127.0.0.1:9"],
            "There is no scheduler at tcp://127.0.0.1:9",
            marks=pytest.mark.slow,  # it is waited for
        ),
        (["--dask", "local:1", "--resume"], "--checkpoint DIR"),
        (["--resume"], "with --dask"),
        (["--dask", "local:1", "--memory", "1GB"], "not both"),
        (["--dask", "local:1", "--holdout", "0.2"], "leave out --holdout"),
    ],
)
def test_what_does_not_work_is_one_sentence(folder, more, told):
    found = CliRunner().invoke(app, fit(folder, *more))
    assert found.exit_code != 0
    assert told in " ".join(found.output.split())
    assert "Traceback" not in found.output


def test_a_folder_without_parquet_files_is_refused(folder, tmp_path):
    given = ["fit", "--annotations", str(tmp_path), "--dask", "local:1", "--out", f"{tmp_path}/m"]
    found = CliRunner().invoke(app, given)
    assert found.exit_code == 2
    assert "no Parquet" in " ".join(found.output.split())
