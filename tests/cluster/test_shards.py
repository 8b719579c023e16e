"""Fitted on a cluster, rankers are what they are when they are fitted here."""

import threading
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.cluster import make_crowd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import csv
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from likeminds import (
    Annotations,
    HierarchicalRanker,
    RankerCV,
    ThreeLevelRanker,
    ThreeLevelRankerCV,
    load,
    load_electricity,
    make_schools,
    save,
)
from likeminds.baselines import PopularityWithFeatures
from likeminds.cluster import Shards
from likeminds.cluster.partitions import (
    PartitionColumns,
    kinds_of_columns,
    mixed_ids,
    read_part,
)
from sharded import QUIET, ranker, same, spread, table_of

pytestmark = [*QUIET, pytest.mark.seconds]


def given_by(said):
    rows = {"users": said.users, "items": said.items, "labels": said.labels}
    items = {"features": said.features, "item_ids": said.item_ids, "features_per": "item"}
    return rows | items


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
    parts = [whole.take(pa.array(rows[i:j], pa.int64())) for i, j in pairwise(ends)]
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


@pytest.mark.seconds
def test_choices_and_weights_are_the_same(client):
    homes = load_electricity()
    homes = homes.of_users(homes.user_ids[:30])
    shards = spread(homes, client, [homes[:500], homes[500:]], n_shards=3)
    there, here = HierarchicalRanker(n_groups=1).fit(shards), HierarchicalRanker(n_groups=1)
    same(there, here.fit(homes))
    assert there.loss_ == "choice"


def pairs(n=400):
    rng = np.random.default_rng(0)
    users, first = rng.integers(0, 20, n), rng.integers(0, 10, n)
    second = (first + rng.integers(1, 10, n)) % 10
    features = rng.normal(size=(10, 2))
    lead = np.sum((features[first] - features[second]) * rng.normal(1.0, 1.0, (20, 2))[users], 1)
    wins = lead + rng.logistic(size=n) > 0
    winners, losers = np.where(wins, first, second), np.where(wins, second, first)
    ties = np.abs(lead) < 0.5
    return Annotations.from_comparisons(
        users, winners, losers, features=dict(enumerate(features)), ties=ties
    )


@pytest.mark.seconds
@pytest.mark.parametrize("given", [{"item_effects": False}, {"n_item_factors": 0}])
def test_ties_are_the_same_wherever_the_pairs_of_a_user_are(client, given):
    said = pairs()
    first = said.choice_set_codes % 2 == 0
    shards = spread(said, client, [said[first], said[~first]], n_shards=3)
    there, here = HierarchicalRanker(**given).fit(shards), HierarchicalRanker(**given).fit(said)
    same(there, here)
    nu = there.prior_.likelihood.nu
    assert nu == pytest.approx(here.prior_.likelihood.nu, rel=1e-9)


@pytest.mark.seconds
def test_best_and_worst_choices_are_the_same(client):
    rng = np.random.default_rng(0)
    sets = [rng.permutation(8)[:4].tolist() for _ in range(120)]
    users = [f"p{n % 12:02d}" for n in range(120)]
    liked = rng.normal(size=(12, 8)) + np.arange(8)
    ordered = [sorted(one, key=liked[n % 12].__getitem__) for n, one in enumerate(sets)]
    items = dict(enumerate(rng.normal(size=(8, 2))))
    said = Annotations.from_best_worst(
        users, sets, [one[-1] for one in ordered], [one[0] for one in ordered], features=items
    )
    assert said.picks_worst.any()
    first = said.choice_set_codes % 2 == 0
    shards = spread(said, client, [said[first], said[~first]], n_shards=3)
    ranker = HierarchicalRanker(item_effects=False)
    same(clone(ranker).fit(shards), ranker.fit(said))


def test_choice_sets_and_weights_are_found_by_their_usual_names():
    names = ["user", "item", "label", "chid", "weight", "group"]
    found = PartitionColumns(choice_set="chid").found_in(names)
    assert (found["choice_set"], found["weight"]) == ("chid", "weight")
    assert PartitionColumns().found_in(names[:3], ["weight"]).keys() == {"user", "item", "label"}
    with pytest.raises(ValueError, match="choice_set: chid, group"):
        PartitionColumns().found_in(names)


