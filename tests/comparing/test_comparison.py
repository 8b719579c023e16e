import json
import signal
import subprocess
import sys
import time
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from interrupted import Interrupted
from likeminds import (
    Annotations,
    HierarchicalRanker,
    RankerCV,
    ThreeLevelRanker,
    auc_by_user,
    compare,
    default_rankers,
    make_schools,
    split_within_users,
)
from likeminds.rankers.baselines import ConsensusOnly, OnePerUser, RidgeToConsensus

QUIET = {"progress": False, "n_folds": 2}
QUICK = {"crowd": ConsensusOnly(), "alone": (OnePerUser(), {"alpha": [1.0, 0.1]})}


@pytest.fixture(scope="module")
def schools():
    return make_schools(12, 30, 60, 6, 3, contested=0.5, random_state=1).annotations


@pytest.fixture(scope="module")
def found(schools):
    return compare(schools, QUICK, repeats=3, **QUIET)


class Recorder(BaseEstimator):
    """Writes down what reaches fit; its score is the first feature."""

    # Shared by all clones, that is the point.
    fits: ClassVar[list[Annotations]] = []
    fail_at: ClassVar[dict[int, BaseException]] = {}

    def __init__(self, sign=1.0):
        self.sign = sign

    def fit(self, X):
        if len(self.fits) in self.fail_at:
            raise self.fail_at[len(self.fits)]
        self.fits.append(X)
        self.fitted_ = True
        return self

    def decision_function(self, X):
        self.scored_ = X
        return self.sign * X.X[:, 0]


@pytest.fixture
def fits():
    Recorder.fits.clear()
    Recorder.fail_at.clear()
    return Recorder.fits


def rows_of(annotations):
    return set(zip(annotations.users, annotations.items, strict=True))


def test_test_rows_reach_no_fit_and_all_rankers_see_the_same_splits(schools, fits):
    rankers = {"up": Recorder(), "down": Recorder(-1.0)}
    result = compare(schools, rankers, repeats=2, random_state=5, **QUIET)
    assert len(fits) == 4
    for repeat in range(2):
        train, test = split_within_users(schools, 0.15, 5 + repeat)
        for seen in fits[2 * repeat : 2 * repeat + 2]:
            np.testing.assert_array_equal(seen.X, train.X)
            assert not rows_of(seen) & rows_of(test)
            assert rows_of(seen) | rows_of(test) == rows_of(schools)
        aucs = auc_by_user(test.labels, test.X[:, 0], test.users).values
        measured = result.table()["score_by_user"].to_pylist()[repeat]
        np.testing.assert_allclose(measured, aucs)


def test_rows_of_a_group_stay_together(fits):
    rng = np.random.default_rng(0)
    crowd = Annotations(
        users=np.repeat(np.arange(4), 30),
        items=None,
        labels=np.tile([True, False, False], 40),
        features=rng.standard_normal((120, 2)),
        choice_sets=np.tile(np.repeat(np.arange(10), 3), 4),
    )
    compare(crowd, {"up": Recorder()}, repeats=1, **QUIET)
    assert (np.bincount(fits[0].choice_set_codes) == 3).all()


def test_the_table_is_tidy_and_as_fitted_by_hand(schools, found):
    assert found.table()["ranker"].to_pylist() == ["crowd"] * 3 + ["alone"] * 3
    assert found.table()["repeat"].to_pylist() == [0, 1, 2] * 2
    assert (found.users == schools.user_ids).all()
    train, test = split_within_users(schools, 0.15, 1)
    by_hand = RankerCV(OnePerUser(), {"alpha": [1.0, 0.1]}, n_folds=2).fit(train)
    row = found.table().to_pylist()[4]
    assert row["mean_score"] == pytest.approx(by_hand.score(test))
    assert json.loads(row["parameters"]) == by_hand.best_params_
    assert row["mean_score"] == pytest.approx(np.nanmean(row["score_by_user"]))
    assert row["seconds"] > 0


