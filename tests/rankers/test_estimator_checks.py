"""scikit-learn's own checks of an estimator, and the exceptions we make, with their reasons."""

from functools import partial

import pytest
from sklearn.utils import estimator_checks
from sklearn.utils._testing import assert_allclose_dense_sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

from likeminds import (
    DecomposedRanker,
    HierarchicalRanker,
    LatentClassRanker,
    RankerCV,
    ThreeLevelRanker,
    ThreeLevelRankerCV,
    baselines,
)
from likeminds.baselines import ConsensusOnly, PooledLogistic
from likeminds.components import Consensus, Personal

# One of each kind: given penalties, a learned prior, a baseline, a search.
REPRESENTATIVES = [
    ThreeLevelRanker(),
    HierarchicalRanker(),
    baselines.RidgeToConsensus(),
    RankerCV(ConsensusOnly(), {"alpha": [0.1, 0.01]}, n_folds=2),
]
# Each has a fit of its own.
OTHERS = [
    HierarchicalRanker(1, "auc"),
    LatentClassRanker(),
    DecomposedRanker([Consensus(0.1), Personal(0.2)]),
    baselines.CMTL(),
    baselines.LogisticPerUser(),
    PooledLogistic(),
    baselines.Popularity(unknown="consensus"),  # some checks score new rows
    ThreeLevelRankerCV({"alpha_group": [1.0, 3.0]}, n_folds=2),
]
# These have the fits of others, with penalties or parameters of their own. Those left out know
# items by their ids, which arrays do not have.
LEFT_OUT = {"Factorisation", "PopularityWithFeatures"}
ELSEWHERE = {type(ranker).__name__ for ranker in [*REPRESENTATIVES, *OTHERS]}
ALIKE = [
    *(getattr(baselines, name)() for name in sorted({*baselines.__all__} - LEFT_OUT - ELSEWHERE)),
    RankerCV(PooledLogistic(), {"C": [0.1, 1.0]}, n_folds=2),
]


def exceptions(ranker):
    if isinstance(ranker, ThreeLevelRankerCV | RankerCV):
        return {
            "check_sample_weight_equivalence_on_dense_data": (
                "a row of weight two falls into one fold, two equal rows may fall into two"
            )
        }
    return {}


@pytest.fixture
def six_digits(monkeypatch):
    """Let scikit-learn compare to six digits, where it wants seven."""
    to_six = partial(assert_allclose_dense_sparse, rtol=1e-6)
    monkeypatch.setattr(estimator_checks, "assert_allclose_dense_sparse", to_six)


@pytest.mark.seconds
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(REPRESENTATIVES, expected_failed_checks=exceptions)
def test_estimator(estimator, check, request):
    if isinstance(estimator, HierarchicalRanker) and "sample_weight_equivalence" in str(check):
        # What is known about people is kept in single precision: so are their probabilities.
        request.getfixturevalue("six_digits")
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(OTHERS, expected_failed_checks=exceptions)
def test_other_estimators(estimator, check, request):
    test_estimator(estimator, check, request)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(ALIKE, legacy=False)  # the interface alone: names, parameters, fit
def test_estimators_that_share_a_fit(estimator, check):
    check(estimator)
