"""The path of the personal level against the optimality conditions of its penalty."""

import numpy as np
import pytest

from likeminds import Statistics, ThreeLevelRanker, make_simulation
from likeminds.losses import SquaredAUC
from likeminds.paper import personal_path


@pytest.fixture(scope="module")
def annotations():
    return make_simulation(10, 100, 8, n_positive=10, random_state=0).annotations


def test_the_path_begins_where_the_first_user_gets_a_personal_part(annotations):
    path = personal_path(annotations)
    assert not path.personal[0].any()
    assert path.personal[1:3].any()
    assert (np.diff(path.alphas) < 0).all()
    assert path.lengths.shape == (20, 10)


def test_users_have_a_personal_part_where_the_gradient_is_as_long_as_the_penalty(annotations):
    statistics = Statistics.from_annotations(annotations)
    for alpha in (0.05, 0.02):
        path = personal_path(annotations, [alpha], ranker=ThreeLevelRanker(tol=1e-8))
        ranker = ThreeLevelRanker(alpha_personal=alpha, tol=1e-8).fit(annotations)
        assert path.objectives[0] == pytest.approx(ranker.objective_, rel=1e-6)
        loss = SquaredAUC().of(statistics, ranker.scale_)
        slopes = np.linalg.norm(loss.gradient(ranker.coef_ * ranker.scale_), axis=1)
        assert path.personal[0].any()
        np.testing.assert_allclose(slopes[path.personal[0]], alpha, rtol=1e-4)
        assert (slopes[~path.personal[0]] <= alpha * (1 + 1e-4)).all()


def test_agreement_is_one_where_those_found_are_the_true_ones(annotations):
    path = personal_path(annotations, [0.2, 0.1, 0.05])
    assert path.agreement(path.personal[1])[1] == 1.0
    with pytest.raises(ValueError, match="true"):
        path.agreement([True])