def test_partitions_with_other_columns_are_refused():
    rows = {"user": ["ann"], "item": ["boot"], "label": [1]}
    tables = {"first": pa.table(rows), "second": pa.table(rows | {"choice_set": [1]})}
    columns = PartitionColumns()
    found = [
        kinds_of_columns(read_part(table, name, columns, None, ()), name)
        for name, table in tables.items()
    ]
    with pytest.raises(ValueError, match="first has no column choice_set, but second has one"):
        mixed_ids(found)


@pytest.mark.slow
def test_choices_beside_labels_of_single_items_are_the_same(client):
    homes = load_electricity()
    homes = homes.of_users(homes.user_ids[:20])
    groups = homes.choice_set_codes.copy()
    single = np.arange(len(homes)) % 16 < 4  # the first choice of some is four labels
    groups[single] = groups.max() + 1 + np.arange(single.sum())
    table = table_of(homes, choice_set=groups)
    shards = spread(homes, client, [table[::2], table[1::2]], choice_set="choice_set", n_shards=3)
    there = HierarchicalRanker(n_groups=1).fit(shards)
    items = {"item_ids": homes.item_ids, "features_per": "item"}
    said = Annotations(
        homes.users, homes.items, homes.labels, homes.features, choice_sets=groups, **items
    )
    same(there, HierarchicalRanker(n_groups=1).fit(said))
    assert there.loss_ == "mixed"


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        {"fixed": ["local_company"], "signs": {"price": -1}},
        {"signs": {"price": -1}, "distributions": {"price": "lognormal"}},
    ],
)
def test_simulated_likelihoods_are_the_same(client, given):
    homes = load_electricity()
    homes = homes.of_users(homes.user_ids[:25])
    asked = HierarchicalRanker(n_groups=1, draws=16, max_iter=2, **given)
    shards = spread(homes, client, [homes[:300], homes[300:]], choice_set="choice_set", n_shards=3)
    with pytest.warns(ConvergenceWarning):
        there, here = clone(asked).fit(shards), clone(asked).fit(homes)
    same(there, here)
    assert there.objective_ == pytest.approx(here.objective_, abs=1e-6)
    found, expected = (one.standard_error(homes) for one in (there, here))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    with pytest.raises(ValueError, match=r"fitted on a cluster.*Pass annotations="):
        there.summary()


@pytest.mark.slow
def test_a_crowd_that_is_sampled_first_is_the_same(client):
    made = make_schools(2100, 6, 50, 3, n_schools=2, contested=0.7, random_state=1).annotations
    same(ranker(n_groups=1).fit(spread(made, client)), ranker(n_groups=1).fit(made))


@pytest.mark.slow
@pytest.mark.parametrize("few", [2000, 200])
def test_a_large_crowd_learns_from_a_sample_and_is_corrected(client, few, monkeypatch):
    # Samples come to this process, or, where they are larger than a few, stay in their shards.
    monkeypatch.setattr("likeminds.cluster.executor._FEW", few)
    monkeypatch.setattr("likeminds.mixed_model.fit_prior._FEWEST", 300)
    users, items, labels, features = make_crowd(1300, 8, 5)
    some = np.random.default_rng(0).random(len(users)) < 0.7  # more labels than features, or fewer
    given = {"features_per": "item", "item_ids": np.arange(len(features))}
    made = Annotations(users[some], items[some], labels[some], features, **given)
    asked = ranker(n_groups=1, tol=1e-4)
    here, there = (clone(asked).fit(one) for one in (made, spread(made, client, n_shards=3)))
    assert here.sampling_ is not None
    assert (there.sampling_.n_learned, there.sampling_.n_asked) == (
        here.sampling_.n_learned,
        here.sampling_.n_asked,
    )
    assert there.sampling_.n_steps == here.sampling_.n_steps
    same(there, here)


def test_statistics_are_merged(client, said):
    shards = spread(said, client)
    there = ThreeLevelRanker().fit(shards)
    same(there, ThreeLevelRanker().fit(said))
    few = said[::5]
    assert there.update(few).n_labels_ == len(said) + len(few)


@pytest.mark.parametrize("n_shards", [1, 3])
def test_a_search_chooses_the_same_from_statistics_of_folds(client, said, n_shards):
    given = {"param_grid": {"alpha_group": [0.3, 3.0], "n_groups": [0, 1]}, "n_folds": 3}
    here = ThreeLevelRankerCV(**given).fit(said[::-1])
    there = ThreeLevelRankerCV(**given).fit(spread(said, client, n_shards=n_shards))
    assert there.best_params_ == here.best_params_
    scores = [one.cv_results_["mean_test_score"] for one in (there, here)]
    np.testing.assert_allclose(*scores, atol=1e-9)
    same(there, here)


