"""Fits are as they were frozen, and the command prints what moved."""

import numpy as np
import pytest
from tools.golden.__main__ import main
from tools.golden.crowds import CROWDS, quantities
from tools.golden.frozen import FOLDER, SAME, moves, read

from sharded import QUIET


def _marked(name):
    return pytest.param(name, marks=QUIET if "dask" in name else [])


@pytest.mark.seconds
@pytest.mark.parametrize("name", [_marked(name) for name in CROWDS])
def test_fits_are_as_they_were_frozen(name):
    if "dask" in name:
        pytest.importorskip("distributed", reason="a cluster needs likeminds[dask]")
    before, allowed = read(name)
    moved = [move.text for move in moves(before, quantities(name), allowed)]
    assert not moved, (
        f"{name} moved (python -m tools.golden prints it, --write freezes it): {moved}"
    )


def test_every_file_belongs_to_a_crowd():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(CROWDS)


def test_moves_are_found_whatever_their_kind():
    before = {
        "same": np.array([1.0, np.nan]),
        "close": np.array([200.0, 1.0]),
        "moved": np.array([[1.0, 2.0]]),
        "lost": np.array([1.0]),
        "words": np.array(["full", "2"]),
        "gone": np.array(1.0),
        "reshaped": np.zeros(2),
    }
    after = {
        "same": np.array([1.0, np.nan]),
        "close": np.array([200.0 + 1e-8, 1.0]),
        "moved": np.array([[1.0, 2.002]]),
        "lost": np.array([np.nan]),
        "words": np.array(["diagonal", "2"]),
        "reshaped": np.zeros(3),
        "new": np.array(1.0),
    }
    found = {move.quantity: move for move in moves(before, after, SAME)}
    assert set(found) == {"moved", "lost", "words", "gone", "reshaped", "new"}
    assert found["moved"].by == pytest.approx(1e-3)
    assert found["words"].text.endswith("1 of 2 differ: full -> diagonal")
    assert list(found)[-1] == "moved"  # the largest move first


def test_the_command_freezes_and_prints_what_moved(tmp_path, capsys):
    name, options = "labels_by_squared_auc", ["--folder", str(tmp_path)]
    assert main([name, *options, "--write"]) == 0
    assert main([name, *options]) == 0
    assert f"{name}: as it was" in capsys.readouterr().out
    path = tmp_path / f"{name}.json"
    text = path.read_text()
    path.write_text(text.replace('"consensus": [', '"consensus": [9'))
    assert main([name, *options]) == 1
    assert "consensus: by" in capsys.readouterr().out
    assert main([name, *options, "--write"]) == 0
    assert path.read_text() == text
    with pytest.raises(SystemExit):
        main(["nothing", *options])
