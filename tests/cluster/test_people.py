"""People who stay on the cluster, and what shards are asked later: equal to the answer here."""

import shutil
import time
from functools import partial

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from likeminds import (
    Annotations,
    HierarchicalRanker,
    ThreeLevelRanker,
    find_schools,
    load,
    load_electricity,
)
from likeminds.cluster import Shards, in_place_posteriors, write_rankings
from likeminds.storage.models import ModelFileError
from sharded import QUIET, spread
from sharded import ranker as ranker_of

pytestmark = [*QUIET, pytest.mark.seconds]


ranker = partial(ranker_of, n_groups=1)


@pytest.fixture(scope="module")
def here(fitted):
    return fitted


@pytest.fixture(scope="module")
def shards(client, said):
    return spread(said, client, n_shards=3)


@pytest.fixture(scope="module")
def kept(shards, tmp_path_factory):
    """A ranker whose people stayed, and its folder."""
    folder = tmp_path_factory.mktemp("kept") / "crowd.likeminds"
    return ranker().fit(shards.saved_to(folder)), folder


def same_people(there, here, atol=1e-6):
    """Compare two rankers person by person: those in files are in the order of their shards."""
    users = here.users_.tolist()
    assert sorted(there.users_.tolist()) == sorted(users)
    places = [there.users_.places[one] for one in users]
    for name in ("coef_", "group_", "personal_"):
        rows = getattr(there, name)[places]
        np.testing.assert_allclose(rows, getattr(here, name), rtol=0, atol=atol)
    np.testing.assert_allclose(there.consensus_, here.consensus_, rtol=0, atol=atol)


def names_in(folder):
    return sorted(one.name for one in folder.iterdir())


def items_of(said):
    return dict(zip(said.item_ids.tolist(), said.features, strict=True))


def test_people_stay_in_files_and_are_those_of_the_fit_here(kept, here, said):
    there, folder = kept
    assert len(list(folder.glob("people-*"))) == 3
    for one in (there, load(folder, verify=True)):
        same_people(one, here)
        np.testing.assert_allclose(
            one.intercept_[[0]], here.intercept_[here.users_ == one.users_[0]]
        )
        np.testing.assert_allclose(one.standard_error(said), here.standard_error(said), atol=1e-5)
        first, second = one.rank("p07", said), here.rank("p07", said)
        assert first.items.tolist() == second.items.tolist()
    assert there.explained_ == pytest.approx(here.explained_)


def test_people_stay_who_chose(client, tmp_path):
    homes = load_electricity().of_users([f"household-{n:03d}" for n in range(1, 13)])
    given = {"n_shards": 3, "choice_set": "choice_set"}
    shards = spread(homes, client, [homes], **given)
    there = ranker().fit(shards.saved_to(tmp_path / "m"))
    same_people(there, ranker().fit(homes))


def test_who_watches_a_fit_is_not_saved(shards, here, tmp_path):
    seen = []
    watched = ranker().set_params(callback=lambda *step: seen.append(step))
    there = watched.fit(shards.saved_to(tmp_path / "m"))
    assert seen
    assert there.callback is not None
    assert load(tmp_path / "m").callback is None
    same_people(load(tmp_path / "m"), here)


def test_they_come_through_the_client_where_workers_do_not_see_the_folder(
    shards, here, tmp_path, monkeypatch
):
    same_people(ranker().fit(shards.saved_to(tmp_path / "a", through_client=True)), here)
    monkeypatch.setattr(in_place_posteriors, "_reads", lambda path, token: False)
    same_people(ranker().fit(shards.saved_to(tmp_path / "b")), here)


@pytest.mark.slow
def test_people_stay_who_judge_items_with_effects_of_their_own(shards, said, tmp_path):
    given = {"n_groups": 1, "n_item_factors": 1, "tol": 1e-3}
    here = HierarchicalRanker(**given).fit(said)
    there = HierarchicalRanker(**given).fit(shards.saved_to(tmp_path / "m"))
    same_people(there, here)
    for one in (there, load(tmp_path / "m")):
        np.testing.assert_allclose(
            one.decision_function(said), here.decision_function(said), atol=1e-6
        )


