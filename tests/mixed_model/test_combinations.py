"""Every combination of answers, features, items, covariates and place fits, or says why not."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.special import expit

import likeminds
from likeminds import AnnotationFolder, Annotations, HierarchicalRanker

N_USERS, N_ITEMS, N_ANSWERS = 10, 8, 6
ANSWERS = ("label", "grade", "choice", "comparison", "mixed")
FEATURES = {"none": 0, "some": 2, "wide": 12}
ITEMS = {
    "off": {"item_effects": False},
    "effects": {"item_effects": True, "n_item_factors": 0},
    "factors": {"item_effects": True, "n_item_factors": 1},
}

pytestmark = [
    pytest.mark.seconds,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


class Crowd:
    """Users whose scores are an item effect plus a taste for the first feature."""

    def __init__(self, features, covariates, seed=0):
        rng = self.rng = np.random.default_rng(seed)
        table = rng.normal(size=(N_ITEMS, FEATURES[features]))
        self.items = [f"i{j}" for j in range(N_ITEMS)]
        self.users = [f"u{i}" for i in range(N_USERS + 1)]  # the last one is new
        self.ages = dict(zip(self.users, rng.normal(size=N_USERS + 1), strict=True))
        self.known = {"features": dict(zip(self.items, table, strict=True))}
        if not table.size:
            self.known = {}
        taste = np.array(list(self.ages.values()))[:, None] * (table[:, 0] if table.size else 0.0)
        self.scores = rng.normal(size=N_ITEMS) + taste
        self.covariates = {user: {"age": age} for user, age in self.ages.items()}
        if covariates:
            self.known["user_features"] = self.covariates

    def annotations(self, answer, users):
        """Return the answers of some users, by their positions."""
        who = np.repeat(users, N_ANSWERS)
        shown = [self.rng.choice(N_ITEMS, 3, replace=False) for _ in who]
        scores = np.array([self.scores[i, j] for i, j in zip(who, shown, strict=True)])
        scores = scores + self.rng.gumbel(size=scores.shape)
        names = [self.users[i] for i in who]
        items = [[self.items[j] for j in one] for one in shown]
        first = [one[0] for one in items]
        if answer == "label":
            labels = self.rng.random(len(who)) < expit(scores[:, 0])
            return Annotations(names, first, labels, **self.known)
        if answer == "grade":
            return Annotations(names, first, np.clip(np.rint(scores[:, 0]), -2, 2), **self.known)
        if answer == "choice":
            best = [one[k] for one, k in zip(items, scores.argmax(axis=1), strict=True)]
            return Annotations.from_choices(names, items, best, **self.known)
        won = (scores[:, 1] > scores[:, 0]).astype(int)
        winners, losers = (
            [one[k] for one, k in zip(items, side, strict=True)] for side in (won, 1 - won)
        )
        pairs = Annotations.from_comparisons(names, winners, losers, **self.known)
        if answer == "comparison":
            return pairs
        alone = [f"alone {k}" for k in range(len(who))]
        labels = Annotations(names, first, scores[:, 0] > 0, choice_sets=alone, **self.known)
        return labels.without_choice_set_names().concat(pairs)


def on_disk(said, folder):
    """Write annotations as Parquet files, the features in a table of their own."""
    columns = {"user": said.users.tolist(), "item": said.items.tolist()}
    columns["label"] = said.outcomes if said.grades is not None else said.labels
    more = {}
    if said.choice_set_codes is not None:
        columns["choice_set"] = said.choice_set_codes
    if said.n_features:
        table = dict(zip(said.feature_names, said.features.T, strict=True))
        pq.write_table(pa.table({"item": said.item_ids.tolist()} | table), folder / "items.parquet")
        more = {"features": str(folder / "items.parquet")}
    (folder / "labels").mkdir()
    pq.write_table(pa.table(columns), folder / "labels" / "one.parquet")
    if said.user_features is not None:
        more["user_features"] = said.user_features
    return AnnotationFolder(folder / "labels", grades=said.grades is not None or None, **more)


def make_ranker(answer, features, items, monkeypatch):
    monkeypatch.setattr("likeminds.rankers.hierarchical_fit.WIDE", 5)
    loss = "cumulative" if answer == "grade" else "auto"
    wide = {"wide": features == "wide"}
    return HierarchicalRanker(loss=loss, n_groups=0, tol=1e-2, max_iter=20, **ITEMS[items], **wide)


@pytest.mark.parametrize("place", ["memory", "disk"])
@pytest.mark.parametrize("covariates", [False, True], ids=["plain", "covariates"])
@pytest.mark.parametrize("items", ITEMS)
@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("answer", ANSWERS)
def test_combinations(  # noqa: PLR0917 - what is combined, and two fixtures
    answer, features, items, covariates, place, tmp_path, monkeypatch
):
    crowd = Crowd(features, covariates)
    said = crowd.annotations(answer, np.arange(N_USERS))
    ranker = make_ranker(answer, features, items, monkeypatch)
    if features == "none" and items == "off":
        with pytest.raises(ValueError, match="needs item effects"):
            ranker.fit(said)
        return
    ranker.fit(on_disk(said, tmp_path) if place == "disk" else said)
    check(ranker, said, crowd.annotations(answer, [N_USERS]), tmp_path)
    expected = {"none": 0, "some": 2, "wide": 12}[features]
    assert ranker.coef_.shape == (N_USERS, expected)
    assert ranker.n_item_factors_ == (items == "factors")
    plain = items == "off" and not covariates and answer != "grade"
    assert ranker.wide_ == (features == "wide" and plain)


def check(ranker, said, new, folder):
    """Rank, take a new user, save and load."""
    scores = ranker.decision_function(said)
    assert np.isfinite(scores).all()
    assert len(np.unique(scores.round(9))) > 3
    low, high = ranker.rank_interval(said.users[0], said[:3])
    assert (low >= 1).all()
    assert (high <= 3).all()
    belief = ranker.newcomer(new)
    assert np.isfinite(belief.decision_function(new)).all()
    assert (belief.standard_error(new) >= 0).all()
    again = likeminds.load(likeminds.save(ranker, folder / "m.likeminds"))
    np.testing.assert_allclose(again.decision_function(said), scores, atol=1e-9)
    np.testing.assert_allclose(again.newcomer(new).points, belief.points, atol=1e-7)


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed", reason="a cluster needs likeminds[dask]")
    pytest.importorskip("likeminds.cluster")
    given = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    with distributed.Client(**given, dashboard_address=":0") as found:
        yield found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "case",
    [
        ("label", "some", "factors"),
        ("label", "none", "effects"),
        ("label", "wide", "effects"),
        ("grade", "some", "effects"),
        ("choice", "some", "off"),
        ("comparison", "none", "factors"),
        ("comparison", "some", "effects"),
    ],
)
def test_combinations_on_a_cluster(case, client, tmp_path, monkeypatch):
    answer, features, items = case
    crowd = Crowd(features, covariates=False)
    said = crowd.annotations(answer, np.arange(N_USERS))
    ranker = make_ranker(answer, features, items, monkeypatch)
    named = {"item_ids": said.item_ids, "feature_names": said.feature_names}
    if said.choice_set_codes is not None:
        named["choice_set"] = "choice_set"
    half = said.user_codes < N_USERS // 2
    table = said.features if said.n_features else None
    shards = likeminds.cluster.Shards.from_parts([said[half], said[~half]], client, table, **named)
    ranker.fit(shards)
    local = make_ranker(answer, features, items, monkeypatch).fit(said)
    scores = [one.decision_function(said) for one in (ranker, local)]
    np.testing.assert_allclose(*scores, atol=1e-4)
    check(ranker, said, crowd.annotations(answer, [N_USERS]), tmp_path)
