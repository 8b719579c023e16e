"""A comparison of many labels says at the start how long it takes."""

import pytest

from likeminds import compare, make_schools
from likeminds.baselines import Popularity
from likeminds.comparing import comparison, runs
from likeminds.comparing.runs import Forecast, all_fits

SECONDS = {"cheap": 1.0, "usual": 5.0, "dear": 200.0}


@pytest.fixture(scope="module")
def crowd():
    return make_schools(12, 20, 40, 8, 2, random_state=0).annotations


def test_the_estimate_is_right_within_a_factor_of_two_after_a_tenth():
    names = [name for _ in range(20) for name in SECONDS]
    ahead, whole = Forecast(names), 20 * sum(SECONDS.values())
    done = 0.0
    for name in names:
        done += SECONDS[name]
        share = ahead.share_after(name, SECONDS[name], done)
        if whole / 10 <= done < whole:
            left = done / share - done
            assert (whole - done) / 2 < left < 2 * (whole - done)
    assert share == 1.0


def test_fits_under_way_count():
    ahead = Forecast(["quick", "quick", "slow", "slow"], n_jobs=2)
    assert ahead.share_after("quick", 10.0, elapsed=10.0) == 20 / 40
    assert ahead.share_after("quick", 10.0, elapsed=20.0) == 0.99
    assert ahead.share_after("slow", 100.0, elapsed=100.0) == 200 / 220
    assert ahead.share_after("slow", 100.0, elapsed=110.0) == 1.0


def test_time_between_fits_does_not_count_as_work():
    ahead = Forecast(["usual"] * 8, n_jobs=2)
    ahead.share_after("usual", 10.0, elapsed=50.0)
    assert ahead.share_after("usual", 10.0, elapsed=100.0) == 40 / 80


def test_the_estimate_comes_before_the_first_fit(crowd, capsys, monkeypatch):
    monkeypatch.setattr(runs, "MANY_LABELS", 0)
    compare(crowd, ["Popularity", "ConsensusOnly"], repeats=2, n_folds=2)
    notice, first, second, *_ = capsys.readouterr().err.splitlines()
    assert notice.startswith("Timing 2 rankers")
    assert first.startswith("4 fits take about")
    assert second.startswith("1 of 4 fits")


def test_the_estimate_does_not_wait_for_workers(crowd, capsys, monkeypatch):
    monkeypatch.setattr(runs, "Parallel", None)
    ahead = Forecast([("", "Popularity")] * 4, n_jobs=2)
    ahead.measure({("", "Popularity"): (Popularity(), crowd)})
    assert "4 fits take about" in capsys.readouterr().err


def test_long_fits_start_first_after_one_that_shows_progress(crowd, monkeypatch):
    loads = iter([1000.0])  # in the first fit of a process
    monkeypatch.setattr(runs, "_time", lambda ranker, few: SECONDS[ranker] + next(loads, 0.0))
    rankers = {name: Popularity() for name in SECONDS}
    work = [("", fit) for fit in all_fits(crowd, rankers, 0.2, [0, 1], stored=False)]
    ahead = Forecast([("", fit.arguments["name"]) for _, fit in work])
    assert ahead.in_order(work) == work
    ahead.measure({("", name): (name, crowd) for name in SECONDS})
    first = [("cheap", 0), ("dear", 0), ("usual", 0)]
    later = [("dear", 1), ("usual", 1), ("cheap", 1)]
    arguments = [fit.arguments for _, fit in ahead.in_order(work)]
    assert [(each["name"], each["repeat"]) for each in arguments] == first + later


def test_fits_of_all_attributes_are_counted_once(crowd, capsys, monkeypatch):
    monkeypatch.setattr(runs, "MANY_LABELS", 0)
    options = {"repeats": 2, "test_size": 0.2, "n_folds": 2, "n_jobs": 1, "random_state": 0}
    parts = {"warm": crowd, "soft": crowd}
    found = comparison.compare_each(parts, ["Popularity"], folder=None, progress=True, **options)
    assert found["warm"].rankers == found["soft"].rankers == ["Popularity"]
    _, estimate, *lines = capsys.readouterr().err.splitlines()
    assert estimate.startswith("4 fits")
    assert [line.split(" fits")[0] for line in lines] == [f"{n} of 4" for n in (1, 2, 3, 4)]
    assert sum("soft: Popularity, repeat 1" in line for line in lines) == 1


@pytest.mark.parametrize("many", [0, 10**9])
def test_without_progress_nothing_is_measured(crowd, capsys, monkeypatch, many):
    monkeypatch.setattr(runs, "MANY_LABELS", many)
    compare(crowd, ["Popularity"], repeats=1, progress=False)
    assert capsys.readouterr() == ("", "")
