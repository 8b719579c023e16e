"""scikit-learn's own checks of an estimator, and the exceptions we make, with their reasons."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from likeminds import HierarchicalRanker, ThreeLevelRanker, ThreeLevelRankerCV
from likeminds.baselines import ConsensusOnly, OnePerPerson, RidgeToConsensus

RANKERS = [
    ThreeLevelRanker(),
    ConsensusOnly(),
    OnePerPerson(),
    RidgeToConsensus(),
    HierarchicalRanker(),
    HierarchicalRanker(1, "auc"),
    ThreeLevelRankerCV({"alpha_group": [1.0, 3.0]}, n_folds=2),
]


def exceptions(ranker):
    if isinstance(ranker, ThreeLevelRankerCV):
        return {
            "check_sample_weight_equivalence_on_dense_data": (
                "a row of weight two falls into one fold, two equal rows may fall into two"
            )
        }
    if isinstance(ranker, HierarchicalRanker) and ranker.loss == "logistic":
        return {
            "check_sample_weight_equivalence_on_dense_data": (
                "equal to the tolerance of the search only: see test_hierarchical"
            )
        }
    return {}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(RANKERS, expected_failed_checks=exceptions)
def test_estimator(estimator, check):
    check(estimator)
