"""Commands with a model whose people are in files of their own, and rankings in a folder."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commands import run
from likeminds import HierarchicalRanker, load, make_schools, save


@pytest.fixture(scope="module")
def said():
    made = make_schools(20, 12, 12, 3, n_schools=2, contested=0.6, random_state=0).annotations
    return made._with(user_ids=np.array([f"p{n:02d}" for n in range(20)], dtype=object))


@pytest.fixture(scope="module")
def place(said, tmp_path_factory):
    place = tmp_path_factory.mktemp("apart")
    ranker = HierarchicalRanker(n_groups=1).fit(said)
    save(ranker, place / "one.likeminds", with_data=True)
    save(ranker, place / "many.likeminds", users_per_file=6, with_data=True)
    columns = {"user": said.users.tolist(), "item": said.items.tolist(), "label": said.labels}
    pq.write_table(pa.table(columns), place / "votes.parquet")
    (place / "labels").mkdir()
    pq.write_table(pa.table(columns), place / "labels" / "0.parquet")
    table = {"item": said.item_ids.tolist()}
    table |= dict(zip(said.feature_names, said.features.T, strict=True))
    pq.write_table(pa.table(table), place / "items.parquet")
    return place


@pytest.mark.parametrize(
    "words",
    [
        ["rank", "--user", "p07", "--top", "4"],
        ["rank", "--each-user", "--top", "2"],
        ["explain", "--user", "p07"],
        ["explain"],
        ["similar", "--user", "p07"],
        ["evaluate", "--annotations", "votes.parquet"],
    ],
)
def test_commands_answer_as_with_one_file(place, words):
    found, expected = (
        run(place, words[0], f"{name}.likeminds", *words[1:], "--json") for name in ("many", "one")
    )
    assert found.code == expected.code == 0, found.err
    told = [json.loads(one.out) for one in (found, expected)]
    assert [one.pop("model", None) for one in told] in (
        [None, None],
        ["many.likeminds", "one.likeminds"],
    )
    assert told[0] == told[1]


def test_somebody_unknown_is_said(place):
    done = run(place, "rank", "many.likeminds", "--user", "p7")
    assert done.code != 0
    assert "Did you mean p07" in done.err


def test_cards_and_updates(place, said):
    done = run(place, "card", "many.likeminds")
    assert done.code == 0, done.err
    assert "20 people" in done.out
    save(
        load(place / "many.likeminds"),
        place / "grown.likeminds",
        users_per_file=6,
        with_data=True,
    )
    done = run(place, "update", "grown.likeminds", "--annotations", "votes.parquet")
    assert done.code == 0, done.err
    assert load(place / "grown.likeminds").n_labels_ == 2 * len(said)
    assert len({one.name for one in (place / "grown.likeminds").glob("people-*")}) == 8


@pytest.mark.parametrize("name", ["many", "one"])
def test_everybody_is_ranked_for_in_a_folder(place, name):
    out = f"best-{name}"
    words = ["rank", f"{name}.likeminds", "--each-user", "--top", "3", "--out"]
    done = run(place, *words, out)
    assert done.code == 0, done.err
    assert "20 people" in done.err + done.out
    assert len(list((place / out).iterdir())) == (4 if name == "many" else 1)
    assert run(place, *words, "best.parquet").code == 0
    found = pq.read_table(place / out).to_pandas().set_index(["user", "rank"]).sort_index()
    table = pq.read_table(place / "best.parquet").to_pandas().set_index(["user", "rank"])
    assert found["item"].tolist() == table.sort_index()["item"].tolist()
    done = run(place, *words, out, "--unseen")
    assert done.code != 0
    assert "rankings.parquet" in done.err


@pytest.mark.slow
def test_a_fit_on_a_cluster_leaves_people_apart(place, said):
    pytest.importorskip("distributed", reason="a cluster needs likeminds[dask]")
    words = ["--annotations", "labels", "--features", "items.parquet", "--out", "there.likeminds"]
    done = run(place, "fit", *words, "--dask", "local:1", "--user-files", "--verb", "would buy")
    assert done.code == 0, done.err
    there = load(place / "there.likeminds", verify=True)
    assert there.verb.many() == "would buy"
    here = HierarchicalRanker().fit(said)
    np.testing.assert_allclose(
        there.decision_function(said), here.decision_function(said), atol=1e-6
    )
    done = run(place, "fit", *words, "--user-files")
    assert done.code != 0
    assert "give its address with --dask" in done.err
