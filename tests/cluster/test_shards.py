"""Fitted on a cluster, rankers are what they are when they are fitted here."""

import os
import signal
import threading
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likeminds import (
    HierarchicalRanker,
    ThreeLevelRanker,
    ThreeLevelRankerCV,
    load,
    load_electricity,
    make_schools,
    save,
)
from likeminds.cluster import Shards

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def said():
    made = make_schools(40, 12, 30, 5, n_schools=2, contested=0.6, random_state=0).annotations
    return made._with(user_ids=np.array([f"p{n:02d}" for n in range(40)], dtype=object))


def ranker(**more):
    return HierarchicalRanker(item_effects=False, **more)


@pytest.fixture(scope="module")
def fitted(said):
    return ranker(n_groups=1).fit(said)


@pytest.fixture(scope="module")
def crowd(client, said):
    return client, said


def spread(said, client, parts=None, **more):
    parts = [said[::2], said[1::2]] if parts is None else parts
    named = {"item_ids": said.item_ids, "feature_names": said.feature_names}
    return Shards.from_parts(parts, client, said.features, **named, **more)


def table_of(said, **more):
    columns = {"user": said.users.tolist(), "item": said.items.tolist(), "label": said.labels}
    return pa.table(columns | more)


def same(first, second):
    assert first.users_.tolist() == second.users_.tolist()
    np.testing.assert_allclose(first.coef_, second.coef_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(first.consensus_, second.consensus_, rtol=0, atol=1e-6)


@pytest.mark.slow
@given(
    order=st.randoms(use_true_random=False),
    cuts=st.lists(st.integers(0, 480), max_size=4),
    n_shards=st.integers(1, 7),
)
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_partitioning_gives_the_same_ranker(crowd, fitted, order, cuts, n_shards):
    client, said = crowd
    rows = list(range(len(said)))
    order.shuffle(rows)
    ends = [0, *sorted(cuts), len(rows)]
    whole = table_of(said)
    parts = [whole.take(rows[i:j]) for i, j in pairwise(ends)]
    same(ranker(n_groups=1).fit(spread(said, client, parts, n_shards=n_shards)), fitted)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "auc"])
def test_losses_of_labels_and_the_form_of_omega_are_the_same(client, said, loss):
    given = {"loss": loss} | ({"n_groups": 1} if loss == "auc" else {})
    here, there = ranker(**given).fit(said), ranker(**given).fit(spread(said, client))
    same(there, here)
    assert there.n_groups_ == here.n_groups_
    assert there.score(said) == pytest.approx(here.score(said), abs=1e-9)
    new = said.features[:6], [True, False, True, False, True, True]
    np.testing.assert_allclose(there.newcomer(*new).coef, here.newcomer(*new).coef, atol=1e-6)
    errors = [one.standard_error(said) for one in (there, here)]
    np.testing.assert_allclose(*errors, atol=1e-5)


@pytest.mark.slow
def test_choices_and_weights_are_the_same(client):
    homes = load_electricity()
    homes = homes.of_people(homes.user_ids[:30])
    shards = spread(homes, client, [homes[:500], homes[500:]], group="group", n_shards=3)
    there, here = HierarchicalRanker(n_groups=1).fit(shards), HierarchicalRanker(n_groups=1)
    same(there, here.fit(homes))
    assert there.loss_ == "choice"


@pytest.mark.slow
def test_a_crowd_that_is_sampled_first_is_the_same(client):
    made = make_schools(2100, 6, 50, 3, n_schools=2, contested=0.7, random_state=1).annotations
    same(ranker(n_groups=1).fit(spread(made, client)), ranker(n_groups=1).fit(made))


def test_statistics_are_merged(client, said):
    shards = spread(said, client)
    there = ThreeLevelRanker().fit(shards)
    same(there, ThreeLevelRanker().fit(said))
    few = said[::5]
    assert there.update(few).n_labels_ == len(said) + len(few)


def test_a_ranker_from_a_cluster_is_saved_and_loaded(client, said, fitted, tmp_path):
    there = ranker(n_groups=1).fit(spread(said, client))
    again = load(save(there, tmp_path / "crowd.likeminds"))
    np.testing.assert_allclose(again.decision_function(said), fitted.decision_function(said), 1e-6)
    with pytest.raises(ValueError, match="added"):
        there.update(said[:5])


def test_files_frames_categories_and_empty_partitions(client, said, fitted, tmp_path):
    delayed = pytest.importorskip("dask").delayed
    whole = table_of(said, weight=np.ones(len(said)))
    files = [whole[:100], whole[:0], whole[100:]]
    for number, part in enumerate(files):
        coded = part.set_column(0, "user", part["user"].dictionary_encode())
        pq.write_table(coded, tmp_path / f"{number}.parquet")
    named = {"item_ids": said.item_ids, "n_shards": 5}
    folder = Shards.from_parquet(tmp_path, client, said.features, weight="weight", **named)
    assert "480 labels by 40 people on 30 items" in repr(folder)
    frames = [delayed(part.to_pandas)() for part in files]
    table = dict(zip(said.item_ids.tolist(), said.features, strict=True))
    frame = Shards.from_parts(frames, client, table, n_shards=2)
    same(ranker(n_groups=1).fit(frame), fitted)
    same(ranker(n_groups=1).fit(folder), fitted)