@pytest.mark.slow
def test_several_workers_find_the_same(schools, found):
    parallel = compare(schools, QUICK, repeats=3, n_jobs=2, **QUIET)
    for column in ("ranker", "repeat", "parameters"):
        assert parallel.table()[column] == found.table()[column]
    ours, theirs = (np.array(c.table()["score_by_user"].to_pylist()) for c in (found, parallel))
    np.testing.assert_allclose(theirs, ours)


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (ValueError("no luck"), "mine failed in repeat 2: ValueError: no luck"),
        (KeyboardInterrupt("Ctrl-C"), "Ctrl-C"),
    ],
)
def test_a_failed_comparison_continues_where_it_was(tmp_path, schools, fits, failure, told):
    rankers = {"crowd": ConsensusOnly(), "mine": Recorder()}
    Recorder.fail_at[2] = failure
    with pytest.raises((RuntimeError, KeyboardInterrupt), match=told):
        compare(schools, rankers, repeats=4, folder=tmp_path, **QUIET)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(kept) == 5  # two repeats of both, and the crowd's third
    Recorder.fail_at.clear()
    resumed = compare(schools, rankers, repeats=4, folder=tmp_path, **QUIET)
    assert len(fits) == 4  # two before, two now
    assert resumed.table().num_rows == 8
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    fits.clear()
    again = compare(schools, rankers, repeats=4, folder=tmp_path, **QUIET)
    assert fits == []
    assert again.table().equals(resumed.table())


def test_an_interrupted_fit_is_no_result(tmp_path, schools):
    with pytest.raises(KeyboardInterrupt):
        compare(schools, [Interrupted()], repeats=1, folder=tmp_path, **QUIET)
    assert list(tmp_path.iterdir()) == []


def stop(*arguments):
    return True


def test_an_interrupt_that_is_only_warned_of_is_no_result_either(tmp_path, schools):
    with pytest.raises(KeyboardInterrupt):
        compare(schools, [HierarchicalRanker(callback=stop)], repeats=1, folder=tmp_path, **QUIET)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.seconds
def test_a_failure_in_a_worker_names_ranker_and_repeat(tmp_path, schools):
    wrong = {"crowd": ConsensusOnly(), "wrong": ThreeLevelRanker(n_groups=99)}
    with pytest.raises(RuntimeError):
        compare(schools, wrong, repeats=1, n_jobs=2, folder=tmp_path, **QUIET)


SCRIPT = """
import sys
from likeminds import compare, make_schools
from likeminds.rankers.baselines import ConsensusOnly
crowd = make_schools(12, 30, 60, 6, 3, contested=0.5, random_state=1).annotations
compare(crowd, {"crowd": ConsensusOnly()}, repeats=500, n_folds=2, folder=sys.argv[1])
"""


@pytest.mark.slow
def test_a_killed_comparison_continues_where_it_was(tmp_path, schools):
    killed = subprocess.Popen([sys.executable, "-c", SCRIPT, tmp_path], stderr=subprocess.DEVNULL)
    while len(list(tmp_path.glob("crowd-*.json"))) < 3:
        assert killed.poll() is None
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    kept = sorted(tmp_path.glob("crowd-*.json"))[:3]
    before = [path.stat().st_mtime_ns for path in kept]
    resumed = compare(schools, {"crowd": ConsensusOnly()}, repeats=3, folder=tmp_path, **QUIET)
    assert [path.stat().st_mtime_ns for path in kept] == before  # read, not computed again
    assert [json.loads(path.read_text())["result"]["mean_score"] for path in kept] == pytest.approx(
        resumed.table()["mean_score"].to_pylist()
    )


