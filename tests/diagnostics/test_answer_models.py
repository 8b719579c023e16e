"""Examples of `likeminds.diagnostics.answer_models`."""

import numpy as np

from likeminds.diagnostics.answer_models import (
    fit_attentive,
    p_few_runs,
    p_same_answer,
    speed_weights,
)


def test_p_same_answer():
    yes = np.array([True] * 10 + [True, False] * 5)
    found = p_same_answer(yes, np.full(20, 0.5), np.repeat([0, 1], 10), 2)
    assert found.round(3).tolist() == [0.001, 1.0]


def test_p_few_runs():
    yes = np.array([True] * 8 + [False] * 8 + [True, False, False, True] * 20)
    assert bool(p_few_runs(yes, np.repeat(np.arange(6), 16), 6)[0] < 0.01)


def test_speed_weights():
    found = speed_weights(np.array([1.0, 8.0, 10.0, 12.0, np.nan]))
    assert found.round(1).tolist() == [3.2, 0.4, 0.2, 0.2, 1.0]


def test_fit_attentive():
    rng = np.random.default_rng(0)
    auc = np.concatenate([rng.normal(0.8, 0.08, 270), rng.normal(0.5, 0.05, 30)])
    found = fit_attentive(auc, np.full(300, 0.05**2), np.full(300, 0.05**2))
    assert (round(found.mean, 1), round(found.random_share, 1)) == (0.8, 0.1)
