"""The best items for everybody are those of each person."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likeminds import HierarchicalRanker, ThreeLevelRanker, make_schools
from likeminds.baselines import Popularity
from likeminds.rankers import ranking
from likeminds.rankers.ranking import best_items, best_of


@given(st.integers(1, 60), st.integers(1, 12), st.integers(1, 4), st.integers(0, 99))
def test_the_best_are_those_of_a_stable_sort(n_items, k, n_values, seed):
    scores = np.random.default_rng(seed).integers(n_values, size=n_items).astype(float)
    assert best_of(scores, k).tolist() == np.argsort(-scores, kind="stable")[:k].tolist()


@pytest.mark.parametrize("kind", ["apart", "tied", "nearly tied", "huge", "tiny", "zero"])
@pytest.mark.parametrize("n_items", [1, 40, 3000])
def test_the_best_are_those_of_double_precision(kind, n_items, monkeypatch):
    """Single precision says who may be among the best, and never who is."""
    monkeypatch.setattr(ranking, "_BLOCK_BYTES", 3 * 4 * n_items)
    rng = np.random.default_rng(0)
    weights, rows = rng.standard_normal((7, 5)), rng.standard_normal((n_items, 5))
    if kind == "tied":
        rows = rows[rng.integers(min(n_items, 20), size=n_items)]
    if kind == "nearly tied":
        rows = rows[rng.integers(min(n_items, 50), size=n_items)] + 1e-9 * rows
    rows *= {"huge": 1e150, "tiny": 1e-150, "zero": 0.0}.get(kind, 1.0)
    exact = np.einsum("id,pd->pi", rows, weights)
    found = list(best_items(weights.__getitem__, len(weights), rows, 10))
    for scores, (places, best) in zip(exact, found, strict=True):
        expected = np.sort(scores)[::-1][:10]
        np.testing.assert_allclose(best, expected, rtol=1e-13)
        np.testing.assert_allclose(scores[places], expected, rtol=1e-13)
        assert len(set(places.tolist())) == len(places)
        if kind != "nearly tied":
            assert places.tolist() == np.argsort(-scores, kind="stable")[:10].tolist()


def test_scores_that_are_no_products_are_ranked_person_by_person():
    said = make_schools(6, 20, 30, 8, 2, random_state=0).annotations
    ranker = Popularity().fit(said)
    for one in ranker.rank_all(said, k=4):
        assert one.items.tolist() == ranker.rank(one.user, said, k=4).items.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    "ranker", [ThreeLevelRanker(), HierarchicalRanker(n_groups=1, n_item_factors=1)]
)
def test_everybody_gets_what_each_person_gets(ranker, monkeypatch):
    said = make_schools(10, 40, 60, 8, 2, random_state=0).annotations
    ranker.fit(said)
    monkeypatch.setattr(ranking, "_BLOCK_BYTES", 3 * 4 * said.n_items)
    found = list(ranker.rank_all(said, k=5))
    assert [one.user for one in found] == ranker.users_.tolist()
    for one in found:
        alone = ranker.rank(one.user, said, k=5)
        assert one.items.tolist() == alone.items.tolist()
        np.testing.assert_allclose(one.scores, alone.scores)


def test_nothing_to_rank_is_refused():
    said = make_schools(6, 20, 30, 8, 2, random_state=0).annotations
    ranker = ThreeLevelRanker().fit(said)
    with pytest.raises(ValueError):
        next(ranker.rank_all(said, k=0))
