"""Shards of statistics: partitions are reduced where they are read, and fits are the same."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likeminds import (
    Annotations,
    HierarchicalRanker,
    ThreeLevelRanker,
    ThreeLevelRankerCV,
    load,
    load_electricity,
)
from likeminds.baselines import OnePerUser, Popularity
from likeminds.cluster import Shards
from likeminds.cluster.partitions import shards_of
from sharded import QUIET, same, spread, table_of

pytestmark = QUIET

D = 5
# A place and a label; weight, mean and half a matrix, for yes and no.
ROW, ARRAYS = 5, 8 * 2 * (1 + D + D * (D + 1) // 2)


def asked(**more):
    return ThreeLevelRanker(**({"n_groups": 1, "group_shrinkage": 0.1} | more))


@pytest.fixture(scope="module")
def giant(said):
    """Return a crowd in which the first ten people are one, with more than d^2 labels."""
    codes = np.maximum(said.user_codes - 9, 0)
    return said._with(user_ids=said.user_ids[9:], user_codes=codes)


@pytest.fixture(scope="module")
def here(giant):
    return asked().fit(giant)


def wide_table(said, **more):
    """Return rows with their features in columns."""
    columns = {f"x{n}": said.X[:, n] for n in range(said.n_features)}
    return table_of(said, **columns, **more), list(columns)


def cut(table, ends):
    return [table[i:j] for i, j in pairwise([0, *ends, len(table)])]


@pytest.mark.slow
@given(
    order=st.randoms(use_true_random=False),
    ends=st.lists(st.integers(0, 480), max_size=4),
    n_shards=st.integers(1, 5),
    in_rows=st.booleans(),
)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_partitioning_gives_the_same_ranker(  # noqa: PLR0917
    client, giant, here, order, ends, n_shards, in_rows
):
    table, names = wide_table(giant)
    rows = list(range(len(table)))
    order.shuffle(rows)
    parts = cut(table.take(rows), sorted(ends))
    if in_rows:
        shards = Shards.from_parts(parts, client, names, n_shards=n_shards, statistics=True)
    else:
        shards = spread(giant, client, parts, n_shards=n_shards, statistics=True)
    there = asked().fit(shards)
    same(there, here, atol=1e-9)
    assert there.n_labels_ == len(giant)
    if not in_rows:  # whose names are others
        assert there.update(giant[:3]).n_labels_ == len(giant) + 3


@pytest.mark.parametrize("in_rows", [False, True])
def test_files_with_categories_that_differ_and_one_without_rows(
    client, giant, here, tmp_path, in_rows
):
    table, names = wide_table(giant)
    for number, part in enumerate([*cut(table, [90]), table[:0]]):
        coded = part.set_column(0, "user", part["user"].combine_chunks().dictionary_encode())
        pq.write_table(coded, tmp_path / f"{number}.parquet")
    features = names if in_rows else giant.features
    items = {} if in_rows else {"item_ids": giant.item_ids}
    how = {"statistics": True, "n_shards": 3} | items
    shards = Shards.from_folder(tmp_path, client, features, **how)
    assert repr(shards) == "Shards: 480 labels by 31 people, in 3 shards of statistics"
    same(asked().fit(shards), here, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("in_rows", [False, True])
def test_visits_and_other_rankers_of_statistics(client, giant, in_rows, monkeypatch):
    monkeypatch.setattr("likeminds.rankers.statistics_rankers._MERGED_BYTES", 0)
    table, names = wide_table(giant)
    parts = cut(table, [100, 200])
    shards = (
        Shards.from_parts(parts, client, names, n_shards=2, statistics=True)
        if in_rows
        else spread(giant, client, parts, n_shards=2, statistics=True)
    )
    there, here = (asked(n_groups=0).fit(one) for one in (shards, giant))
    assert shards.traffic.visits > 0
    same(there, here, atol=1e-9)
    few = giant[:40]._with(user_ids=np.array([f"q{who}" for who in giant.user_ids]))
    np.testing.assert_allclose(there.newcomer(few).coef, here.newcomer(few).coef, atol=1e-9)
    same(OnePerUser().fit(shards), OnePerUser().fit(giant), atol=1e-9)


def rows_in(part):
    """Return how many rows each person has in a table."""
    users = part["user"].to_pylist()
    return {who: users.count(who) for who in users}


@pytest.mark.slow
def test_what_travels_of_each_person_is_the_smaller(client, giant):
    parts = cut(table_of(giant), [30, 140, 300])
    shards = spread(giant, client, parts, n_shards=3, statistics=True)
    expected, n_arrays = 0, 0
    for part in parts:
        for who, n_rows in rows_in(part).items():
            # Where they are among all people there, and how many rows they have.
            expected += len(who) + min(8 + ROW * n_rows, 4 + ARRAYS)
            n_arrays += ROW * n_rows > ARRAYS
    assert n_arrays == 1  # the first person, in one of the partitions
    assert shards.shuffled == expected
    # Rows: codes of person and item, and a label; ids of both for each partition and shard.
    rows = spread(giant, client, parts, n_shards=3)
    items = sum(
        len(set(zip(mine.tolist(), part["item"].to_pylist(), strict=True)))
        for part in parts
        for mine in [shards_of(part["user"].to_pylist(), 3)]
    )
    users = sum(len(who) + 4 for part in parts for who in rows_in(part))
    assert 9 * len(giant) + 8 * items + users <= rows.shuffled
    assert rows.shuffled <= 9 * len(giant) + 8 * items + users + 20 * len(parts) * 3


def test_rows_travel_with_their_features_where_no_table_has_them(client, giant):
    table, names = wide_table(giant)
    shards = Shards.from_parts(cut(table, [240]), client, names, n_shards=1, statistics=True)
    expected = 0
    for part in cut(table, [240]):
        items = part["item"].to_pylist()
        row = ROW + 8 * D * len(set(items)) / len(part)
        users = rows_in(part)
        few = {who for who, n in users.items() if n < np.ceil(ARRAYS / row)}
        theirs = {i for i, who in zip(items, part["user"].to_pylist(), strict=True) if who in few}
        expected += sum(len(who) for who in users) + 8 * D * len(theirs)
        expected += sum(8 + ROW * n if who in few else 4 + ARRAYS for who, n in users.items())
    assert shards.shuffled == expected
    assert shards.catalogue.features.shape == (1, D)  # no worker has the items


@pytest.mark.slow
def test_features_may_differ_from_row_to_row(client, giant):
    table, names = wide_table(giant)
    moved = giant.X[:, 0] + np.arange(len(giant)) / 100
    table = table.set_column(3, "x0", pa.array(moved))
    shards = Shards.from_parts(cut(table, [200]), client, names, n_shards=2, statistics=True)
    X = np.column_stack([moved, giant.X[:, 1:]])
    same(asked().fit(shards), asked().fit(X, giant.labels, giant.users), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["auc", "least_squares"])
def test_grades_and_weights(client, giant, loss):
    draw = np.random.default_rng(0)
    words = np.array(["bad", "fair", "good"], dtype=object)
    stars = words[np.where(giant.labels, 2, draw.integers(0, 2, len(giant)))]
    weights = draw.integers(0, 4, len(giant)) / 2.0
    given = {"features_per": "item", "item_ids": giant.item_ids, "grades": words.tolist()}
    graded = Annotations(giant.users, giant.items, stars, giant.features, weights=weights, **given)
    table = table_of(giant, weight=weights).set_column(2, "label", pa.array(stars.tolist()))
    how = {"weight": "weight", "grades": words.tolist(), "n_shards": 2, "statistics": True}
    shards = spread(giant, client, cut(table, [20, 200]), **how)
    there = asked(loss=loss).fit(shards)
    same(there, asked(loss=loss).fit(graded), atol=1e-9)
    assert there.label_reading_ == graded.reading


@pytest.mark.slow
def test_choices_count_as_labels_as_they_do_here(client):
    homes = load_electricity()
    homes = homes.of_users(homes.user_ids[:20])
    parts = [homes[:300], homes[300:]]
    shards = spread(homes, client, parts, choice_set="choice_set", n_shards=2, statistics=True)
    same(asked().fit(shards), asked().fit(homes), atol=1e-9)


@pytest.mark.slow
def test_a_fit_goes_on_from_its_checkpoint_and_people_are_put_away(
    client, giant, tmp_path, monkeypatch
):
    monkeypatch.setattr("likeminds.rankers.statistics_rankers._MERGED_BYTES", 0)
    given = {"n_groups": 0}

    def fail(step, objective, residual):
        raise RuntimeError("out of luck")

    shards = spread(giant, client, n_shards=2, statistics=True)
    with pytest.raises(RuntimeError):
        asked(**given, callback=fail).fit(shards.checkpointed(tmp_path / "fit"))
    again = shards.checkpointed(tmp_path / "fit", resume=True).saved_to(tmp_path / "m")
    asked(**given).fit(again)
    assert again.journal.replayed > 0
    found = load(tmp_path / "m").decision_function(giant)
    expected = asked(**given).fit(giant).decision_function(giant)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    other = giant._with(features=giant.features * 2.0)
    shards = spread(other, client, n_shards=2, statistics=True)
    with pytest.raises(ValueError, match="another fit"):
        asked(**given).fit(shards.checkpointed(tmp_path / "fit", resume=True))


def test_what_needs_rows_is_refused(client, giant, here):
    shards = spread(giant, client, statistics=True)
    for needs_rows in (
        HierarchicalRanker().fit,
        ThreeLevelRankerCV().fit,
        here.score,
        here.newcomer,
    ):
        with pytest.raises(TypeError):
            needs_rows(shards)
    with pytest.raises(TypeError):
        Popularity().fit(shards)
    for told, call in (
        (
            "Statistics need features",
            lambda: Shards.from_parts([table_of(giant)], client, statistics=True),
        ),
        (
            r'threshold="median" .*leave out statistics=True',
            lambda: spread(giant, client, threshold="median", statistics=True),
        ),
        (
            "one class",
            lambda: asked().fit(
                spread(giant, client, [table_of(giant[giant.labels])], statistics=True)
            ),
        ),
    ):
        with pytest.raises(ValueError, match=told):
            call()


@pytest.mark.parametrize(
    ("column", "values", "told"),
    [
        ("user", [7.5] * 380, "texts in Partition 0, but double in Partition 1"),
        ("x0", [np.nan] * 380, "Partition 1: features contains NaN"),
        ("x0", ["tall"] * 380, "Partition 1: Features must be numbers.*x0"),
        ("weight", [-1.0] * 380, "Partition 1: .*weights"),
        ("label", [None] * 380, "Partition 1 has 380 rows without a label"),
    ],
)
def test_what_is_wrong_is_said_with_its_partition(client, giant, column, values, told):
    table, names = wide_table(giant, weight=np.ones(len(giant)))
    first, second = cut(table, [100])
    second = second.set_column(second.column_names.index(column), column, pa.array(values))
    with pytest.raises(ValueError, match=told):
        Shards.from_parts([first, second], client, names, weight="weight", statistics=True)
