"""What a comparison says of its table: summaries, paired statistics, text and picture."""

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pytest
from matplotlib import pyplot
from scipy import stats

from likeminds import Comparison
from likeminds.metrics.paired import over_repeats, over_users

mpl.use("Agg")

N_PEOPLE, N_REPEATS = 9, 5
NAMES = ["plain", "good", "bad"]


@pytest.fixture(scope="module")
def aucs():
    rng = np.random.default_rng(0)
    level = np.array([0.7, 0.8, 0.6])[:, None, None]
    values = level + 0.05 * rng.standard_normal((3, N_REPEATS, N_PEOPLE))
    values[:, 1, 2] = np.nan  # nothing to rank in this repeat
    values[:, :, 4] = np.nan  # nor ever
    return values


@pytest.fixture(scope="module")
def found(aucs):
    n = 3 * N_REPEATS
    flat = aucs.reshape(n, N_PEOPLE)
    table = {
        "ranker": np.repeat(NAMES, N_REPEATS).tolist(),
        "repeat": np.tile(np.arange(N_REPEATS), 3),
        "mean_score": np.nanmean(flat, axis=1),
        "seconds": np.arange(n, dtype=float),
        "parameters": ["{}"] * n,
        "score_by_user": flat.tolist(),
    }
    return Comparison(pa.table(table), np.arange(N_PEOPLE), 0.15)


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
def test_summary(found, aucs):
    summary = found.summary().to_pylist()
    assert [row["ranker"] for row in summary] == ["good", "plain", "bad"]
    good = np.nanmean(aucs[1], axis=1)
    assert summary[0]["mean_score"] == pytest.approx(good.mean())
    assert summary[0]["deviation_over_repeats"] == pytest.approx(good.std(ddof=1))
    by_user = np.nanmean(aucs[1], axis=0)
    error = stats.sem(by_user, nan_policy="omit")
    assert summary[0]["error_over_people"] == pytest.approx(float(error))
    assert summary[0]["median_seconds"] == 7.0


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
def test_paired_is_that_of_scipy(found, aucs):
    row = found.paired().to_pylist()[0]
    assert (row["ranker"], row["against"]) == ("plain", "good")
    users = np.nanmean(aucs[0], axis=0) - np.nanmean(aucs[1], axis=0)
    users = users[np.isfinite(users)]
    interval = stats.ttest_1samp(users, 0).confidence_interval()
    assert row["users_difference"] == pytest.approx(users.mean())
    assert (row["users_low"], row["users_high"]) == pytest.approx(tuple(interval))
    assert row["users_p"] == pytest.approx(stats.wilcoxon(users).pvalue)
    repeats = np.nanmean(aucs[0], axis=1) - np.nanmean(aucs[1], axis=1)
    assert row["repeats_difference"] == pytest.approx(repeats.mean())
    assert row["repeats_p"] == pytest.approx(stats.wilcoxon(repeats).pvalue)
    corrected = np.sqrt((1 / N_REPEATS + 0.15 / 0.85) * repeats.var(ddof=1))
    half = stats.t(N_REPEATS - 1).ppf(0.975) * corrected
    assert row["repeats_high"] - row["repeats_difference"] == pytest.approx(half)


def test_paired_against_a_named_ranker(found):
    rows = found.paired("bad").to_pylist()
    assert [row["ranker"] for row in rows] == ["good", "plain"]
    assert all(row["users_difference"] > 0 for row in rows)
    with pytest.raises(ValueError):
        found.paired("ugly")


def test_the_corrected_interval_covers_what_the_naive_one_does_not():
    # Repeats that share half their rows: the corrected interval must be the wider one.
    differences = np.array([0.1, 0.2, 0.15, 0.12])
    naive, corrected = over_users(differences), over_repeats(differences, 0.5)
    assert corrected.low < naive.low < naive.high < corrected.high


def test_degenerate_differences():
    assert np.isnan(over_users(np.full(3, np.nan))).all()
    one = over_repeats(np.array([0.1]), 0.15)
    assert one.mean == 0.1
    assert np.isnan(one[1:]).all()
    assert over_users(np.zeros(4)) == (0.0, 0.0, 0.0, 1.0)


def test_text(found):
    lines = str(found).splitlines()
    assert lines[0] == "3 rankers, 5 repeats, 15% held out of 9 people"
    assert lines[2].split()[0] == "good"
    assert "best" in lines[2]
    assert len({len(line) for line in lines[1:]}) == 1
    markdown = found.to_markdown().splitlines()
    assert len(markdown) == 5
    assert {line.count("|") for line in markdown} == {7}
    assert repr(found) == "<Comparison of plain, good, bad>"


def test_boxplot(found):
    axes = found.boxplot()
    axes.figure.canvas.draw()
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["bad", "plain", "good"]
    assert axes.get_title(loc="left").startswith("good has the highest median AUC")
    assert axes.get_xlabel().startswith("AUC, mean over people")
    drawn = [line.get_xdata() for line in axes.lines if line.get_marker() == "."]
    assert [len(x) for x in drawn] == [N_REPEATS] * 3
    assert found.boxplot(axes) is axes
    pyplot.close(axes.figure)


@pytest.mark.usefixtures("no_matplotlib")
def test_without_matplotlib_the_extra_is_named(found):
    with pytest.raises(ImportError):
        found.boxplot()
