"""Three levels by visits: statistics and eigenvectors stay with their people."""

import numpy as np
import pytest

from likeminds import Annotations, ThreeLevelRanker, load, make_schools
from likeminds.solvers.newton_three_level import FastSolver
from sharded import QUIET, same, spread

pytestmark = QUIET

N_FEATURES = 6
# Eigenvectors of all who have few labels, or of some of them.
PLENTY, LITTLE = 1 << 28, 2000


@pytest.fixture(autouse=True)
def _visited(monkeypatch):
    monkeypatch.setattr("likeminds.rankers.statistics_rankers._MERGED_BYTES", 0)


def made(n_users):
    """Return people with labels of both classes, of whom some have fewer than features."""
    told = make_schools(n_users, 12, 30, N_FEATURES, n_schools=2, contested=0.6, random_state=0)
    said, draw = told.annotations, np.random.default_rng(0)
    share = np.where(np.arange(n_users) % 2 == 0, 0.2, 0.9)[said.user_codes]
    stays = draw.random(len(said)) < share
    stays[np.unique(2 * said.user_codes + said.labels, return_index=True)[1]] = True
    return said[stays]


@pytest.fixture(scope="module")
def users():
    return made(60)


def asked(memory=PLENTY, n_starts=1, **more):
    # A minimum that is a point, so that rounding moves nobody: strong directions are not free.
    given = {"n_groups": 1, "group_shrinkage": 0.1} | more
    return ThreeLevelRanker(solver=FastSolver(n_starts, memory), **given)


@pytest.mark.slow
@pytest.mark.parametrize(("n_shards", "memory"), [(1, PLENTY), (2, LITTLE), (5, PLENTY)])
def test_visits_find_what_one_process_finds(client, users, n_shards, memory, monkeypatch):
    # The preconditioner is that of some people, who are the same whatever the shards.
    monkeypatch.setattr("likeminds.solvers.trust_region._PRECONDITIONER_USERS", 20)
    here = asked(memory).fit(users)
    shards = spread(users, client, n_shards=n_shards)
    there = asked(memory).fit(shards)
    assert shards.traffic.visits > 0
    same(there, here, atol=1e-9)
    np.testing.assert_allclose(there.personal_, here.personal_, atol=1e-9)
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-12)
    assert (there.n_iter_, there.converged_) == (here.n_iter_, True)
    few = users[:40]._with(user_ids=np.array([f"q{who}" for who in users.user_ids]))
    np.testing.assert_allclose(there.newcomer(few).coef, here.newcomer(few).coef, atol=1e-9)


@pytest.mark.slow
def test_several_starts_race_with_more_features_than_people(client):
    few = made(5)
    there = asked(n_starts=3).fit(spread(few, client, n_shards=2))
    same(there, asked(n_starts=3).fit(few))


@pytest.mark.slow
def test_a_fit_goes_on_from_the_last_solution(client, users):
    shards, here = spread(users, client, n_shards=2), asked(tol=1e-2, warm_start=True)
    there = asked(tol=1e-2, warm_start=True).fit(shards)
    here.fit(users)
    for one, crowd in ((there, shards), (here, users)):
        one.set_params(tol=1e-6).fit(crowd)
    same(there, here)
    assert there.n_iter_ == here.n_iter_


def test_grades_and_people_whose_labels_are_all_alike(client, users):
    stars = np.where(users.labels, 2, np.where(np.arange(len(users)) % 3 == 0, 1, 0))
    stars[users.user_codes == 3] = 2
    given = {"features_per": "item", "item_ids": users.item_ids}
    graded = Annotations(users.users, users.items, stars, users.features, **given)
    shards = spread(graded, client, n_shards=2)
    with pytest.warns(UserWarning, match="of one class only") as warned:
        here, there = (asked(n_groups=0).fit(one) for one in (graded, shards))
    assert len(warned) == 2
    assert shards.traffic.visits > 0
    same(there, here)


@pytest.mark.slow
@pytest.mark.parametrize("n_users", [40, 80])
def test_what_a_visit_sends_and_returns_does_not_grow_with_the_people(client, n_users):
    shards = spread(made(n_users), client, n_shards=2)
    found = asked().fit(shards)
    traffic, d = shards.traffic, N_FEATURES
    # Everybody's weights go out twice at the end: for the gradient, and for the residuals of some.
    sent = traffic.sent - n_users * (16 * d + 1)
    # Consensus, direction and where it turns to go out; a matrix and a vector come back.
    assert sent / traffic.visits / len(shards) < 8 * (2 * d + 1) + 1000
    assert traffic.returned / traffic.visits / len(shards) < 8 * (d * d + d + 1) + 1000
    # Once: b_i, c_i and the positions of those with few labels. At the end: levels, the gradient.
    assert traffic.asked / n_users < 8 * (4 * d + 7) + 100
    with pytest.raises(ValueError, match="on a cluster, so labels cannot be added"):
        found.update(made(n_users)[:5])


@pytest.mark.slow
def test_a_fit_that_was_interrupted_goes_on(client, users, tmp_path):
    shards = spread(users, client, n_shards=2)
    here = asked(LITTLE).fit(users)

    def fail(step, objective, residual):
        if step == 2:
            raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError):
        asked(LITTLE, callback=fail).fit(shards.checkpointed(tmp_path / "fit"))
    again = shards.checkpointed(tmp_path / "fit", resume=True)
    same(asked(LITTLE).fit(again), here, atol=1e-9)
    assert again.journal.replayed > 0
    assert again.traffic.visits > 0
    again = shards.checkpointed(tmp_path / "fit", resume=True)
    same(asked(LITTLE).fit(again), here, atol=1e-9)
    assert again.traffic.visits == 0


def test_people_are_put_away(client, users, tmp_path):
    asked_for = {"n_groups": 0}  # a solver of one's own is not written to a file
    there = ThreeLevelRanker(**asked_for).fit(
        spread(users, client, n_shards=2).saved_to(tmp_path / "m")
    )
    here = ThreeLevelRanker(**asked_for).fit(users)
    for one in (there, load(tmp_path / "m")):
        np.testing.assert_allclose(
            one.decision_function(users), here.decision_function(users), atol=1e-6
        )
