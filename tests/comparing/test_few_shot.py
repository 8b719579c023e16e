"""Models judged on people they know, on strangers, and with a few choices of theirs."""

import numpy as np
import pytest

from likeminds import (
    HierarchicalRanker,
    ThreeLevelRanker,
    load_electricity,
    score_choices,
    score_shots,
    split_within_users,
)
from likeminds.baselines import ConsensusOnly


@pytest.fixture(scope="module")
def homes():
    everybody = load_electricity()
    known = everybody.of_users(everybody.user_ids[:120])
    train, held_out = split_within_users(known, 0.3, 0)
    return train, held_out.concat(everybody.of_users(everybody.user_ids[300:]))


@pytest.fixture(scope="module")
def ranker(homes):
    return HierarchicalRanker(n_groups=1, tol=1e-3).fit(homes[0])


def test_seen_unseen_and_a_few_shots(homes, ranker):
    test = homes[1]
    found = score_shots(ranker, test, [0, 4, 8])
    assert [(one.seen, one.shots) for one in found] == [
        *[(True, 0), (False, 0), (False, 4), (False, 8)]
    ]
    assert found[0].n_scored == len(test.of_users(ranker.users_)) / 4
    assert len({one.n_scored for one in found[1:]}) == 1
    accuracy = [one.measures["accuracy"].mean for one in found]
    assert accuracy[0] > accuracy[1]
    assert accuracy[3] > accuracy[1]
    losses = [one.measures["log_loss"].mean for one in found]
    assert losses[3] < losses[2] < losses[1]
    row = found[3].as_row()
    assert row["users"] == "unseen"
    assert row["shots"] == 8
    assert row["accuracy"] == accuracy[3]


def test_accuracy_of_those_seen_is_that_of_their_scores(homes, ranker):
    test = homes[1].of_users(ranker.users_)
    (found,) = score_shots(ranker, test)
    judged = score_choices(test, ranker.decision_function(test))
    np.testing.assert_array_equal(found.measures["accuracy"].values, judged.accuracy.values)


def test_who_is_not_known_is_not_predicted_as_if_they_were(homes, ranker):
    test = homes[1][~np.isin(homes[1].users, ranker.users_)]
    (found,) = score_shots(ranker, test, [0])
    sure = score_choices(test, ranker.consensus_scores(test))
    assert found.measures["log_loss"].mean < sure.log_loss.mean


def test_strangers_are_judged_on_the_same_choices(homes, ranker):
    once = score_shots(ranker, homes[1], [0, 8], random_state=3)
    again = score_shots(ranker, homes[1], [0, 2, 8], random_state=3)
    np.testing.assert_array_equal(
        once[1].measures["accuracy"].values, again[1].measures["accuracy"].values
    )
    np.testing.assert_array_equal(
        once[-1].measures["accuracy"].values, again[-1].measures["accuracy"].values
    )


def test_labels_are_judged_by_their_auc(homes, ranker):
    votes = homes[1]._with(choice_set_codes=None, choice_set_ids=None)
    found = score_shots(ranker, votes, [0, 10])
    assert [list(one.measures) for one in found] == [["auc"]] * 3


def test_scores_that_are_no_log_odds_have_no_log_loss(homes):
    three = ThreeLevelRanker().fit(homes[0])
    assert [list(one.measures) for one in score_shots(three, homes[1], [0, 4])] == [
        ["accuracy"]
    ] * 3


def test_what_cannot_be_is_said(homes, ranker):
    for told, call in (
        ("more than 12", lambda: score_shots(ranker, homes[1], [12])),
        ("shots must be", lambda: score_shots(ranker, homes[1], [-1])),
    ):
        with pytest.raises(ValueError, match=told):
            call()
    simple = ConsensusOnly().fit(homes[0])
    with pytest.raises(TypeError):
        score_shots(simple, homes[1], [1])
    assert len(score_shots(simple, homes[1], [0])) == 2