def same_predictions(there, here, said):
    """Compare what is said of labels with people here and there."""
    for method in ("decision_function", "standard_error", "predict_proba"):
        found, expected = (getattr(one, method)(said) for one in (there, here))
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["cumulative", "gaussian"])
def test_people_stay_who_gave_grades(client, said, tmp_path, loss):
    stars = np.clip(np.round(3 + said.X[:, 0] + np.arange(len(said)) % 3 - 1), 1, 5)
    items = {"features": said.features, "item_ids": said.item_ids, "features_per": "item"}
    graded = Annotations(said.users, said.items, stars, **items, feature_names=said.feature_names)
    given = {"loss": loss, "n_groups": 1, "item_effects": False, "tol": 1e-3}
    here = HierarchicalRanker(**given).fit(graded)
    shards = spread(graded, client, n_shards=3)
    there = HierarchicalRanker(**given).fit(shards.saved_to(tmp_path / "m"))
    for one in (there, load(tmp_path / "m")):
        same_people(one, here)
        same_predictions(one, here, graded)
        found, expected = (each.predict_grades(graded) for each in (one, here))
        np.testing.assert_allclose(found.probabilities, expected.probabilities, atol=1e-6)
        assert one.score(shards) == pytest.approx(here.score(graded), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("item_effects", [False, True])
def test_people_stay_of_whom_covariates_are_known(client, said, tmp_path, item_effects):
    users = {one: {"age": float(n % 5)} for n, one in enumerate(said.user_ids.tolist())}
    for unknown in ("p03", "p17"):  # of these, nothing is known
        del users[unknown]
    given = {"n_groups": 1, "item_effects": item_effects, "n_item_factors": 0, "tol": 1e-3}
    given["unknown"] = "consensus"
    known = said.with_user_features(users)
    here = HierarchicalRanker(**given).fit(known)
    assert here.prior_.covariate_effects is not None
    shards = spread(said, client, n_shards=3, user_features=users)
    there = HierarchicalRanker(**given).fit(shards.saved_to(tmp_path / "m"))
    assert there.variance_scale_ == here.variance_scale_
    for one in (there, load(tmp_path / "m")):
        same_people(one, here)
        same_predictions(one, here, said)
    new = known._with(user_ids=np.array([f"q{one}" for one in said.user_ids], dtype=object))
    new = new.with_user_features({f"q{who}": about for who, about in users.items()})
    strangers = spread(new, client, n_shards=2, user_features=new.user_features)
    assert there.score(strangers) == pytest.approx(here.score(new), abs=1e-9)
    found, expected = there.newcomer(strangers), here.newcomer(new)
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-6)


def test_rankers_of_statistics_put_their_people_away(shards, said, tmp_path):
    there = ThreeLevelRanker().fit(shards.saved_to(tmp_path / "m"))
    same_people(there, ThreeLevelRanker().fit(said))
    same_people(load(tmp_path / "m"), ThreeLevelRanker().fit(said))
    with pytest.raises(ValueError, match="added"):
        there.update(said[:5])


def test_a_fit_that_fails_leaves_the_model_before_it(shards, here, tmp_path, monkeypatch):
    folder = tmp_path / "m"
    ranker().fit(shards.saved_to(folder))
    before = names_in(folder)
    real, calls = in_place_posteriors.write_users, []

    def fail(target, users, arrays):
        calls.append(target)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        time.sleep(0.05)
        return real(target, users, arrays)

    monkeypatch.setattr(in_place_posteriors, "write_users", fail)
    for through in (False, True):
        calls.clear()
        with pytest.raises(OSError):
            ranker().fit(shards.saved_to(folder, through_client=through))
        assert names_in(folder) == before
    monkeypatch.undo()
    same_people(load(folder, verify=True), here)


@pytest.mark.slow
@given(
    cuts=st.lists(st.integers(0, 480), max_size=4),
    cut=st.tuples(st.integers(1, 7), st.integers(0, 9)),
)
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_partitioning_gives_the_same_answers(crowd, here, tmp_path, cuts, cut):
    (client, said), (n_shards, seed) = crowd, cut
    order = np.random.default_rng(seed).permutation(len(said))
    parts = [said[rows] for rows in np.split(order, sorted(cuts)) if len(rows)]
    named = {"item_ids": said.item_ids, "feature_names": said.feature_names}
    shards = Shards.from_parts(parts, client, said.features, n_shards=n_shards, **named)
    shutil.rmtree(tmp_path / "m", ignore_errors=True)
    there = ranker().fit(shards.saved_to(tmp_path / "m"))
    same_people(there, here)
    assert there.score(shards) == pytest.approx(here.score(said), abs=1e-9)
    assert here.score(shards) == pytest.approx(here.score(said), abs=1e-9)


