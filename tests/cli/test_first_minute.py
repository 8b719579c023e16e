"""What people meet in the first minute: names of columns, slips, thresholds, a forgotten person."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import likeminds
from commands import run, told
from likeminds import Annotations, HierarchicalRanker

pytestmark = pytest.mark.seconds

N_PEOPLE, N_ITEMS = 8, 12
SIZES = np.linspace(-1.0, 1.0, N_ITEMS)


def rows(person="person", item="item", label="label"):
    """Return a table of who said what: half of the people like what is large."""
    said = [
        {person: f"ann-{i}", item: f"item-{j}", label: int((SIZES[j] > 0) == (i % 2 == 0))}
        for i in range(N_PEOPLE)
        for j in range(N_ITEMS)
    ]
    return pd.DataFrame(said)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("minute")
    rows().to_csv(folder / "labels.csv", index=False)
    things = pd.DataFrame({"item": [f"item-{j}" for j in range(N_ITEMS)], "size": SIZES})
    things["weight"] = np.random.default_rng(0).normal(size=N_ITEMS)
    things.to_csv(folder / "things.csv", index=False)
    things.rename(columns={"weight": "wieght"}).to_csv(folder / "slip.csv", index=False)
    fit = ("fit", "-a", "labels.csv", "-f", "things.csv", "--out", "m.likeminds")
    assert told(folder, *fit)["card"]["users"] == N_PEOPLE
    return folder


@pytest.mark.parametrize(
    "person",
    ["userId", "user_id", "User ID", "worker", "worker_id", "annotator", "rater", "respondent"],
)
@pytest.mark.parametrize("item", ["movieId", "instance_id", "task", "item_id"])
def test_columns_are_known_by_their_usual_names(person, item):
    said = Annotations.from_frame(rows(person, item))
    assert (said.n_users, said.n_items, said.n_features) == (N_PEOPLE, N_ITEMS, 0)


@pytest.mark.parametrize("more", [(), ("timestamp",)])
def test_the_one_column_that_is_left_is_what_people_said(more):
    table = rows("voter", "comment-id", "offensiveness")
    table = table.assign(**dict.fromkeys(more, 1_000_000))
    said = Annotations.from_frame(table)
    assert (said.n_users, said.n_items, said.n_features) == (N_PEOPLE, N_ITEMS, 0)


@pytest.mark.parametrize("name", ["timestamp", "created_at", "Unnamed: 0"])
def test_a_lone_number_that_dates_rows_is_no_feature(name):
    table = rows("userId", "movieId", "rating").assign(**{name: np.arange(N_PEOPLE * N_ITEMS)})
    assert Annotations.from_frame(table).n_features == 0
    assert Annotations.from_frame(table, features=[name]).feature_names == (name,)


def test_features_may_be_a_frame_that_is_indexed_by_item():
    index = pd.Index([f"item-{j}" for j in range(N_ITEMS)], name="item")
    said = Annotations.from_frame(rows(), features=pd.DataFrame({"size": SIZES}, index))
    assert said.feature_names == ("size",)
    assert said.X[:N_ITEMS, 0] == pytest.approx(SIZES)


def test_an_indexed_frame_in_a_file_is_a_table_of_features(folder):
    index = [f"item-{j}" for j in range(N_ITEMS)]  # without a name of its own
    pd.DataFrame({"size": SIZES}, index).to_csv(folder / "indexed.csv")
    fit = ("fit", "-a", "labels.csv", "-f", "indexed.csv", "--out", "x.likeminds")
    assert told(folder, *fit)["card"]["features"] == ["size"]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("explain", "--user", "anne-3"), "ann-3"),
        (("explain", "--item", "itm-7"), "item-7"),
        (("explain", "--user", "ann-3", "--item", "itm-7"), "item-7"),
        (("similar", "--user", "anne-3"), "ann-3"),
        (("rank", "--user", "ann-3", "--features", "slip.csv"), "wieght"),
    ],
)
def test_close_matches_of_people_items_and_features(folder, words, meant):
    done = run(folder, *words, "m.likeminds")
    assert done.code == 2
    assert f"Did you mean {meant}" in done.err


def test_what_asks_a_model_loads_little(folder):
    code = (
        "import sys\nfrom likeminds.cli import main\n"
        "main(['explain', 'm.likeminds', '--user', 'ann-3'])\n"
        "print(*sys.modules, file=sys.stderr)\n"
        "import pandas, scipy.stats\n"
        "assert pandas.Series([1, 2]).sum() == 3 and scipy.stats.norm.cdf(0.0) == 0.5"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder
    )
    heavy = {"pandas.core", "scipy.stats._stats_py", "scipy.optimize", "sklearn.linear_model"}
    assert not heavy & set(done.stderr.split())


def test_close_matches_of_columns(folder):
    done = run(folder, "fit", "-a", "labels.csv", "--user-column", "persn", "--out", "x.likeminds")
    assert done.code == 2
    assert "Did you mean person?" in done.err


def test_names_of_items_come_from_the_column_that_is_named(folder):
    things = pd.read_csv(folder / "things.csv").assign(called=[f"Thing {j}" for j in range(12)])
    things.to_csv(folder / "named.csv", index=False)
    fit = ("fit", "-a", "labels.csv", "-f", "named.csv", "--item-name", "called")
    assert "Using column 'called' as item names" in run(folder, *fit, "--out", "n.likeminds").out
    best = told(folder, "rank", "n.likeminds", "--top", "1")["rankings"][0]
    assert best["name"] == f"Thing {best['item'].removeprefix('item-')}"
    ask = ("explain", "n.likeminds", "--user", "ann-3")
    last = " ".join(run(folder, *ask).out.split()[-20:])  # whatever the width of the terminal
    assert "Thing" in last


def test_the_threshold_that_was_fitted_holds_later(folder):
    # Ratings from 1 to 5: with the threshold 3, 4 and 5 are a yes, and 3 is none.
    rng = np.random.default_rng(0)
    said = rows("userId", "movieId", "rating")
    said["rating"] = np.where(said["rating"] == 1, 4, rng.integers(1, 4, len(said)))
    said.to_csv(folder / "ratings.csv", index=False)
    files = ("-a", "ratings.csv", "-f", "things.csv")
    told(folder, "fit", *files, "--threshold", "3", "--out", "r.likeminds")
    as_fitted = told(folder, "evaluate", "r.likeminds", *files)
    assert told(folder, "evaluate", "r.likeminds", *files, "--threshold", "3") == (as_fitted)
    refused = run(folder, "evaluate", "r.likeminds", *files, "--threshold", "2")
    assert refused.code == 2
    assert "contradicts the reading" in refused.err
    # A newcomer's 3 is a no, as it was for everybody: to be told so changes nothing.
    new = pd.DataFrame({"movieId": [f"item-{j}" for j in (0, 1, 10, 11)], "rating": [3, 3, 4, 5]})
    new.to_csv(folder / "new.csv", index=False)
    ask = ("newcomer", "r.likeminds", "--annotations", "new.csv", "--top", "3")
    by_ratings = told(folder, *ask)["rankings"]
    new.assign(rating=[1, 1, 5, 5]).to_csv(folder / "new.csv", index=False)
    assert told(folder, *ask)["rankings"] == by_ratings
    assert {row["item"] for row in by_ratings} <= {f"item-{j}" for j in range(6, 12)}


@pytest.mark.filterwarnings("default:Labels have no users")
def test_without_users_everybody_is_one_person_and_that_is_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.logistic(size=60) > 0
    pipeline = make_pipeline(StandardScaler(), HierarchicalRanker(n_groups=0))
    with pytest.warns(UserWarning, match="count as labels of one user"):
        pipeline.fit(X, y)
    assert len(pipeline[-1].users_) == 1
    with pytest.warns(UserWarning, match="Pass users="):
        HierarchicalRanker(n_groups=0).fit(X, y)


def test_a_card_is_drawn_once_in_a_notebook(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    crowd = likeminds.make_schools(12, 12, 24, 8, 2, random_state=0).annotations
    ranker = HierarchicalRanker(n_groups=1).fit(crowd)
    pyplot.close("all")
    elsewhere = likeminds.plots.user_card(ranker, 3, crowd)
    assert pyplot.fignum_exists(elsewhere.number)  # a script's to show
    pyplot.close("all")
    # The backend of notebooks draws all of pyplot's figures when a cell ends, and the cell's value.
    monkeypatch.setattr(pyplot, "get_backend", lambda: "module://matplotlib_inline.backend_inline")
    monkeypatch.setattr(matplotlib, "get_backend", pyplot.get_backend)
    card = likeminds.plots.user_card(ranker, 3, crowd)
    assert not pyplot.get_fignums()
    assert card.axes or card.subfigs