def test_a_ranker_from_a_cluster_is_saved_and_loaded(client, said, fitted, tmp_path):
    there = ranker(n_groups=1).fit(spread(said, client))
    again = load(save(there, tmp_path / "crowd.likeminds"))
    np.testing.assert_allclose(again.decision_function(said), fitted.decision_function(said), 1e-6)
    with pytest.raises(ValueError, match="added"):
        there.update(said[:5])


@pytest.mark.parametrize("by_items", [True, False])
def test_ids_that_are_numbers_in_some_partitions_are_read_alike(client, said, tmp_path, by_items):
    codes = {"user": said.user_codes, "item": said.item_codes, "label": said.labels.astype(int)}
    numbers = pa.table(codes)
    texts = numbers.cast(
        pa.schema([("user", pa.string()), ("item", pa.string()), ("label", "int64")])
    )
    coded = texts.set_column(0, "user", texts["user"].dictionary_encode())
    pq.write_table(numbers[:150], tmp_path / "0.parquet")
    pq.write_table(coded[150:300], tmp_path / "1.parquet")
    csv.write_csv(numbers[300:], tmp_path / "2.csv")
    items = {}
    if by_items:
        items = {"features": said.features, "item_ids": np.arange(said.n_items).astype(str)}
    shards = Shards.from_folder(tmp_path, client, **items, n_shards=3)
    assert "480 labels by 40 people on 30 items" in repr(shards)
    assert shards.counts.user_ids.tolist() == [str(k) for k in range(40)]


def test_files_frames_categories_and_empty_partitions(client, said, fitted, tmp_path):
    delayed = pytest.importorskip("dask").delayed
    whole = table_of(said, weight=np.ones(len(said)))
    files = [whole[:100], whole[:0], whole[100:]]
    for number, part in enumerate(files):
        coded = part.set_column(0, "user", part["user"].dictionary_encode())
        pq.write_table(coded, tmp_path / f"{number}.parquet")
    named = {"item_ids": said.item_ids, "n_shards": 5}
    folder = Shards.from_folder(tmp_path, client, said.features, weight="weight", **named)
    assert "480 labels by 40 people on 30 items" in repr(folder)
    frames = [delayed(part.to_pandas)() for part in files]
    table = dict(zip(said.item_ids.tolist(), said.features, strict=True))
    frame = Shards.from_parts(frames, client, table, n_shards=2)
    same(ranker(n_groups=1).fit(frame), fitted)
    same(ranker(n_groups=1).fit(folder), fitted)


def test_items_are_joined_from_a_table_or_found_in_the_rows(client, said, fitted, tmp_path):
    whole = table_of(said)
    names = [str(name) for name in said.feature_names]
    columns = dict(zip(names, said.features.T, strict=True))
    pq.write_table(pa.table({"item": said.item_ids.tolist()} | columns), tmp_path / "items.parquet")
    joined = Shards.from_parts([whole[:99], whole[99:]], client, tmp_path / "items.parquet")
    same(ranker(n_groups=1).fit(joined), fitted)
    # A file may write the numbers that items are in one partition as texts.
    texts = whole.set_column(1, "item", whole["item"].cast(pa.string()))
    spelled = Shards.from_parts([whole[:99], texts[99:]], client, tmp_path / "items.parquet")
    same(ranker(n_groups=1).fit(spelled), fitted)
    each = {name: said.X[:, place] for place, name in enumerate(names)}
    wide = table_of(said, **each)
    inside = Shards.from_parts([wide[:99], wide[99:]], client, names)
    assert inside.catalogue.names == tuple(names)
    same(ranker(n_groups=1).fit(inside), fitted)
    frame = pytest.importorskip("dask.dataframe").from_pandas(wide.to_pandas(), npartitions=3)
    same(ranker(n_groups=1).fit(Shards.from_frame(frame, client, names)), fitted)
    other = wide.set_column(3, names[0], pa.array(np.arange(len(wide)) / 7.0))
    with pytest.raises(ValueError, match="Partition 1 has different features in the rows of item"):
        Shards.from_parts([wide[:99], other[99:]], client, names)
    moved = wide.set_column(3, names[0], pa.array(said.X[:, 0] + 1.0))
    with pytest.raises(ValueError, match="different features in Partition 0 and Partition 1"):
        Shards.from_parts([wide[:99], moved[99:]], client, names)


