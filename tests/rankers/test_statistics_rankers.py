"""What rankers say before they fit."""

import pytest

from likeminds.rankers.statistics_rankers import refuse_too_wide


def test_the_papers_ranker_says_what_wide_features_take():
    with pytest.warns(UserWarning, match="GiB"):
        refuse_too_wide("ThreeLevelRanker", 2000)
    with pytest.raises(ValueError):
        refuse_too_wide("ThreeLevelRanker", 20_000)