def test_scores_are_those_of_one_process(kept, here, shards, client, said):
    held_out = said[::3]
    for one in (kept[0], here):
        assert one.score(spread(held_out, client, n_shards=2)) == pytest.approx(
            here.score(held_out), abs=1e-9
        )
    new = said._with(user_ids=np.array([f"q{n:02d}" for n in range(40)], dtype=object))
    with pytest.raises(ValueError, match="q00"):
        here.score(spread(new, client))
    asked = clone(here).set_params(unknown="consensus").fit(said)
    assert asked.score(spread(new, client)) == pytest.approx(asked.score(new), abs=1e-9)
    for told, call in (
        ("labels of both classes", lambda: here.score(spread(said[said.labels], client))),
        ("y", lambda: here.score(shards, said.labels)),
    ):
        with pytest.raises(ValueError, match=told):
            call()


def test_newcomers_are_those_of_one_process(kept, here, client, said):
    new = said._with(user_ids=np.array([f"q{n:02d}" for n in range(40)], dtype=object))
    shards = spread(new, client, n_shards=4)
    for one in (kept[0], here):
        found, expected = one.newcomer(shards), here.newcomer(new)
        assert found.users.tolist() == expected.users.tolist()
        np.testing.assert_allclose(found.coef, expected.coef, atol=1e-6)
        rows = new.features[:3], new.users[:3]
        np.testing.assert_allclose(
            found.standard_error(*rows), expected.standard_error(*rows), atol=1e-5
        )


def test_schools_are_those_of_one_process(kept, here, said, monkeypatch):
    found, expected = find_schools(kept[0], said), find_schools(here, said)
    order = np.argsort(found.user_ids)
    assert found.user_ids[order].tolist() == expected.user_ids.tolist()
    assert found.labels[order].tolist() == expected.labels.tolist()
    np.testing.assert_allclose(found.coordinates[order], expected.coordinates, atol=1e-6)
    monkeypatch.setattr("likeminds.rankers.capabilities.MOST_AT_ONCE", 25)
    sampled = find_schools(kept[0], said)
    assert len(sampled.user_ids) == 25
    assert len(set(sampled.user_ids.tolist())) == 25
    assert find_schools(load(kept[1]), said).user_ids.tolist() == sampled.user_ids.tolist()


@pytest.mark.parametrize("on_cluster", [False, True])
def test_everybody_is_ranked_for_in_one_part_for_each_shard(
    kept, here, crowd, tmp_path, on_cluster
):
    client, said = crowd
    items, k = items_of(said), 4
    expected = {one.user: one for one in here.rank_all(items, k=k)}
    for one, n_parts in ((kept[0], 3), (load(kept[1]), 3), (here, 1)):
        made = write_rankings(
            one, tmp_path / "best", items, k=k, client=client if on_cluster else None
        )
        assert names_in(made) == [f"part-{n:05d}.parquet" for n in range(n_parts)]
        table = pq.read_table(made)
        assert table.column_names == ["user", "rank", "item", "score"]
        assert table.num_rows == 40 * k
        for who, rows in table.to_pandas().groupby("user"):
            assert rows["item"].tolist() == expected[who].items.tolist()
            assert rows["rank"].tolist() == [1, 2, 3, 4]
            np.testing.assert_allclose(rows["score"], expected[who].scores, atol=1e-6)
    assert names_in(tmp_path) == ["best"]


def test_rankings_that_fail_leave_what_was_there(kept, here, said, tmp_path):
    items = items_of(said)
    made = write_rankings(here, tmp_path / "best", items, k=1)
    before = pq.read_table(made)
    broken = tmp_path / "broken"
    shutil.copytree(kept[1], broken)
    next(iter(sorted(broken.glob("people-*"), reverse=True))).unlink()
    with pytest.raises(ModelFileError):
        write_rankings(load(broken), made, items, k=2)
    assert pq.read_table(made).equals(before)
    assert names_in(tmp_path) == ["best", "broken"]
    with pytest.raises(FileExistsError):
        write_rankings(here, broken, items)
    for told, call in (
        ("k must be at least 1", lambda: write_rankings(here, made, items, k=0)),
        ("no items to rank", lambda: write_rankings(here, made, {})),
        ("saved without its training items", lambda: write_rankings(kept[0], made)),
    ):
        with pytest.raises(ValueError, match=told):
            call()


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 4])
def test_any_number_of_workers_gives_the_same_people(said, here, tmp_path, n_workers):
    from distributed import Client

    setup = {"n_workers": n_workers, "threads_per_worker": 1, "processes": False}
    with Client(**setup, dashboard_address=":0") as client:
        shards = spread(said, client)
        there = ranker().fit(shards.saved_to(tmp_path / "m"))
        same_people(there, here)
        assert there.score(shards) == pytest.approx(here.score(said), abs=1e-9)
        made = write_rankings(there, tmp_path / "best", items_of(said), k=2, client=client)
        assert len(names_in(made)) == len(shards)
