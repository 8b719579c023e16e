"""The verdict constant on planted straight-liners, by share, runs and response time."""

from dataclasses import replace

import numpy as np
import pytest

from likeminds import Annotations, HierarchicalRanker, diagnose, make_schools
from likeminds.diagnostics.answer_models import p_few_runs, p_same_answer, speed_weights


def graders(seed, n_users=80, n_items=80, n_labels=40):
    """Return grades of shared items from 1 to 5, and how each user answers."""
    rng = np.random.default_rng(seed)
    kind = np.full(n_users, "plain", dtype=object)
    kind[:6], kind[6:10], kind[10:16], kind[16:22] = "same", "runs", "random", "lenient"
    worth, ready = 1.5 * rng.normal(size=n_items), 0.7 * rng.normal(size=n_users)
    ready[kind == "lenient"] = 5.0
    rows = []
    for user in range(n_users):
        items = rng.permutation(n_items)[:n_labels]
        score = worth[items] + ready[user] + rng.logistic(size=n_labels)
        grades = np.searchsorted([-3, -1, 1, 3], score)
        if kind[user] == "same":  # but for one slip
            grades[:] = 1 + user % 3
            grades[rng.integers(n_labels)] = 4
        elif kind[user] == "runs":
            grades = np.repeat(rng.permutation(5), n_labels // 5)
        elif kind[user] == "random":
            grades = rng.integers(5, size=n_labels)
        rows += [(user, item, grade + 1.0) for item, grade in zip(items, grades, strict=True)]
    users, items, grades = zip(*rows, strict=True)
    return Annotations(users, items, grades, grades=True), kind


@pytest.mark.seconds
def test_planted_straight_liners_are_constant_and_others_are_not():
    found_as = {}
    for seed in range(2):
        crowd, kind = graders(seed)
        found = diagnose(HierarchicalRanker().fit(crowd), crowd, n_folds=3)
        for pair in zip(kind, found.verdict.tolist(), strict=True):
            found_as[pair] = found_as.get(pair, 0) + 1
    assert found_as["same", "constant"] == 12  # of 12
    assert found_as["runs", "constant"] == 8  # of 8
    assert found_as["random", "random"] >= 4  # of 12
    constant = {kind for kind, verdict in found_as if verdict == "constant"}
    assert constant == {"same", "runs"}  # no false alarm among 140
    assert not {("lenient", "random"), ("lenient", "different")} & set(found_as)


def test_runs_of_several_answers_have_the_moments_of_random_orders():
    rng = np.random.default_rng(0)
    answers = np.repeat([0, 1, 2], [12, 10, 8])
    shuffled = np.concatenate([rng.permutation(answers) for _ in range(4000)])
    p = p_few_runs(shuffled, np.repeat(np.arange(4000), 30), 4000)
    # Runs are discrete, so p-values are at most conservative.
    for level in (0.05, 0.2, 0.5):
        assert level - 0.06 < (p <= level).mean() < level + 0.02
    alone = p_few_runs(np.r_[answers, shuffled], np.repeat(np.arange(4001), 30), 4001)
    assert alone[0] < 1e-6


def test_grades_that_vary_on_one_side_of_the_threshold_are_not_constant():
    yes, users = np.ones(20, dtype=bool), np.zeros(20, dtype=int)
    chance = np.full(20, 0.5)
    assert p_same_answer(yes, chance, users, 1)[0] == pytest.approx(0.5**20)
    varied = np.tile([4, 5], 10)
    assert p_same_answer(yes, chance, users, 1, varied)[0] == 1.0


def test_fast_users_are_constant_on_less_evidence():
    rng = np.random.default_rng(0)
    seconds = np.exp(rng.normal(2.0, 0.3, size=50))
    seconds[0], seconds[1], seconds[2] = 0.5, 300.0, np.nan
    weights = speed_weights(seconds)
    known = np.isfinite(seconds)
    assert weights[known].mean() == pytest.approx(1.0)
    order = np.argsort(seconds[known])
    assert (np.diff(weights[known][order]) <= 0).all()
    assert weights[0] > 4
    assert weights[1] < 0.5
    assert weights[2] == 1.0
    np.testing.assert_array_equal(speed_weights(np.full(3, 2.0)), 1.0)
    with pytest.raises(ValueError, match="positive"):
        speed_weights(np.array([1.0, 0.0]))


@pytest.fixture(scope="module")
def crowd():
    return make_schools(30, 30, 60, 4, 1, random_state=0).annotations


def test_diagnose_has_agreement_and_times(crowd):
    ranker = HierarchicalRanker(n_groups=1).fit(crowd)
    found = diagnose(ranker, crowd, n_folds=None, seconds={crowd.user_ids[0]: 3.0})
    table = found.to_pandas()
    assert table["seconds"].tolist()[0] == 3.0
    assert np.isnan(table["seconds"].tolist()[1])
    np.testing.assert_array_equal(table["kappa"], found.agreement.kappa_by_user)
    assert found.agreement["alpha (nominal)"].low < found.agreement["alpha (nominal)"].high
    choices = Annotations.from_comparisons([0, 0, 1], ["a", "b", "a"], ["b", "c", "c"])
    fitted = HierarchicalRanker(n_groups=0).fit(choices)
    assert diagnose(fitted, choices, n_folds=None).agreement is None


@pytest.mark.seconds
@pytest.mark.parametrize(("n_schools", "words"), [(1, "noise"), (2, "partly predictable")])
def test_low_agreement_is_noise_or_predictable(n_schools, words):
    made = make_schools(60, 40, 40, 4, n_schools, contested=1.0, random_state=0).annotations
    noisy = made.labels ^ (np.random.default_rng(0).random(len(made)) < 0.3)
    labels = noisy if n_schools == 1 else made.labels
    crowd = Annotations(made.users, made.items, labels, made.features, features_per="item")
    found = diagnose(HierarchicalRanker().fit(crowd), crowd, n_folds=3)
    assert found.agreement["alpha (nominal)"].value < 0.4
    assert words in found.disagreement()


def test_leave_out_drops_users_by_verdict(crowd):
    ranker = HierarchicalRanker(n_groups=1).fit(crowd)
    found = diagnose(ranker, crowd, n_folds=None)
    verdict = np.array(["constant", "random", "reversed"] + ["agrees"] * 27)
    found = replace(found, verdict=verdict)
    left = found.leave_out(["constant", "random"], crowd)
    assert left.user_ids.tolist() == crowd.user_ids.tolist()[2:]
    with pytest.raises(ValueError, match="no labels remain"):
        found.leave_out(list(found.counts), crowd)
    with pytest.raises(ValueError, match="verdict must be one of"):
        found.leave_out(["lazy"], crowd)
