import json
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import likeminds.io
from crowds import make_crowd
from likeminds import Annotations, ThreeLevelRanker, load, save
from likeminds.io import ModelFileError
from likeminds.solvers import PaperSolver

pytestmark = pytest.mark.filterwarnings("ignore:.*one class only:UserWarning")


@pytest.fixture(scope="module")
def ranker():
    return ThreeLevelRanker(0.1, 1.0, np.float64(0.5), tol=1e-2).fit(
        make_crowd(np.random.default_rng(0))
    )


@pytest.fixture
def path(tmp_path, ranker):
    return save(ranker, tmp_path / "crowd.likeminds")


def test_round_trip(path, ranker):
    again = load(path)
    crowd = make_crowd(np.random.default_rng(1))
    assert again.get_params() == ranker.get_params()
    np.testing.assert_array_equal(again.users_, ranker.users_)
    for name in ("coef_", "consensus_", "group_", "personal_", "raw_group_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(ranker, name))
    assert again.converged_ is ranker.converged_
    assert again.objective_ == ranker.objective_
    assert again.feature_names_.tolist() == ranker.feature_names_.tolist()
    np.testing.assert_array_equal(again.decision_function(crowd), ranker.decision_function(crowd))


@pytest.mark.parametrize(
    "ids",
    [[1, 1, 2, 2], [(1, "a"), (1, "a"), "b", "b"], [0.5, 0.5, 1.5, 1.5], ["é"] * 2 + ["x"] * 2],
)
def test_ids_come_back_as_they_were(tmp_path, ids):
    said = Annotations(users=ids, items=None, labels=[0, 1, 0, 1], features=np.eye(4))
    fitted = ThreeLevelRanker(tol=1e-2).fit(said)
    again = load(save(fitted, tmp_path / "m"))
    assert again.users_.tolist() == fitted.users_.tolist()
    assert [type(i) for i in again.users_.tolist()] == [type(i) for i in fitted.users_.tolist()]
    np.testing.assert_array_equal(again.decision_function(said), fitted.decision_function(said))


def test_refuses_what_cannot_be_saved(tmp_path, ranker):
    with pytest.raises(ValueError, match="not fitted yet"):
        save(ThreeLevelRanker(), tmp_path / "m")
    with pytest.raises(TypeError, match="Only rankers"):
        save(PaperSolver(), tmp_path / "m")
    said = Annotations(users=[0, 0], items=None, labels=[0, 1], features=np.eye(2))
    custom = ThreeLevelRanker(solver=PaperSolver(), tol=1e-2).fit(said)
    with pytest.raises(TypeError, match="parameter solver"):
        save(custom, tmp_path / "m")
    odd = Annotations(users=[frozenset("a")] * 2, items=None, labels=[0, 1], features=np.eye(2))
    with pytest.raises(TypeError, match="users_ holds ids"):
        save(ThreeLevelRanker(tol=1e-2).fit(odd), tmp_path / "m")
    with pytest.raises(FileNotFoundError, match="no folder"):
        save(ranker, tmp_path / "no" / "such" / "folder" / "m")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        save(ranker, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_refuses_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="no model at"):
        load(tmp_path / "nothing")


@pytest.mark.parametrize("keep", [0, 4, 100, 0.5, 0.99])
def test_refuses_truncated_files(path, keep):
    content = path.read_bytes()
    path.write_bytes(content[: int(keep if keep >= 1 else keep * len(content))])
    with pytest.raises(ModelFileError, match="not a complete likeminds model"):
        load(path)


def test_refuses_changed_files(path):
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="checksum"):
        load(path)


def test_refuses_other_files(path, tmp_path):
    path.write_text("hello")
    with pytest.raises(ModelFileError, match="not a complete"):
        load(path)
    save_file({"a": np.zeros(2)}, path)
    with pytest.raises(ModelFileError, match="not a complete"):
        load(path)


@pytest.mark.parametrize(
    ("change", "match"), [({"format": 99}, "Upgrade"), ({"ranker": "os.system"}, "unknown kind")]
)
def test_refuses_newer_formats_and_unknown_rankers(path, change, match):
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        card = json.loads(file.metadata()["likeminds"])
    save_file(load_file(path), path, metadata={"likeminds": json.dumps(card | change)})
    with pytest.raises(ModelFileError, match=match):
        load(path)


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_save_leaves_the_old_file_alone(path, ranker, monkeypatch, failure):
    before = path.read_bytes()

    def fail(descriptor):
        raise failure

    monkeypatch.setattr(likeminds.io.os, "fsync", fail)
    with pytest.raises(type(failure)):
        save(ranker, path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_an_error(tmp_path, ranker, monkeypatch):
    monkeypatch.setattr(likeminds.io.os, "fdopen", open_full_disk)
    with pytest.raises(OSError, match="No space left on device"):
        save(ranker, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def open_full_disk(descriptor, mode):
    os.close(descriptor)
    return Path("/dev/full").open(mode)
