"""scikit-learn's own checks of an estimator: every ranker passes them all."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from likeminds import ThreeLevelRanker
from likeminds.baselines import ConsensusOnly, OnePerPerson, RidgeToConsensus


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([ThreeLevelRanker(), ConsensusOnly(), OnePerPerson(), RidgeToConsensus()])
def test_estimator(estimator, check):
    check(estimator)
