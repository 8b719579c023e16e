"""Choice experiments in long tables: alternatives, constants, availability."""

import logging

import numpy as np
import pandas as pd
import pytest

from likeminds import Annotations, HierarchicalRanker
from likeminds.data.alternatives import independent, null_space

RNG = np.random.default_rng(0)
N_SETS, N_ALTERNATIVES = 60, 4


def long_table(**more):
    """Return choices among four alternatives as an mlogit user has them."""
    sets = np.repeat(np.arange(N_SETS), N_ALTERNATIVES)
    price = np.random.default_rng(1).normal(size=len(sets)).round(3)
    chosen = np.zeros(len(sets), dtype=int)
    chosen[np.arange(N_SETS) * N_ALTERNATIVES + np.random.default_rng(2).integers(4, size=60)] = 1
    columns = {
        "id": sets // 6,
        "chid": sets,
        "alt": np.tile(np.arange(1, 5), N_SETS),
        "chosen": chosen,
        "price": price,
    }
    return pd.DataFrame(columns | more)


def test_alternatives_become_constants_relative_to_a_base(caplog):
    with caplog.at_level(logging.INFO, "likeminds"):
        said = Annotations.from_frame(long_table())
    assert said.feature_names == ("price", "alt: 2", "alt: 3", "alt: 4")
    assert "relative to 1" in caplog.text
    assert said.X[:4, 1:].tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert repr(said) == "Annotations: 60 choices among 4 by 10 people, 4 features"
    assert said.n_choices == 60
    other = Annotations.from_frame(long_table(), base=3)
    assert other.feature_names == ("price", "alt: 1", "alt: 2", "alt: 4")
    assert Annotations.from_frame(long_table(), constants=False).feature_names == ("price",)


def test_constants_that_a_model_knows_are_made_again():
    known = ["price", "alt: 2", "alt: 4"]
    said = Annotations.from_frame(long_table(), features=known)
    assert said.feature_names == tuple(known)
    assert said.X[:4, 1:].tolist() == [[0, 0], [1, 0], [0, 0], [0, 1]]


def test_features_that_imply_constants_or_never_vary_within_sets(caplog):
    table = long_table()
    brands = {f"brand_{k}": (table["alt"] == k).astype(float) for k in range(1, 5)}
    with caplog.at_level(logging.INFO, "likeminds"):
        said = Annotations.from_frame(long_table(**brands, income=table["id"] * 100.0))
    assert said.feature_names == ("price", *brands)
    assert "income" in caplog.text
    two = {name: brands[name] for name in ("brand_2", "brand_3")}
    assert Annotations.from_frame(long_table(**two)).feature_names == ("price", *two, "alt: 4")


def test_rows_that_were_not_available_are_left_out():
    table = long_table(av=1)
    table.loc[[1, 6, 7], "av"] = 0
    table.loc[:7, "chosen"] = [1, 0, 0, 0, 1, 0, 0, 0]
    said = Annotations.from_frame(table)
    assert said.statements() == "60 choices among 2 to 4"
    assert len(said) == len(table) - 3
    assert said.feature_names == ("price", "alt: 2", "alt: 3", "alt: 4")


def test_available_items_of_choices():
    shown = [["tea", "milk", "rum"]] * 2
    said = Annotations.from_choices(
        ["ann", "bob"], shown, ["tea", "rum"], availability=[[1, 1, 0], [1, 1, 1]]
    )
    assert said.statements() == "2 choices among 2 to 3"


def test_one_choice_of_each_user_needs_no_column_of_sets():
    table = long_table().drop(columns="id").rename(columns={"chid": "id"})
    assert Annotations.from_frame(table).statements() == "60 choices among 4"


def test_other_tables_keep_columns_with_such_names():
    heights = pd.DataFrame(
        {
            "user": [1, 1, 2],
            "item": [1, 2, 1],
            "label": [0, 1, 1],
            "alt": [5, 5, 5],
            "av": [0, 1, 0],
        }
    )
    said = Annotations.from_frame(heights)
    assert said.feature_names == ("alt", "av")
    assert len(said) == 3


def test_dependence():
    columns = RNG.normal(size=(50, 4))
    columns[:, 2] = columns[:, 0] - columns[:, 1]
    part = (null_space(columns.T @ columns) ** 2).sum(axis=1)
    np.testing.assert_array_equal(part > 1e-6, [True, True, True, False])
    np.testing.assert_array_equal(independent(columns, 2, 50), [False, True])


def test_a_dependent_feature_is_named_where_it_must_be_known():
    table = long_table()
    brands = {f"brand_{k}": (table["alt"] == k).astype(float) for k in range(1, 5)}
    said = Annotations.from_frame(long_table(**brands))
    with pytest.raises(ValueError, match="brand_1, brand_2, brand_3, brand_4"):
        HierarchicalRanker(fixed=["price"]).fit(said)
    same = Annotations.from_frame(
        long_table(age=table["id"] * 1.0), features=["price", "age"], constants=False
    )
    with pytest.raises(ValueError, match="age"):
        HierarchicalRanker(draws=20).fit(same)
