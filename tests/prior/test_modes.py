"""Modes are the same wherever the search starts, and whoever else is in the block."""

import numpy as np
import pytest

from likeminds import load_electricity, make_schools
from likeminds._support.stacks import inverse_and_log
from likeminds.prior import modes
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.likelihoods import Chances, Choice, Logistic
from likeminds.prior.losses import PRIOR_LOSSES
from likeminds.prior.modes import find_mode
from likeminds.prior.prior import Prior
from likeminds.prior.systems import Dual, Primal

# Names of losses, labels of each person and features: more labels than features, and fewer.
CASES = [("logistic", 30, 6), ("logistic", 10, 40), ("choice", 0, 0)]


def block_of(name, n_labels, n_features):
    if name == "choice":
        said = load_electricity()
        said = said.of_people(said.user_ids[:90])
    else:
        said = make_schools(90, n_labels, 500, n_features, 2, random_state=0).annotations
    loss = PRIOR_LOSSES[name]
    coordinates = Coordinates.of_annotations(said, standardize=True, intercept=loss.has_intercept)
    return loss.tasks(said, coordinates).task(0), coordinates.size


def prior_of(size, seed):
    rng = np.random.default_rng(seed)
    return Prior(rng.normal(size=size), rng.normal(size=(size, 2)), rng.uniform(0.3, 1.0, size))


def likelihood_of(name):
    return Choice() if name == "choice" else Logistic()


@pytest.mark.parametrize("case", CASES)
def test_nobody_depends_on_who_still_moves(case, monkeypatch):
    """Those who have not arrived go on by themselves: the same steps, to the last digit."""
    task, size = block_of(*case)
    together = {}
    for share in (0.0, modes._FEW, 1.0):
        monkeypatch.setattr(modes, "_FEW", share)
        together[share] = find_mode(task, prior_of(size, 0), likelihood_of(case[0]))
    for other in together.values():
        np.testing.assert_array_equal(other.state, together[0.0].state)
        np.testing.assert_array_equal(other.said.loss, together[0.0].said.loss)


def test_nobody_depends_on_who_else_has_few_or_many_labels():
    """Steps of a large crowd are nearly solved for, in one of two ways: each has their own."""
    said = make_schools(90, 9, 500, 6, 2, random_state=0).annotations
    said = said[np.random.default_rng(0).random(len(said)) < 0.8]
    loss, prior = PRIOR_LOSSES["logistic"], prior_of(7, 0)
    coordinates = Coordinates.of_annotations(said, standardize=True, intercept=True)

    def modes_of(some):
        tasks = loss.tasks(some, coordinates)
        for number in range(len(tasks.plan)):
            task = tasks.task(number)
            found = find_mode(task, prior, Logistic(), gain=1e-3, nearly=True)
            names = some.user_ids[task.people].tolist()
            yield from zip(names, found.system.z(found.state), strict=True)

    together = dict(modes_of(said))
    assert len(together) == 90
    for some in (said.user_ids[:30], said.user_ids[30:]):
        for who, mode in modes_of(said.of_people(some)):
            np.testing.assert_allclose(mode, together[who], rtol=0, atol=1e-12)


def test_one_step_is_solved_for_exactly_where_it_is_all_there_is():
    task, size = block_of("auc", 10, 40)
    near, exact = (
        find_mode(task, prior_of(size, 0), PRIOR_LOSSES["auc"].likelihood, nearly=nearly)
        for nearly in (True, False)
    )
    np.testing.assert_array_equal(near.state, exact.state)


@pytest.mark.parametrize("case", CASES)
def test_modes_do_not_depend_on_where_the_search_starts(case):
    task, size = block_of(*case)
    before = find_mode(task, prior_of(size, 0), likelihood_of(case[0]))
    assert isinstance(before.system, Dual if case[1:] == (10, 40) else Primal)
    kept = before.kept
    assert kept is not None
    assert (kept.points is None) == isinstance(before.system, Dual)
    prior = prior_of(size, 1)
    found = find_mode(task, prior, likelihood_of(case[0]), kept)
    expected = find_mode(task, prior, likelihood_of(case[0]))
    np.testing.assert_allclose(
        found.said.loss + found.penalty, expected.said.loss + expected.penalty
    )
    np.testing.assert_allclose(
        found.system.z(found.state), expected.system.z(expected.state), atol=1e-4
    )