def test_one_giant_person_and_shards_without_anybody(client, said):
    mine = said._with(user_ids=np.array(["one"], dtype=object), user_codes=said.user_codes * 0)
    shards = spread(mine, client, n_shards=6)
    assert len(shards) == 1
    there = ThreeLevelRanker(n_groups=0).fit(shards)
    same(there, ThreeLevelRanker(n_groups=0).fit(mine))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda t: t.drop_columns(["label"]), "Partition 1 has no column label"),
        (lambda t: t.set_column(1, "item", pa.array([99] * len(t))), "Partition 1 .*features: 99"),
        (lambda t: t.set_column(2, "label", pa.array([3] * len(t))), "Partition 1 .*threshold="),
        (lambda t: t.set_column(0, "user", pa.nulls(len(t), pa.string())), "Partition 1 .*without"),
        (lambda t: t.set_column(0, "user", pa.array([7] * len(t))), "int64 in one partition"),
    ],
)
def test_what_is_wrong_with_a_partition_is_said(client, said, change, told):
    whole = table_of(said)
    with pytest.raises(ValueError, match=told):
        spread(said, client, [whole[:100], change(whole[100:])], n_shards=1)


def test_what_cannot_be_fitted_is_refused(client, said, tmp_path):
    shards = spread(said, client)
    with pytest.raises(ValueError, match="item_effects=False"):
        HierarchicalRanker().fit(shards)
    with pytest.raises(ValueError, match="yes or no"):
        ranker(loss="cumulative").fit(shards)
    with pytest.raises(ValueError, match="wide=False"):
        ranker(wide=True).fit(shards)
    with pytest.raises(TypeError, match="folds"):
        ThreeLevelRankerCV().fit(shards)
    with pytest.raises(ValueError, match="one class"):
        ranker().fit(spread(said, client, [table_of(said[said.labels])]))
    with pytest.raises(FileNotFoundError, match="no Parquet files"):
        Shards.from_parquet(tmp_path, client, said.features)
    with pytest.raises(ValueError, match="all partitions are empty"):
        spread(said, client, [table_of(said)[:0]])


def stop_after(n_steps):
    """Return a callback that ends a fit from inside, as a lost client would."""

    def callback(step, value, residual):
        if step == n_steps:
            raise RuntimeError("the client is gone")

    return callback


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 3])
def test_a_fit_goes_on_from_its_checkpoint(client, said, fitted, tmp_path, every):
    shards = spread(said, client, n_shards=3)
    whole = shards.checkpointed(tmp_path / "whole")
    ranker(n_groups=1).fit(whole)
    with pytest.raises(RuntimeError, match="gone"):
        ranker(n_groups=1, callback=stop_after(3)).fit(
            shards.checkpointed(tmp_path / "stopped", every=every)
        )
    resumed = shards.checkpointed(tmp_path / "stopped", resume=True, every=every)
    same(ranker(n_groups=1).fit(resumed), fitted)
    assert 0 < resumed.journal.replayed < whole.traffic.visits
    assert resumed.traffic.visits == whole.traffic.visits - resumed.journal.replayed
    with pytest.raises(ValueError, match="another fit"):
        ranker(n_groups=2).fit(resumed)
    begun = shards.checkpointed(tmp_path / "stopped")
    same(ranker(n_groups=1).fit(begun), fitted)
    assert begun.journal.replayed == 0


def test_an_interrupted_fit_leaves_nothing_on_the_cluster(client, said):
    shards = spread(said, client, n_shards=3)
    with pytest.raises(RuntimeError, match="gone"):
        ranker(n_groups=1, callback=stop_after(1)).fit(shards)
    assert all(not keys for keys in client.processing().values())
    wanted = {future.key for future in shards.said}
    held = {key for key in client.futures if key.split("-")[0] in {"_visit", "_ask", "make_shard"}}
    assert not held
    assert wanted <= set(client.futures)


@pytest.mark.slow
def test_two_fits_at_once_do_not_disturb_each_other(client, said, fitted):
    shards, found = spread(said, client, n_shards=3), {}

    def fit(n_groups):
        found[n_groups] = ranker(n_groups=n_groups).fit(
            Shards(**vars(shards))  # each has traffic of its own
        )

    both = [threading.Thread(target=fit, args=(n_groups,)) for n_groups in (0, 1)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    same(found[1], fitted)
    same(found[0], ranker(n_groups=0).fit(said))


@pytest.mark.slow
def test_a_worker_that_is_killed_in_the_middle_changes_nothing(said, fitted):
    from distributed import Client, LocalCluster

    setup = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**setup) as cluster, Client(cluster) as client:
        shards = spread(said, client, n_shards=4)

        def kill(step, value, residual):
            if step == 2:
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

        same(ranker(n_groups=1, callback=kill).fit(shards), fitted)


@pytest.mark.slow
@pytest.mark.parametrize("n_people", [40, 160])
def test_what_a_visit_sends_does_not_grow_with_the_people(client, n_people):
    made = make_schools(n_people, 12, 30, 5, n_schools=2, contested=0.6, random_state=0)
    shards = spread(made.annotations, client, n_shards=3)
    found = ranker(n_groups=1).fit(shards)
    size, rank = found.crowd_.prior.root.shape[0], 1
    traffic = shards.traffic
    # Mean, residual and directions out; two matrices, a vector and four numbers back.
    out, back = 8 * size * (2 + max(rank, size)), 8 * (2 * size**2 + size + 4)
    assert traffic.sent / traffic.visits / len(shards) < out + 1000
    assert traffic.returned / traffic.visits / len(shards) < back + 1000
