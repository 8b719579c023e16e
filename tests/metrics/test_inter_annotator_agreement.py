from itertools import combinations

import krippendorff
import numpy as np
import pytest
from scipy.stats import f_oneway
from sklearn.metrics import cohen_kappa_score

from likeminds import Annotations
from likeminds.metrics import agreement, inter_annotator_agreement


def ratings(seed, n_users=6, n_items=30, n_values=4, missing=0.3):
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_values, size=n_items)
    table = np.clip(truth + rng.integers(-1, 2, size=(n_users, n_items)), 0, n_values - 1)
    table = table.astype(float)
    table[rng.random(table.shape) < missing] = np.nan
    return table


def annotated(table, shuffle=None):
    users, items = np.nonzero(np.isfinite(table))
    if shuffle is not None:
        order = np.random.default_rng(shuffle).permutation(len(users))
        users, items = users[order], items[order]
    values = table[users, items]
    return Annotations([f"u{u}" for u in users], [f"i{i}" for i in items], values, grades=True)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("seed", range(4))
def test_alpha_is_that_of_krippendorff(level, seed):
    table = ratings(seed)
    found = agreement(annotated(table, shuffle=seed), [level], n_bootstrap=0)
    expected = krippendorff.alpha(reliability_data=table, level_of_measurement=level)
    assert found[f"alpha ({level})"].value == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_cohens_kappa_is_that_of_scikit_learn(seed):
    table = ratings(seed)
    found = agreement(annotated(table), n_bootstrap=0)
    kappas, weights = {}, {}
    for one in range(len(table)):
        for other in range(len(table)):
            both = np.isfinite(table[one]) & np.isfinite(table[other])
            if one != other and both.any():
                kappas[one, other] = cohen_kappa_score(table[one][both], table[other][both])
                weights[one, other] = both.sum()
    users = found.users.tolist()
    for one in range(len(table)):
        mine = [pair for pair in kappas if pair[0] == one]
        expected = np.average([kappas[p] for p in mine], weights=[weights[p] for p in mine])
        assert found.kappa_by_user[users.index(f"u{one}")] == pytest.approx(expected)
    mean = np.average(list(kappas.values()), weights=list(weights.values()))
    assert found["Cohen's kappa, mean of pairs"].value == pytest.approx(mean)


def test_fleiss_kappa_and_icc_by_their_definitions():
    table = ratings(0, missing=0.0)
    found = agreement(annotated(table), n_bootstrap=0)
    n_users = len(table)
    counts = np.array([[np.sum(column == k) for k in range(4)] for column in table.T])
    observed = ((counts**2).sum(axis=1) - n_users) / (n_users * (n_users - 1))
    expected = ((counts.sum(axis=0) / counts.sum()) ** 2).sum()
    kappa = (observed.mean() - expected) / (1 - expected)
    assert found["Fleiss' kappa"].value == pytest.approx(kappa)
    between = n_users * table.mean(axis=0).var(ddof=1)
    within = table.var(axis=0, ddof=1).mean()
    icc = (between - within) / (between + (n_users - 1) * within)
    assert found["ICC(1)"].value == pytest.approx(icc)


@pytest.mark.parametrize("seed", range(3))
def test_icc_and_fleiss_kappa_with_missing_labels(seed):
    table = ratings(seed)
    table = table[:, np.isfinite(table).sum(axis=0) > 1]
    found = agreement(annotated(table, shuffle=seed), n_bootstrap=0)
    columns = [column[np.isfinite(column)] for column in table.T]
    sizes = np.array([len(column) for column in columns])
    # Donner's ICC of unequal groups, from the F of a one-way analysis of variance.
    typical = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / (len(sizes) - 1)
    f = f_oneway(*columns).statistic
    assert found["ICC(1)"].value == pytest.approx((f - 1) / (f - 1 + typical))
    agreeing = [np.mean([a == b for a, b in combinations(column, 2)]) for column in columns]
    _, counts = np.unique(np.concatenate(columns), return_counts=True)
    chance = ((counts / counts.sum()) ** 2).sum()
    kappa = (np.mean(agreeing) - chance) / (1 - chance)
    assert found["Fleiss' kappa"].value == pytest.approx(kappa)


def test_blocks_of_draws_and_of_users_change_nothing(monkeypatch):
    crowd = annotated(ratings(3))
    whole = agreement(crowd, n_bootstrap=60)
    monkeypatch.setattr(inter_annotator_agreement, "_MOST_WEIGHTS", 200)
    blocks = agreement(crowd, n_bootstrap=60)
    assert blocks.coefficients == whole.coefficients
    monkeypatch.setattr(inter_annotator_agreement, "_MOST_USERS", 4)
    np.testing.assert_allclose(agreement(crowd).kappa_by_user, whole.kappa_by_user)


def test_intervals_hold_the_value_and_shrink_with_more_items():
    few, many = (agreement(annotated(ratings(1, n_items=n)), ["nominal"]) for n in (20, 400))
    for found in (few, many):
        for one in found.coefficients:
            assert one.low < one.value < one.high
    widths = [one["alpha (nominal)"].high - one["alpha (nominal)"].low for one in (few, many)]
    assert widths[1] < 0.5 * widths[0]


def test_perfect_agreement_is_one_and_constant_answers_are_undefined():
    table = np.tile(np.arange(10.0) % 3, (4, 1))
    found = agreement(annotated(table), n_bootstrap=0)
    assert all(one.value == pytest.approx(1.0) for one in found.coefficients)
    labels = Annotations(["a", "b"] * 3, ["x"] * 2 + ["y"] * 2 + ["z"] * 2, [1, 1, 1, 1, 1, 0])
    assert np.isfinite(agreement(labels, n_bootstrap=0)["alpha (nominal)"].value)


def test_the_later_label_of_a_user_counts():
    once = Annotations(["a", "b", "a", "b"], ["x", "x", "y", "y"], [1, 1, 0, 1])
    twice = Annotations(["a", "a", "b", "a", "b"], ["x", "x", "x", "y", "y"], [0, 1, 1, 0, 1])
    first, second = (agreement(one, n_bootstrap=0).to_arrow()["value"] for one in (once, twice))
    np.testing.assert_allclose(first, second)


def test_tables():
    found = agreement(annotated(ratings(2)), n_bootstrap=50)
    assert found.to_pandas()["name"].tolist()[0] == "alpha (nominal)"
    assert found.by_user().num_rows == 6
    for shown in (str(found), found._repr_html_()):
        assert "Agreement of 6 annotators on 30 items" in shown
    assert "alpha (ordinal)" in found.reading()


@pytest.mark.parametrize(
    ("third", "meaning"),
    [("yes", "reliable"), ("one", "tentative"), ("no", "too low")],
)
def test_reading_compares_alpha_with_the_usual_bounds(third, meaning):
    same = np.tile([0, 1], 10)
    other = {"yes": same, "one": np.r_[1 - same[:4], same[4:]], "no": np.zeros(20)}[third]
    labels = np.concatenate([same, same, other])
    crowd = Annotations(np.repeat(list("abc"), 20), np.tile(np.arange(20), 3), labels)
    found = agreement(crowd, n_bootstrap=0)
    assert meaning in found.reading()
    assert [one.name for one in found.coefficients][:2] == ["alpha (nominal)", "Fleiss' kappa"]