def test_points_of_the_same_prior_are_where_the_search_ends():
    task, size = block_of(*CASES[0])
    prior = prior_of(size, 0)
    before = find_mode(task, prior, Logistic())
    np.testing.assert_allclose(
        modes._start(task, prior, before.system, before.kept), before.state, atol=1e-9
    )


def test_choices_weigh_matrices_alike_in_either_order():
    rng = np.random.default_rng(0)
    chance = rng.dirichlet(np.ones(4), size=(3, 5)).reshape(3, 20)
    curvature = Chances(chance, rng.uniform(size=(3, 5)).repeat(4, axis=1), 4)
    rows = rng.normal(size=(3, 20, 6))
    turned = np.ascontiguousarray(rows.transpose(0, 2, 1)).transpose(0, 2, 1)
    np.testing.assert_allclose(
        curvature.times_root_back(turned), curvature.times_root_back(rows), atol=1e-14
    )


@pytest.mark.parametrize("size", [1, 6, 25])
def test_stacks_are_inverted(size):
    rng = np.random.default_rng(size)
    root = rng.normal(size=(7, size, 2 * size))
    matrices = root @ root.transpose(0, 2, 1) + np.eye(size)
    before = matrices.copy()
    inverse, half = inverse_and_log(matrices)
    np.testing.assert_allclose(inverse @ matrices, np.repeat(np.eye(size)[None], 7, 0), atol=1e-12)
    np.testing.assert_allclose(half, 0.5 * np.linalg.slogdet(matrices)[1])
    np.testing.assert_array_equal(matrices, before)


@pytest.mark.parametrize("case", CASES)
def test_what_the_search_leaves_is_what_modes_have(case):
    """Matrices that the search has made on its way are those at its end, whoever moved last."""
    task, size = block_of(*case)
    mode = find_mode(task, prior_of(size, 0), likelihood_of(case[0]), gain=1e-3)
    again = mode.system.spread(mode.said.curvature)
    np.testing.assert_allclose(mode.spread.total, again.total, rtol=1e-9)
    objective = mode.said.loss + mode.penalty + again.log_determinant
    np.testing.assert_allclose(mode.objective, objective, rtol=1e-9)


def test_scores_far_from_zero_do_not_overflow():
    task, _ = block_of("choice", 0, 0)
    eta = np.random.default_rng(0).normal(size=task.weight.shape)
    near, far = Choice().at(eta, task), Choice().at(eta + 2000.0, task)
    np.testing.assert_allclose(far.loss, near.loss, atol=1e-8)
    np.testing.assert_allclose(far.pull, near.pull, atol=1e-8)


@pytest.mark.parametrize("case", CASES)
def test_steps_that_are_nearly_solved_lead_to_the_same_modes(case):
    """Few products with everybody's matrix instead of its inverse: large crowds are in a hurry."""
    task, size = block_of(*case)
    prior, likelihood = prior_of(size, 0), likelihood_of(case[0])
    exact = find_mode(task, prior, likelihood)
    rows, offset = exact.system.rows, exact.system.offset
    system = Dual(rows, offset, rows @ rows.transpose(0, 2, 1), nearly=True)
    for gain, apart in ((modes.EXACT, 1e-4), (1e-5, 5e-3)):
        found = modes.newton(task, system, likelihood, np.zeros_like(task.weight), gain)
        np.testing.assert_allclose(found.eta, exact.eta, atol=apart * np.abs(exact.eta).max())


def test_small_crowds_are_solved_exactly():
    task, size = block_of("logistic", 10, 40)
    prior = prior_of(size, 0)
    assert find_mode(task, prior, Logistic()).system.nearly is False
    assert find_mode(task, prior, Logistic(), nearly=True).system.nearly is True
