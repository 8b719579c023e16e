"""People who rank alike, and items that the same people like, against plain correlations."""

import numpy as np
import pytest

from likeminds import HierarchicalRanker, ThreeLevelRanker, make_schools


@pytest.fixture(scope="module", params=[HierarchicalRanker, ThreeLevelRanker])
def fitted(request):
    crowd = make_schools(25, 20, 30, 6, n_schools=2, random_state=1).annotations
    ranker = request.param().fit(crowd)
    ids, features = crowd.distinct_items()
    users = ranker.users_
    scores = np.stack([ranker.decision_function(features, [p] * len(ids), ids) for p in users])
    return ranker, users, crowd, scores


def test_people_by_the_correlation_of_their_scores(fitted):
    ranker, users, crowd, scores = fitted
    plain = np.corrcoef(scores)[3]
    found = ranker.similar_users(users[3], k=None, items=crowd)
    assert len(found) == len(users) - 1
    assert users[3] not in found.ids
    by_user = dict(zip(users, plain, strict=True))
    assert found.likeness == pytest.approx([by_user[one] for one in found.ids])
    assert np.all(np.diff(found.likeness) <= 0)


def test_items_by_the_correlation_of_their_scores_over_people(fitted):
    ranker, _, crowd, scores = fitted
    ids = crowd.item_ids
    centred = scores - scores.mean(axis=1, keepdims=True)
    plain = np.corrcoef(centred.T)[7]
    found = ranker.similar_items(ids[7], k=5, items=crowd)
    by_item = dict(zip(ids, plain, strict=True))
    assert found.likeness == pytest.approx([by_item[one] for one in found.ids])
    assert found.likeness[0] == pytest.approx(np.delete(plain, 7).max())


def test_as_a_table_and_a_page(fitted):
    ranker, users, crowd, _ = fitted
    found = ranker.similar_users(users[0], k=4, items=crowd)
    assert found.table().column_names == ["user", "likeness"]
    assert [one for one, _ in found] == found.ids.tolist()
    assert "<table>" in ranker.similar_items(crowd.item_ids[0], items=crowd)._repr_html_()
    assert repr(found).startswith(f"Users most like {users[0]}: ")


def test_bad_input(fitted):
    ranker, users, crowd, _ = fitted
    with pytest.raises(ValueError):
        ranker.similar_users(users[0], k=0, items=crowd)
    with pytest.raises(KeyError):
        ranker.similar_items("nothing", items=crowd)