def test_what_was_changed_is_computed_again(tmp_path, schools, fits):
    options = {"repeats": 1, "folder": tmp_path, **QUIET}
    compare(schools, {"up": Recorder()}, **options)
    labels = schools.labels.copy()
    labels[0] ^= True
    weights = np.ones(len(schools))
    for changed in (schools._with(labels=labels), schools._with(weights=weights)):
        compare(changed, {"up": Recorder()}, **options)
    compare(schools, {"up": Recorder(2.0)}, **options)
    compare(schools, {"up": Recorder()}, **options | {"test_size": 0.3})
    compare(schools, {"up": Recorder()}, **options | {"random_state": 1})
    assert len(fits) == 6
    assert len(list(tmp_path.iterdir())) == 6
    compare(schools, {"up": Recorder()}, **options)
    assert len(fits) == 6


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: text.replace('"fingerprint": "', '"fingerprint": "x'),
        lambda text: text.replace('"score_by_user": [', '"score_by_user": [0.5, '),
    ],
)
def test_damaged_files_are_computed_again(tmp_path, schools, fits, damage):
    first = compare(schools, {"up": Recorder()}, repeats=2, folder=tmp_path, **QUIET)
    path = sorted(tmp_path.iterdir())[0]
    path.write_text(damage(path.read_text()))
    again = compare(schools, {"up": Recorder()}, repeats=2, folder=tmp_path, **QUIET)
    assert len(fits) == 3
    assert again.table()["mean_score"] == first.table()["mean_score"]


def test_progress_is_on_stderr_or_nowhere(schools, capsys):
    compare(schools, {"up": Recorder()}, repeats=1, **QUIET)
    assert capsys.readouterr() == ("", "")
    compare(schools, {"up": Recorder()}, repeats=1, progress=True)
    heard = capsys.readouterr()
    assert heard.out == ""
    assert "1 of 1 fits" in heard.err


def test_warnings_of_the_fits_are_told_once_per_ranker(schools):
    coarse = {"coarse": ThreeLevelRanker(max_iter=1, tol=1e-9)}
    with pytest.warns(UserWarning, match="coarse warned in 2 of 2 repeats; first: Stopped") as said:
        compare(schools, coarse, repeats=2, **QUIET)
    assert [w.category for w in said] == [UserWarning]
    assert not any(issubclass(w.category, ConvergenceWarning) for w in said)


def test_what_is_given_is_made_ready(schools):
    given = ["ConsensusOnly", RidgeToConsensus(), RankerCV(OnePerUser()), ThreeLevelRanker()]
    result = compare(schools, given, repeats=1, **QUIET)
    names = ["ConsensusOnly", "RidgeToConsensus", "OnePerUser", "ThreeLevelRanker"]
    assert result.rankers == names
    parameters = [json.loads(text) for text in result.table()["parameters"].to_pylist()]
    assert set(parameters[1]) == {"alpha", "alpha_consensus"}
    assert "solver" in parameters[3]


def test_by_default_everybody_takes_part_who_can(monkeypatch, schools):
    quick = {name: Recorder() for name in default_rankers()}
    monkeypatch.setattr("likeminds.comparing.comparison.default_rankers", lambda *_: dict(quick))
    assert compare(schools, repeats=1, **QUIET).rankers == list(quick)
    apart = Annotations(schools.users, None, schools.labels, schools.X + np.arange(360)[:, None])
    assert "Popularity" not in compare(apart, repeats=1, **QUIET).rankers
    monkeypatch.setattr("likeminds.comparing.comparison.MANY_LABELS", 100)
    with pytest.warns(UserWarning, match="RMTFL.*LogisticPerUser are left out.*--ranker all"):
        found = compare(schools, **QUIET)
    assert len(set(found.table()["repeat"].to_pylist())) == 2
    assert {"HierarchicalRanker", "RMTL", "Popularity", "Factorisation"} < set(found.rankers)
    assert not {"ThreeLevelRankerCV", "RMTFL", "LogisticPerUser"} & set(found.rankers)
    assert compare(schools, "all", repeats=1, **QUIET).rankers == list(quick)


def test_finished_fits_are_reported_to_a_function(schools, capsys):
    names = []
    compare(schools, {"up": Recorder(), "down": Recorder()}, repeats=2, progress=names.append)
    assert sorted(names) == ["down", "down", "up", "up"]
    assert capsys.readouterr().err == ""


def test_a_file_is_not_a_folder_for_results(schools, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        compare(schools, QUICK, folder=tmp_path / "file")
