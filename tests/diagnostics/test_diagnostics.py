"""Annotators: agreeing, different, random; and honest about few labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from likeminds import (
    Annotations,
    HierarchicalRanker,
    RankerCV,
    ThreeLevelRanker,
    ThreeLevelRankerCV,
    diagnose,
    load_electricity,
    make_schools,
    split_within_users,
)
from likeminds.diagnostics import auc_interval
from likeminds.diagnostics.annotators import refittable
from likeminds.diagnostics.answer_models import fit_attentive, p_few_runs
from likeminds.diagnostics.strata import Strata
from likeminds.metrics.severity import Severity
from likeminds.rankers.baselines import RidgeToConsensus

pytestmark = pytest.mark.seconds

N = 120


def planted(n_labels, seed, random=12, contrary=12, n_schools=1):
    """Return a crowd, some of whose labels are shuffled or turned around, and who is what."""
    simulation = make_schools(N, n_labels, 600, 10, n_schools, contested=0.5, random_state=seed)
    plain = simulation.annotations
    rng = np.random.default_rng(seed + 99)
    kind = np.full(N, "plain", dtype=object)
    lots = rng.permutation(N)
    kind[lots[:random]] = "random"
    kind[lots[random : random + contrary]] = "contrary"
    labels = plain.labels.copy()
    for person in range(N):
        rows = plain.user_codes == person
        if kind[person] == "random":
            labels[rows] = rng.permutation(labels[rows])
        elif kind[person] == "contrary":
            labels[rows] = ~labels[rows]
    crowd = Annotations(plain.users, plain.items, labels, plain.features, features_per="item")
    return crowd, kind


def tally(n_labels, seeds, **options):
    counts = {}
    for seed in seeds:
        crowd, kind = planted(n_labels, seed, **options)
        found = diagnose(ThreeLevelRanker().fit(crowd), crowd)
        for pair in zip(kind, found.verdict.tolist(), strict=True):
            counts[pair] = counts.get(pair, 0) + 1
    return counts


def false_share(counts, verdict, kind):
    said = sum(n for (_, v), n in counts.items() if v == verdict)
    return 1 - counts.get((kind, verdict), 0) / max(said, 1)


@pytest.mark.parametrize("n_schools", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_random_people_are_found_and_contrary_ones_are_not_among_them(n_schools):
    counts = tally(60, range(3), n_schools=n_schools)
    assert counts["random", "random"] > 0.8 * 36
    assert false_share(counts, "random", "random") <= 0.1
    turned = [counts.get(("contrary", verdict), 0) for verdict in ("different", "reversed")]
    assert sum(turned) > 0.8 * 36
    assert counts.get(("plain", "reversed"), 0) <= 1
    assert counts.get(("contrary", "random"), 0) <= 1
    assert counts.get(("contrary", "agrees"), 0) == 0


@pytest.mark.slow
def test_a_crowd_that_agrees_is_told_so():
    counts = tally(60, range(2), random=0, contrary=0)
    assert counts["plain", "agrees"] > 0.97 * 240
    assert counts.get(("plain", "random"), 0) <= 1


@pytest.mark.slow
def test_few_labels_are_unclear():
    counts = tally(10, range(2))
    assert all(verdict != "random" for _, verdict in counts)
    assert counts["random", "unclear"] == 24


def test_everybody_random_is_not_everybody_attentive():
    crowd, _ = planted(60, 0, random=N, contrary=0)
    found = diagnose(ThreeLevelRanker().fit(crowd), crowd)
    assert found.counts["agrees"] + found.counts["different"] <= 0.05 * N


def test_the_learned_prior_and_held_out_labels():
    crowd, kind = planted(60, 5)
    train, test = split_within_users(crowd, 0.5, 0)
    ranker = HierarchicalRanker(n_groups=1).fit(train)
    found = diagnose(ranker, test, n_folds=None)
    assert found.held_out
    assert (found.verdict[kind == "random"] == "random").mean() > 0.6
    assert (found.verdict[kind != "random"] == "random").mean() < 0.03
    for person in (0, 7):
        rows = test.of_user(person)
        own = roc_auc_score(rows.labels, ranker.decision_function(rows))
        assert found.own_auc[person] == pytest.approx(own)
        assert found.low[person] <= own <= found.high[person]


def test_choice_sets_are_compared_inside():
    households = load_electricity().of_users(load_electricity().user_ids[:30])
    found = diagnose(ThreeLevelRanker().fit(households), households, n_folds=3)
    assert found.counts["agrees"] > 10
    person = households.of_user(found.users[0])
    scores = np.zeros(len(person))
    strata = Strata(person.user_codes, person.choice_set_codes, person.labels, 1)
    assert strata.n_pairs() == person.labels.sum() * 3
    assert strata.auc(scores) == 0.5
    np.testing.assert_allclose(found.positive_share, 0.25)


def test_people_with_one_kind_of_label_are_constant():
    crowd = make_schools(20, 30, 100, 5, 1, random_state=0).annotations
    labels = np.where(crowd.user_codes == 3, True, crowd.labels)
    crowd = Annotations(crowd.users, crowd.items, labels, crowd.features, features_per="item")
    with pytest.warns(UserWarning, match="one class only"):
        found = diagnose(ThreeLevelRanker().fit(crowd), crowd)
    assert found.verdict[3] == "constant"
    assert np.isnan(found.own_auc[3])
    assert np.isnan(found.low[3])
    assert 3 in found.of("constant")


def test_the_table():
    crowd, _ = planted(20, 0)
    ranker = ThreeLevelRanker().fit(crowd)
    found = diagnose(ranker, crowd, n_folds=2)
    table = found.table()
    assert table.column_names[:3] == ["user", "verdict", "labels"]
    assert table["labels"].to_pylist() == [20] * N
    assert sum(found.counts.values()) == N


def test_what_was_chosen_is_kept_when_fitting_again():
    crowd = make_schools(20, 20, 60, 6, 2, random_state=0).annotations
    tuned = ThreeLevelRankerCV({"alpha_group": [0.7], "n_groups": [1]}, n_folds=2).fit(crowd)
    again = refittable(tuned)
    assert isinstance(again, ThreeLevelRanker)
    assert (again.alpha_group, again.n_groups) == (0.7, 1)
    search = RankerCV(RidgeToConsensus(), {"alpha": [0.3]}, n_folds=2).fit(crowd)
    assert refittable(search).alpha == 0.3
    prior = HierarchicalRanker().fit(crowd)
    fresh = refittable(prior)
    assert (fresh.n_groups, fresh.loss) == (prior.n_groups_, prior.loss_)
    assert fresh.n_item_factors == prior.n_item_factors_


@given(st.integers(0, 10_000))
def test_auc_inside_strata_counts_pairs(seed):
    rng = np.random.default_rng(seed)
    n = 40
    owner = rng.integers(3, size=n)
    stratum = owner * 2 + rng.integers(2, size=n)
    positive, scores = rng.random(n) < 0.4, rng.integers(6, size=n).astype(float)
    strata = Strata(owner, stratum, positive, 3)
    for person in range(3):
        right = pairs = 0.0
        for p in np.flatnonzero((owner == person) & positive):
            for q in np.flatnonzero((stratum == stratum[p]) & ~positive):
                right += (scores[p] > scores[q]) + 0.5 * (scores[p] == scores[q])
                pairs += 1
        expected = right / pairs if pairs else np.nan
        np.testing.assert_allclose(strata.auc(scores)[person], expected)
        assert strata.n_pairs()[person] == pairs


def test_variance_under_chance_is_that_of_random_orders():
    rng = np.random.default_rng(0)
    stratum = np.repeat([0, 1, 2], [6, 9, 5])
    positive = np.tile([True, False, False, False, True], 4)
    strata = Strata(np.zeros(20, dtype=int), stratum, positive, 1)
    drawn = [strata.auc(rng.random(20))[0] for _ in range(4000)]
    assert np.mean(drawn) == pytest.approx(0.5, abs=0.01)
    assert np.var(drawn) == pytest.approx(strata.chance_variance()[0], rel=0.08)


@pytest.mark.slow
def test_the_variance_of_a_difference_is_about_right():
    rng = np.random.default_rng(1)
    n = 200
    found, said = [], []
    for _ in range(1000):
        positive = rng.random(n) < 0.4
        shared = rng.standard_normal(n) + positive
        first, second = (shared + rng.standard_normal(n) for _ in range(2))
        strata = Strata(np.zeros(n, dtype=int), np.zeros(n, dtype=int), positive, 1)
        found.append(strata.auc(first)[0] - strata.auc(second)[0])
        said.append(strata.difference_variance(first, second)[0])
    assert np.mean(said) == pytest.approx(np.var(found), rel=0.2)


@pytest.mark.parametrize("separation", [0.0, 1.0, 3.0])
@pytest.mark.slow
def test_intervals_hold_the_truth(separation):
    rng = np.random.default_rng(2)
    truth = roc_auc_score(
        np.repeat([True, False], 20_000),
        np.concatenate([rng.normal(separation, 1, 20_000), rng.normal(0, 1, 20_000)]),
    )
    positive = np.repeat([True, False], [8, 15])
    aucs = np.array(
        [
            roc_auc_score(positive, rng.standard_normal(23) + separation * positive)
            for _ in range(400)
        ]
    )
    low, high = auc_interval(aucs, np.full(400, 8), np.full(400, 15))
    assert ((low <= truth) & (truth <= high)).mean() >= 0.92


def test_the_share_of_random_people_is_estimated():
    rng = np.random.default_rng(3)
    for share in (0.0, 0.3):
        careless = rng.random(600) < share
        true = np.where(careless, 0.5, rng.normal(0.8, 0.07, 600))
        found = fit_attentive(rng.normal(true, 0.06), np.full(600, 0.06**2), np.full(600, 0.06**2))
        assert found.random_share == pytest.approx(share, abs=0.06)
        assert found.mean == pytest.approx(0.8, abs=0.02)


def test_who_says_yes_readily_and_who_is_strict():
    rng = np.random.default_rng(4)
    n_users, n_items = 40, 60
    own = np.linspace(-2, 2, n_users)
    X = rng.normal(size=(n_items, 1))
    person, item = np.nonzero(rng.random((n_users, n_items)) < 0.7)
    # Strict people were shown better items, so that their share of yes says little.
    shown = rng.random(len(item)) < 1 / (1 + np.exp(-2 * X[item, 0] * -np.sign(own[person])))
    person, item = person[shown], item[shown]
    odds = 1.5 * X[item, 0] + own[person]
    said = Annotations(person, item, rng.logistic(size=len(item)) < odds, X, features_per="item")
    ranker = HierarchicalRanker(n_groups=0, n_item_factors=0).fit(said)
    found = diagnose(ranker, said, n_folds=2)
    assert np.corrcoef(found.readiness, own)[0, 1] > 0.9
    shares = np.corrcoef(found.positive_share, own)[0, 1]
    assert np.corrcoef(found.readiness, own)[0, 1] > shares
    assert found.readiness.mean() == pytest.approx(0.0, abs=1e-12)
    assert found.yes_where_divided == pytest.approx(1 / (1 + np.exp(-found.readiness)))
    assert "readiness" in found.table().column_names


def test_whoever_chooses_is_neither_strict_nor_lenient():
    few = load_electricity()
    few = few.of_users(few.user_ids[:12])
    found = diagnose(HierarchicalRanker(n_groups=0).fit(few), few, n_folds=None)
    assert np.isnan(found.readiness).all()


def raters(n_users=60, n_items=80, n_labels=40, seed=0):
    """Return raters of shared items without features, some of them planted, and who is what."""
    rng = np.random.default_rng(seed)
    kind = np.full(n_users, "plain", dtype=object)
    kind[:4], kind[4:8], kind[8:12], kind[12:14] = "reversed", "constant", "random", "runs"
    worth, ready = 2.5 * rng.normal(size=n_items), rng.normal(size=n_users)
    users, items, labels = [], [], []
    for person in range(n_users):
        judged = rng.permutation(n_items)[:n_labels]
        said = rng.logistic(size=n_labels) < worth[judged] + ready[person]
        said = {
            "reversed": ~said,
            "constant": np.full(n_labels, person % 2 == 0),
            "random": rng.random(n_labels) < 0.5,
            "runs": np.arange(n_labels) < n_labels // 2,
        }.get(kind[person], said)
        users += [person] * n_labels
        items += judged.tolist()
        labels += said.tolist()
    return Annotations(users, items, labels), kind


def test_reversed_and_constant_raters_are_told_from_random_ones():
    found_as = {}
    for seed in range(3):
        crowd, kind = raters(seed=seed)
        found = diagnose(HierarchicalRanker().fit(crowd), crowd, n_folds=3)
        for pair in zip(kind, found.verdict.tolist(), strict=True):
            found_as[pair] = found_as.get(pair, 0) + 1
    assert found_as["reversed", "reversed"] >= 11
    assert found_as["constant", "constant"] == 12
    assert found_as["runs", "constant"] >= 5
    assert found_as.get(("random", "random"), 0) >= 8
    assert not {("random", "reversed"), ("random", "agrees")} & set(found_as)
    alarms = sum(
        n
        for (kind, verdict), n in found_as.items()
        if kind == "plain" and verdict in {"reversed", "constant", "random"}
    )
    assert alarms <= 3  # of 138


def test_runs_say_nothing_where_rows_are_sorted():
    crowd, _ = raters()
    rows = np.lexsort((crowd.labels, crowd.user_codes))
    assert np.isnan(p_few_runs(crowd.labels[rows], crowd.user_codes[rows], crowd.n_users)).all()


def test_severity_is_in_the_headline():
    crowd, _ = raters(n_users=30)
    found = diagnose(HierarchicalRanker().fit(crowd), crowd, n_folds=2)
    assert found.severity.differs
    assert "thresholds differ: from yes to 0% (5)" in repr(found)
    alike = Severity(np.arange(9), np.full(9, 0.5), np.full(9, 20))
    assert not alike.differs


def test_large_crowds_keep_their_prior(monkeypatch):
    rng = np.random.default_rng(0)
    quality, taste = rng.normal(0, 1.5, 40), np.repeat(rng.normal(0, 1.0, 60), 30)
    users = np.repeat(np.arange(60), 30)
    items = np.concatenate([rng.permutation(40)[:30] for _ in range(60)])
    label = quality[items] + taste * np.sin(items) + rng.logistic(size=1800) > 0
    label[:90] = rng.random(90) < 0.5  # three who answer at random
    said = Annotations(users, items, label)
    ranker = HierarchicalRanker().fit(said)
    refitted = diagnose(ranker, said)
    monkeypatch.setattr("likeminds.diagnostics.annotators._MANY_USERS", 20)
    monkeypatch.setattr("likeminds.diagnostics.annotators._MANY_LABELS", 500)
    kept = diagnose(ranker, said)
    assert abs(np.nanmean(kept.own_auc) - np.nanmean(refitted.own_auc)) < 0.02
    assert np.corrcoef(kept.own_auc, refitted.own_auc)[0, 1] > 0.9
    assert (kept.verdict == refitted.verdict).mean() > 0.9


def test_grades_on_a_reversed_scale_are_reversed_however_few_are_below_the_threshold():
    rng = np.random.default_rng(0)
    worth = rng.normal(size=60)
    grades = np.clip(np.round(1.5 + worth + 0.4 * rng.normal(size=(40, 60))), 1, 5)
    grades[:3] = 6 - grades[:3]
    crowd = Annotations(np.repeat(np.arange(40), 60), np.tile(np.arange(60), 40), grades.ravel())
    found = diagnose(HierarchicalRanker(loss="gaussian").fit(crowd), crowd, n_folds=2)
    assert found.positive_share[:3].min() > 0.95
    assert found.verdict[:3].tolist() == ["reversed"] * 3
    assert set(found.verdict[3:]) == {"agrees"}