def test_ids_that_look_like_numbers_in_one_shard_and_not_in_another(client, said):
    # Texts that are all numbers are in the order of numbers, others in that of texts.
    named = np.array(["a1", *(str(n) for n in range(1, said.n_users))], dtype=object)
    mixed = said._with(user_ids=named)
    here = ranker(n_groups=1).fit(Annotations(**given_by(mixed)))
    same(ranker(n_groups=1).fit(spread(mixed, client, n_shards=5)), here)


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
        (lambda t: t.set_column(2, "label", pa.array(["no"] * len(t))), "texts in Partition 1"),
        (lambda t: t.set_column(0, "user", pa.nulls(len(t), pa.string())), "Partition 1 .*without"),
        (lambda t: t.set_column(0, "user", pa.array([7.5] * len(t))), "in Partition 0, but double"),
    ],
)
def test_what_is_wrong_with_a_partition_is_said(client, said, change, told):
    whole = table_of(said)
    with pytest.raises(ValueError, match=told):
        spread(said, client, [whole[:100], change(whole[100:])], n_shards=1)


def test_what_cannot_be_fitted_is_refused(client, said, tmp_path):
    shards = spread(said, client)
    fitted_there = ranker(n_groups=0, max_iter=1, tol=1.0).fit(shards)
    for told, call in (
        ("wide=False", lambda: ranker(wide=True).fit(shards)),
        (r"users take .* GiB. Lower draws", lambda: ranker(draws=10**7).fit(shards)),
        (r"fitted on a cluster.*newcomer", lambda: fitted_there.update(said[:5])),
        ("one class", lambda: ranker().fit(spread(said, client, [table_of(said[said.labels])]))),
        ("no Parquet", lambda: Shards.from_folder(tmp_path, client, said.features)),
        ("all partitions are empty", lambda: spread(said, client, [table_of(said)[:0]])),
    ):
        with pytest.raises(ValueError, match=told):
            call()
    delayed = pytest.importorskip("dask").delayed(said)
    for told, call in (
        ("rows", lambda: RankerCV(HierarchicalRanker(), {"n_groups": [0, 1]}).fit(shards)),
        ("from_frame", lambda: ranker().fit(delayed)),
        ("AnnotationFolder", lambda: ranker().fit(tmp_path)),
        ("cluster", lambda: PopularityWithFeatures().fit(shards)),
    ):
        with pytest.raises(TypeError, match=told):
            call()


def stop_after(n_steps):
    """Return a callback that ends a fit from inside, as a lost client would."""

    def callback(step, value, residual):
        if step == n_steps:
            raise RuntimeError("the client is gone")

    return callback


@pytest.mark.seconds
def test_a_fit_goes_on_from_its_checkpoint(client, said, fitted, tmp_path):
    shards = spread(said, client, n_shards=3)
    whole = shards.checkpointed(tmp_path / "whole")
    ranker(n_groups=1).fit(whole)
    with pytest.raises(RuntimeError):
        ranker(n_groups=1, callback=stop_after(3)).fit(shards.checkpointed(tmp_path / "stopped"))
    resumed = shards.checkpointed(tmp_path / "stopped", resume=True)
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
    with pytest.raises(RuntimeError):
        ranker(n_groups=1, callback=stop_after(1)).fit(shards)
    assert all(not keys for keys in client.processing().values())
    wanted = {future.key for future in shards.parts}
    held = {
        key for key in client.futures if key.split("-")[0] in {"_map_reduce", "_map", "_derive"}
    }
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
@pytest.mark.parametrize("n_users", [40, 160])
def test_what_a_visit_sends_does_not_grow_with_the_people(client, n_users):
    made = make_schools(n_users, 12, 30, 5, n_schools=2, contested=0.6, random_state=0)
    shards = spread(made.annotations, client, n_shards=3)
    found = ranker(n_groups=1).fit(shards)
    size, rank = found.prior_.prior.root.shape[0], 1
    traffic = shards.traffic
    # Mean, residual and directions out; two matrices, a vector and four numbers back.
    out, back = 8 * size * (2 + max(rank, size)), 8 * (2 * size**2 + size + 4)
    assert traffic.sent / traffic.visits / len(shards) < out + 1000
    assert traffic.returned / traffic.visits / len(shards) < back + 1000
