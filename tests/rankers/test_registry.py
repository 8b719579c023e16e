import numpy as np
import pytest

import likeminds
from likeminds import RankerCV, ThreeLevelRanker, baselines, default_rankers
from likeminds.paper.experiments import published
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.registry import PAPER_BASELINES, RANKERS, as_rankers, ranker_called


def _public_rankers():
    public = [getattr(place, name) for place in (likeminds, baselines) for name in place.__all__]
    return {one for one in public if isinstance(one, type) and issubclass(one, Ranker)}


def test_every_public_ranker_is_in_the_registry():
    assert set(RANKERS.values()) == _public_rankers()
    assert all(kind.__name__ == name for name, kind in RANKERS.items())


def test_all_lists_of_rankers_come_from_the_registry():
    assert set(RANKERS) - set(default_rankers()) == {"DecomposedRanker", "RankerCV"}
    assert all(ranker_called(name.upper())[0] == name for name in default_rankers())


def test_baselines_have_the_names_and_the_order_of_the_paper():
    assert [*PAPER_BASELINES, "Ours"] == list(published.TABLE_1)


def test_what_is_tuned_and_what_is_compared_as_it_is():
    given = [ThreeLevelRanker(), baselines.RMTL(), baselines.Popularity()]
    named = as_rankers(given, n_folds=3, random_state=1)
    searches = {name for name, ranker in named.items() if isinstance(ranker, RankerCV)}
    assert searches == {"RMTL"}
    assert named["RMTL"].n_folds == default_rankers(3)["ThreeLevelRankerCV"].n_folds == 3


@pytest.mark.parametrize("name", sorted(default_rankers()))
def test_crowds_without_features_are_fitted_or_refused_in_a_sentence(name):
    rng = np.random.default_rng(0)
    person, item = np.divmod(np.arange(400), 20)
    votes = likeminds.Annotations(
        users=person, items=[f"s{j}" for j in item], labels=rng.random(400) < 0.3 + 0.02 * item
    )
    ranker = default_rankers(n_folds=2)[name]
    if name in {"HierarchicalRanker", "Factorisation", "Popularity", "PopularityWithFeatures"}:
        assert ranker.fit(votes).score(votes) > 0.5
    else:
        with pytest.raises(ValueError):
            ranker.fit(votes)
