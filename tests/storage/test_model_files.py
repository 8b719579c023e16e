"""Model files that are not what they were, saves that fail, and files of old."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import likeminds.storage.models
from likeminds import (
    Annotations,
    FileChangedError,
    ThreeLevelRanker,
    load,
    make_schools,
    read_card,
    save,
)
from likeminds.storage import safetensors
from likeminds.storage.models import ModelFileError

pytestmark = pytest.mark.filterwarnings("ignore:.*one class only:UserWarning")

DATA = Path(__file__).parents[1] / "data" / "files"


# Files that are not what they were.


def test_refuses_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


@pytest.mark.seconds
@pytest.mark.parametrize("large", [False, True])
def test_refuses_truncated_files(path, large, request):
    if large:
        request.getfixturevalue("mapped")
    content = path.read_bytes()
    for keep in range(0, len(content), 10):
        path.write_bytes(content[:keep])
        with pytest.raises(ModelFileError):
            load(path)
    path.write_bytes(content + b"\0")
    with pytest.raises(ModelFileError):
        load(path)


@pytest.mark.seconds
def test_refuses_changed_files(path):
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        for bit in (1, 32):
            changed = bytearray(content)
            changed[place] ^= bit
            path.write_bytes(changed)
            with pytest.raises(ModelFileError):
                load(path)
    changed = bytearray(content)
    changed[-3] ^= 1
    path.write_bytes(changed)
    with pytest.raises(ModelFileError):
        load(path)


def test_refuses_changed_parameters(path):
    content = path.read_bytes()
    assert content.count(b'\\"max_iter\\": 1000') == 2  # on the card, and in the model
    path.write_bytes(content.replace(b'\\"max_iter\\": 1000', b'\\"max_iter\\": 2000'))
    for reader in (load, read_card):
        with pytest.raises(ModelFileError):
            reader(path)


def test_large_files_are_checked_where_they_are_read(path, ranker, mapped):
    content = bytearray(path.read_bytes())
    content[content.find(ranker.coef_.tobytes())] ^= 1
    path.write_bytes(content)
    again = load(path)
    np.testing.assert_array_equal(again.consensus_, ranker.consensus_)
    for _ in range(2):
        with pytest.raises(ModelFileError):
            again.coef_  # noqa: B018
    with pytest.raises(ModelFileError):
        load(path, verify=True)


def test_refuses_other_files(path, tmp_path):
    path.write_text("hello")
    with pytest.raises(ModelFileError):
        load(path)
    save_file({"a": np.zeros(2)}, path)
    with pytest.raises(ModelFileError):
        load(path)
    for card in ("[]", "1", "{", '{"format": "x"}', '{"format": 0}', '{"format": true}'):
        save_file({"a": np.zeros(2)}, path, metadata={"likeminds": card})
        with pytest.raises(ModelFileError):
            load(path)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F64", "shape": [2], "data_offsets": [8, 24]},
        {"dtype": "F64", "shape": [3], "data_offsets": [0, 16]},
        {"dtype": "F64", "shape": [-2], "data_offsets": [0, 16]},
        {"dtype": "F65", "shape": [2], "data_offsets": [0, 16]},
        {"dtype": "F64", "shape": [2]},
        {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]},
        None,
    ],
)
def test_refuses_headers_that_make_no_sense(tmp_path, entry):
    header = json.dumps({"__metadata__": {"likeminds": "{}"}, "a": entry}).encode()
    path = tmp_path / "m"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(16))
    with pytest.raises(ModelFileError):
        load(path)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"format": 2}, "Fit the model again"),
        ({"format": 99}, "Upgrade"),
        ({"ranker": "os.system"}, "unknown class"),
    ],
)
def test_refuses_other_formats_and_unknown_rankers(path, change, match):
    with safe_open(path, framework="numpy") as file:
        texts = file.metadata()
    card = json.loads(texts["likeminds"]) | change
    save_file(load_file(path), path, metadata=texts | {"likeminds": json.dumps(card)})
    for reader in (load, read_card):
        with pytest.raises(ModelFileError, match=match):
            reader(path)


# Saving that fails.


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("where", ["fsync", "pieces"])
def test_a_failed_save_leaves_the_old_file_alone(path, ranker, monkeypatch, failure, where):
    before = path.read_bytes()

    def fail(descriptor):
        raise failure

    n_arrays, written = len(load_file(path)), []

    def fail_in_the_middle(array):
        # Once for the checksums, then while the arrays are written.
        written.append(len(array))
        if len(written) > n_arrays + 3:
            raise failure
        yield np.ascontiguousarray(array).tobytes()

    if where == "fsync":
        monkeypatch.setattr(likeminds.storage.models.os, "fsync", fail)
    else:
        monkeypatch.setattr(safetensors, "_pieces", fail_in_the_middle)
    with pytest.raises(type(failure)):
        save(ranker, path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert where == "fsync" or len(written) == n_arrays + 4


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_an_error(tmp_path, ranker, monkeypatch):
    monkeypatch.setattr(likeminds.storage.models.os, "fdopen", open_full_disk)
    with pytest.raises(OSError):
        save(ranker, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def open_full_disk(descriptor, mode):
    os.close(descriptor)
    return Path("/dev/full").open(mode)


def test_a_model_can_replace_the_file_it_is_read_from(path, ranker, mapped):
    again = load(path)
    save(again, path)
    np.testing.assert_array_equal(load(path).coef_, ranker.coef_)
    np.testing.assert_array_equal(again.coef_, ranker.coef_)


# Two at a time.


def test_what_others_have_put_there_meanwhile_is_not_replaced(path, ranker):
    mine, theirs = load(path), load(path)
    theirs.set_params(max_iter=77)
    save(theirs, path, if_unchanged=True)
    save(theirs, path, if_unchanged=True)  # it is their own by now
    with pytest.raises(FileChangedError):
        save(mine, path, if_unchanged=True)
    assert load(path).max_iter == 77
    save(mine, path)
    assert load(path).max_iter == 1000


# Files of earlier versions.


@pytest.fixture(scope="module")
def welcomed():
    """Weights and errors of new users, and weights after an update, as first written."""
    with np.load(DATA / "newcomers.npz") as archive:
        return {name: archive[name] for name in archive.files}


@pytest.mark.parametrize(
    "name",
    [
        "HierarchicalRanker",
        "HierarchicalRanker-auc",
        "HierarchicalRanker-choice",
        "ThreeLevelRanker",
        "ThreeLevelRankerCV",
    ],
)
def test_models_of_old_take_newcomers_and_updates_as_they_did(tmp_path, name, welcomed):
    crowd = make_schools(12, 16, 40, 6, 2, random_state=0).annotations
    if "-choice" in name:
        households = likeminds.load_electricity()
        crowd = households.of_users(households.user_ids[:10])
    old = load(DATA / f"{name}.format-3.likeminds")
    renewed = load(save(old, tmp_path / "m", with_data=True))
    for model in (old, renewed):
        new, rows, users = model.newcomer(crowd[:40]), crowd.X[:40], crowd.users[:40]
        found = {
            "coef": new.coef,
            "error": new.standard_error(rows, users),
            "single": model.newcomer(crowd.X[:9], crowd.labels[:9]).coef,
        }
        if hasattr(model, "standard_error"):
            found["known"] = model.standard_error(rows, users)
        if f"{name}/updated" in welcomed:
            found["updated"] = model.update(crowd[:16]).coef_
        assert {f"{name}/{what}" for what in found} == {
            w for w in welcomed if w.startswith(f"{name}/")
        }
        for what, value in found.items():
            # What is in the file stays as it was; a refit learns as this version does.
            close = (
                {"rtol": 0.0, "atol": 0.02} if what == "updated" else {"rtol": 1e-7, "atol": 1e-9}
            )
            np.testing.assert_allclose(value, welcomed[f"{name}/{what}"], **close)


KINDS = sorted(
    path.name.removesuffix(".format-3.likeminds") for path in DATA.glob("[A-Z]*.format-3.likeminds")
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_ranker_scores_as_when_it_was_saved(kind):
    path = DATA / f"{kind}.format-3.likeminds"
    with np.load(DATA / "scores.format-3.npz") as archive:
        expected = archive[f"{'electricity' if kind.endswith('-choice') else kind}/crowd"]
    crowd = make_schools(12, 16, 40, 6, 2, random_state=0).annotations
    if kind.endswith("-choice"):
        households = likeminds.load_electricity()
        crowd = households.of_users(households.user_ids[:10])
    model = load(path)
    np.testing.assert_allclose(model.decision_function(crowd), expected, rtol=1e-12, atol=1e-12)
    card = read_card(path)
    assert card["users"] == len(model.users_)
    if card["takes_updates"]:
        before = model.rankers_["open"] if kind == "AttributeModel" else model
        assert before.n_labels_ == len(crowd)
        model.update({"open": crowd[:16]} if kind == "AttributeModel" else crowd[:16])
        after = model.rankers_["open"] if kind == "AttributeModel" else model
        assert after.n_labels_ == len(crowd) + 16


@pytest.mark.parametrize("kind", ["labels-with-items", "three-levels", "grades"])
def test_models_of_the_third_format_score_as_they_did(kind):
    with np.load(DATA / "scores.format-3.npz") as archive:
        parts = {name.removeprefix(f"{kind}/"): archive[name] for name in archive.files}
    path = DATA / f"{kind}.format-3.likeminds"
    model = load(path, verify=True)
    assert read_card(path)["format"] == 3
    rows = (parts["X"], parts["users"].tolist())
    if kind == "three-levels":
        found = {"scores": model.decision_function(*rows)}
    else:
        rows += (parts["items"].tolist(),)
        found = {
            "scores": model.decision_function(*rows),
            "deviations": model.standard_error(*rows),
            "probabilities": model.predict_proba(*rows)[:, 1],
        }
        ranked = model.rank(parts["users"][0]).items
        assert ranked.astype(str).tolist() == parts["ranking"].tolist()
    found["new user"] = model.newcomer(parts["X"][:6], parts["said"]).coef
    for what, value in found.items():
        np.testing.assert_allclose(value, parts[what], rtol=1e-9, atol=1e-9, err_msg=what)


def test_models_keep_their_verb_and_those_of_old_have_a_neutral_one(tmp_path):
    assert load(DATA / "HierarchicalRanker.format-3.likeminds").verb.one("tea") == "rates tea high"
    said = Annotations(["a"] * 4, list("wxyz"), [1, 0, 1, 0], np.eye(4)[:, :2], verb="find rude")
    path = save(ThreeLevelRanker().fit(said), tmp_path / "rude.likeminds")
    assert load(path).verb.one("tea") == "finds tea rude"
    assert read_card(path)["verb"] == "find rude"
