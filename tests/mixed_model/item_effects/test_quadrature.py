"""Effects of items with few labels: integrated out, not only found at their modes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from learned_model import (
    OFF_ZERO,
    ItemPosteriors,
    first_model,
    tasks_with_items,
)
from likeminds import Annotations, HierarchicalRanker
from likeminds.mixed_model.item_effects.e_step import ItemMarginalLikelihood
from likeminds.mixed_model.item_effects.quadrature import integrated, log_likelihoods, points_of
from likeminds.mixed_model.likelihoods import LogisticLikelihood
from likeminds.mixed_model.ordinal import CumulativeLogit, GradeCounts

GRID = np.linspace(-12.0, 12.0, 1201)


def make_votes(seed=0, *, n_users=200, n_items=300, per_item=3, spread=1.5):
    """Return labels with log-odds a_i + b_j, and the true b_j."""
    rng = np.random.default_rng(seed)
    place = rng.choice(n_users * n_items, per_item * n_items, replace=False)
    person, item = np.divmod(place, n_items)
    a, b = rng.normal(size=n_users), spread * rng.normal(size=n_items)
    return Annotations(person, item, rng.random(len(item)) < expit(a[person] + b[item])), b


def on_a_grid(log_likely, variance):
    """Return means and variances of b_j, and minus the log-likelihood of tau^2, by many points."""
    logs = log_likely - 0.5 * GRID**2 / variance
    top = logs.max(axis=1, keepdims=True)
    weight = np.exp(logs - top)
    total = weight.sum(axis=1)
    mean = weight @ GRID / total
    cost = 0.5 * (len(logs) - OFF_ZERO) * np.log(variance) - float(
        (np.log(total) + top[:, 0]).sum()
    )
    return mean, weight @ GRID**2 / total - mean**2, cost


def test_moments_and_tau_are_those_of_many_points():
    rng = np.random.default_rng(1)
    n_yes, others = rng.integers(0, 4, size=80), rng.normal(size=(80, 3))
    said = np.arange(3) < n_yes[:, None]

    def log_likely(b):
        eta = b[:, :, None] + others[:, None, :]
        return (said[:, None, :] * eta - np.logaddexp(0.0, eta)).sum(axis=2)

    everywhere = log_likely(np.tile(GRID, (80, 1)))
    mean, doubt, _ = on_a_grid(everywhere, 1.0)
    items = replace(ItemPosteriors.unknown(np.arange(81), 1.0), effects=np.append(mean, 0.0))
    items = replace(items, effect_variance=np.append(doubt, 1.0))
    labelled = np.arange(81) < 80
    found = items
    for _ in range(3):  # points are chosen anew, as tau grows
        likely = np.vstack([log_likely(points_of(found)[:80]), np.zeros(9)])
        found, centre = integrated(found, likely, labelled, (0.1, 10.0))
        found.effects[:80] += centre
    mean, doubt, cost = on_a_grid(everywhere, found.variance)
    np.testing.assert_allclose(found.effects[:80], mean, atol=5e-3)
    np.testing.assert_allclose(found.effect_variance[:80], doubt, rtol=1e-2)
    assert found.effects[80] == 0.0
    assert found.effect_variance[80] == found.variance
    for change in (0.97, 1.03):
        assert on_a_grid(everywhere, found.variance * change)[2] > cost


def test_unanimous_labels_do_not_let_tau_grow_for_ever():
    items = ItemPosteriors.unknown(np.arange(4), 1.0)
    likely = -10.0 * np.logaddexp(0.0, -points_of(items) * np.array([[1], [1], [-1], [-1]]))
    found, _ = integrated(items, likely, np.ones(4, dtype=bool), (0.25, 4.0))
    assert found.variance == 4.0


def test_one_label_tells_little_however_small_tau_is():
    said, doubt = np.tile([1.0, -1.0], 20), np.full(40, 1.0 / (0.25 + 1.0 / 4e-4))
    items = ItemPosteriors.unknown(np.arange(40), 4e-4)
    items = replace(items, effects=0.5 * said * doubt, effect_variance=doubt)  # by Laplace's method
    likely = -np.logaddexp(0.0, -points_of(items) * said[:, None])
    found, _ = integrated(items, likely, np.ones(40, dtype=bool), (1e-4, 1e-4))
    np.testing.assert_allclose(1.0 / found.effect_variance - 1e4, 0.25, rtol=0.02)


@pytest.mark.parametrize("graded", [False, True])
def test_people_are_integrated_out_without_the_label_itself(graded):
    said, b = make_votes(2, n_users=12, n_items=6, per_item=8)
    if graded:
        said = said._with(grades=said.labels + (np.arange(len(said)) % 2.0))
    tasks, coordinates = tasks_with_items(
        said, 0.8, effects=0.5 * b[said.item_ids], effect_variance=np.full(6, 0.4)
    )
    items = tasks.items
    likelihood = (
        CumulativeLogit.given(GradeCounts.of(said.grades, said.user_codes))
        if graded
        else LogisticLikelihood()
    )
    model = first_model(coordinates.size, coordinates.n_weights, likelihood)
    objective = ItemMarginalLikelihood(tasks, 0, model, model.prior.residual, mode_tol=1e-12)
    naive, variance = np.zeros((6, 9)), model.prior.covariance[0, 0]
    said_of = (said.grades if graded else said.labels).astype(float)
    step = 1e-4

    def losses(eta, rows, doubt=0.0):
        return likelihood.each(eta, said_of[rows], said.user_codes[rows], doubt)

    for person in range(said.n_users):
        mine = np.flatnonzero(said.user_codes == person)
        offset, a = items.effects[said.item_codes[mine]], 0.0
        for _ in range(30):
            less, here, more = (losses(a + offset + by, mine) for by in (-step, 0.0, step))
            pull, h = (less - more) / (2 * step), (less - 2 * here + more) / step**2
            a += (pull.sum() - a / variance) / (h.sum() + 1.0 / variance)
        for row, own_pull, own_h in zip(mine, pull, h, strict=True):
            doubt = 1.0 / (h.sum() - own_h + 1.0 / variance)  # of a_i, without this label
            at = a - doubt * own_pull + points_of(items)[said.item_codes[row]]
            naive[said.item_codes[row]] -= losses(at, np.full(9, row), doubt)
    np.testing.assert_allclose(log_likelihoods(objective, model), naive, rtol=1e-4)


@pytest.mark.parametrize(("per_item", "seeds"), [(3, (0, 1, 2)), (6, (0, 1))])
@pytest.mark.seconds
def test_intervals_of_effects_cover_what_they_say(per_item, seeds):
    covered = []
    for seed in seeds:
        said, b = make_votes(seed, n_items=400, per_item=per_item)
        ranker = HierarchicalRanker(n_item_factors=0).fit(said)
        away = b[ranker.items_.astype(int)] - ranker.item_effect_
        covered.append((np.abs(away - away.mean()) < 1.6449 * ranker.item_effect_error_).mean())
    assert 0.83 < np.mean(covered) < 0.95
