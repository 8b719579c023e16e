"""The benchmark of shared items: its parts, and all of it on tiny simulated crowds."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.shared_crowds import SharedCrowd, above_own_median, read_crowds, simulated
from benchmarks.shared_items import main
from benchmarks.shared_page import BEGIN, END, over_sets, summarise
from benchmarks.shared_polis import group_informed_consensus
from benchmarks.time_limit import in_time

from likeminds import Annotations


def fail():
    raise ValueError("no")


def burn():
    while True:
        pass


@pytest.mark.slow
def test_a_job_ends_in_time_or_not_or_fails(capfd):
    assert in_time(60, sum, [1, 2])[0] == 3
    assert in_time(0.1, burn) is None
    with pytest.raises(RuntimeError):
        in_time(60, fail)
    assert "ValueError: no" in capfd.readouterr().err


def test_above_the_own_median():
    user = np.array([5, 7, 5, 7, 5, 7, 7])
    grade = np.array([1.0, 4.0, 2.0, 4.0, 3.0, 4.5, 5.0])
    wanted = [g > np.median(grade[user == u]) for u, g in zip(user, grade, strict=True)]
    assert above_own_median(user, grade).tolist() == wanted


def test_the_group_informed_consensus_is_a_product_over_groups():
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((9, 4)) < 0.8)
    said = Annotations(user, item, rng.random(len(user)) < 0.6)
    groups = np.array([0, 0, 0, 0, 1, 1, 1, -1, -1])
    passes = np.argwhere(rng.random((9, 4)) < 0.1)
    crowd = SharedCrowd("c", said, passes=passes)
    for j, found in enumerate(group_informed_consensus(crowd, said, groups)):
        wanted = 1.0
        for group in (0, 1):
            mine = said.labels[(said.items == j) & (groups[said.user_codes] == group)]
            passed = sum(groups[i] == group and k == j for i, k in passes)
            wanted *= (mine.sum() + 1) / (len(mine) + passed + 2)
        assert found == pytest.approx(wanted)


def test_data_sets_count_alike_in_the_average():
    tables = {
        name: {"methods": {"HierarchicalRanker": {}, "other": {"difference": [gain, None, None]}}}
        for name, gain in {"a": 0.01, "b": 0.02, "c": 0.03}.items()
    }
    assert "+2.0 [-0.5, +4.5] above other" in over_sets(tables, ("other", "absent"))
    assert not over_sets({"a": tables["a"]}, ("other",))


def test_differences_are_paired_with_the_best_rival_and_methods_that_were_late_are_out():
    crowd = SharedCrowd("c", next(simulated()).said, family="c")
    runs = {
        "HierarchicalRanker": {"aucs": [0.9, 0.8, None], "seconds": 1.0},
        "Popularity": {"aucs": [0.8, 0.6, None], "seconds": 1.0},
        "Factorisation": {"aucs": [0.8, 0.7, None], "seconds": 1.0},
        "COMT": {"late": 60.0},
    }
    tasks = [
        (SimpleNamespace(kind="within", crowd=crowd, seed=10, method=name), result)
        for name, result in runs.items()
    ]
    other = SimpleNamespace(kind="within", crowd=crowd, seed=11, method="HierarchicalRanker")
    tasks.append((other, {"aucs": [0.1, 0.1, 0.1], "seconds": 1.0}))
    table = summarise(tasks)["within"]["c"]
    assert table["best rival"] == "Factorisation"
    assert table["difference"][0] == pytest.approx(0.1)  # on the split of both
    assert table["methods"]["Popularity"]["auc"] == pytest.approx(0.7)
    assert table["methods"]["COMT"] == {"late": 60.0}


def test_files_are_read_by_what_they_hold(tmp_path, capsys):
    np.savez(
        tmp_path / "polis_brexit.npz",
        user=[0, 0, 1, 1],
        item=[0, 1, 0, 1],
        vote=[1, 0, -1, 1],
        text=["a", "b"],
        polis_group=[0.0, np.nan],
    )
    np.savez(tmp_path / "jokes.npz", user=[0, 0, 1], item=[0, 1, 1], grade=[-1.0, 5.0, 2.0])
    found = {crowd.name: crowd for crowd in read_crowds(tmp_path)}
    assert set(found) == {"polis_brexit", "jokes", "electricity"}
    assert found["polis_brexit"].said.labels.tolist() == [True, False, True]
    assert found["polis_brexit"].passes.tolist() == [[0, 1]]
    assert found["jokes"].said.labels.tolist() == [False, True, False]
    assert "movies is left out" in capsys.readouterr().out
    assert [crowd.name for crowd in read_crowds(tmp_path, ["jokes"])] == ["jokes"]
    assert "left out" not in capsys.readouterr().out


@pytest.mark.slow
def test_everything_on_tiny_crowds(tmp_path, capsys):
    options = ["--quick", "--cache", str(tmp_path / "kept"), "--out", str(tmp_path)]
    main(options)
    summary = json.loads((tmp_path / "shared-items.json").read_text())
    assert summary["groups"]["camps"]["ours"]["auto"]["rand"] > 0.5
    assert {"HierarchicalRanker", "Popularity"} <= summary["within"]["camps"]["methods"].keys()
    assert summary["new items"]["camps"]["methods"]["Popularity"]["auc"] == 0.5
    assert summary["within"]["alone"]["difference"][0] == 0.0
    page = (tmp_path / "shared-items-measured.md").read_text()
    assert page.startswith(BEGIN)
    assert (tmp_path / "shared-items-measured.png").stat().st_size > 5_000
    assert all(f"\n| {name} | " in page for name in ("camps", "alone"))
    capsys.readouterr()
    # What is kept is not measured again, and what stands around the marks stays.
    (tmp_path / "shared-items-measured.md").write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    main(options)
    assert "--10--" not in capsys.readouterr().out
    assert (
        tmp_path / "shared-items-measured.md"
    ).read_text() == f"before\n{page.rstrip()}\nafter\n"
