"""The pictures of shared items show the camps that the conversation was made of."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from tools.shared_items_pictures import CAMPS, SHOWN, TEXTS, draw_ranks, draw_shares
from tools.shared_items_pictures import make_conversation as make

from likeminds import HierarchicalRanker, find_schools


@pytest.mark.slow
def test_the_camps_are_found_and_drawn():
    votes = make()
    ranker = HierarchicalRanker().fit(votes)
    schools = find_schools(ranker, votes, texts=TEXTS)
    camp = np.repeat(np.arange(len(CAMPS)), [size for size, *_ in CAMPS])
    place = [int(str(person).split()[1]) for person in schools.user_ids]
    assert adjusted_rand_score(camp[place], schools.labels) > 0.7
    agreed, divisive = draw_shares(schools).axes
    assert len(agreed.get_yticks()) == len(divisive.get_yticks()) == SHOWN
    names = [label.get_text() for label in agreed.get_yticklabels()]
    assert "Trees along the main street" in names
    ranks = draw_ranks(ranker, votes, "person 207").axes[0]
    assert {label.get_text() for label in ranks.get_yticklabels()} == set(TEXTS.values())
