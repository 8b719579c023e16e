"""The learned prior cannot tell where its people are."""

import pickle

import numpy as np
import pytest

from likeminds import HierarchicalRanker, make_schools
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.learning import learn
from likeminds.prior.losses import PRIOR_LOSSES
from likeminds.prior.posterior import Pulls
from likeminds.prior.settling import posterior_of


def sent(thing):
    return pickle.loads(pickle.dumps(thing))


class Shards:
    """People in shards, which get works and states as bytes, and answer in bytes."""

    def __init__(self, tasks, n_shards):
        self.n_people = tasks.n_people
        mine = np.arange(tasks.n_people) % n_shards
        self._shards = [sent(tasks.of_people(mine == shard)) for shard in range(n_shards)]
        self.largest = 0

    def visit(self, work, state, own=None):
        own, total, kept = own or [None] * len(self._shards), None, []
        for shard, mine in zip(self._shards, own, strict=True):
            answer, its = shard.visit(*sent((work, state)), mine)
            self.largest = max(self.largest, len(pickle.dumps(answer)))
            total = sent(answer) if total is None else total + sent(answer)
            kept.append(its)
        return total, kept

    def ask(self, work, state, own=None):
        for shard, mine in zip(self._shards, own or [None] * len(self._shards), strict=True):
            yield from shard.ask(*sent((work, state)), mine)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "auc"])
def test_shards_that_are_sent_bytes_learn_the_same_prior(loss):
    said = make_schools(60, 12, 300, 8, n_schools=2, random_state=0).annotations
    kind = PRIOR_LOSSES[loss]
    coordinates = Coordinates.of_annotations(said, standardize=True, intercept=kind.has_intercept)
    tasks = kind.tasks(said, coordinates)
    shards = Shards(tasks, 3)
    here, there = (
        learn(
            people,
            coordinates.n_weights,
            coordinates.size,
            1,
            likelihood=kind.likelihood,
            tol=1e-10,
            max_iter=500,
        )
        for people in (tasks, shards)
    )
    found, its = here.model.prior, there.model.prior
    np.testing.assert_allclose(its.mean, found.mean, atol=1e-4)
    np.testing.assert_allclose(its.covariance, found.covariance, atol=1e-4)
    # What comes back of a visit does not grow with the number of people.
    assert shards.largest < 8 * 3 * coordinates.size**2 + 2000


def test_points_of_people_in_shards_are_asked_for():
    said = make_schools(40, 12, 200, 8, n_schools=2, random_state=1).annotations
    ranker = HierarchicalRanker(n_groups=1, item_effects=False).fit(said)
    crowd = ranker.crowd_
    tasks = PRIOR_LOSSES["logistic"].tasks(said, crowd.coordinates)
    here, there = (
        posterior_of(people, said.n_people, crowd, pulls=Pulls(), rank=4)
        for people in (tasks, Shards(tasks, 3))
    )
    np.testing.assert_allclose(there[0], here[0], atol=1e-7)
    np.testing.assert_allclose(
        there[1].transpose(0, 2, 1) @ there[1], here[1].transpose(0, 2, 1) @ here[1], atol=1e-5
    )
