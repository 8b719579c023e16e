"""The best items for everybody are those of each person."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likeminds import HierarchicalRanker, ThreeLevelRanker, make_schools
from likeminds.rankers import everybody
from likeminds.rankers.everybody import best_of_each


@given(st.integers(1, 60), st.integers(1, 12), st.integers(1, 4), st.integers(0, 99))
def test_the_best_are_those_of_a_stable_sort(n_items, k, n_values, seed):
    scores = np.random.default_rng(seed).integers(n_values, size=(3, n_items)).astype(float)
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    assert best_of_each(scores, k).tolist() == expected.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    "ranker", [ThreeLevelRanker(), HierarchicalRanker(n_groups=1, n_item_factors=1)]
)
def test_everybody_gets_what_each_person_gets(ranker, monkeypatch):
    said = make_schools(10, 40, 60, 8, 2, random_state=0).annotations
    ranker.fit(said)
    monkeypatch.setattr(everybody, "_BLOCK_BYTES", 3 * 8 * said.n_items)
    found = list(ranker.rank_everybody(said, k=5))
    assert [one.person for one in found] == ranker.users_.tolist()
    for one in found:
        alone = ranker.rank(one.person, said, k=5)
        assert one.items.tolist() == alone.items.tolist()
        np.testing.assert_allclose(one.scores, alone.scores)


def test_nothing_to_rank_is_refused():
    said = make_schools(6, 20, 30, 8, 2, random_state=0).annotations
    ranker = ThreeLevelRanker().fit(said)
    with pytest.raises(ValueError, match="k must be at least 1"):
        next(ranker.rank_everybody(said, k=0))
