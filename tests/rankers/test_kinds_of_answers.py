"""Every kind of answers has the capabilities of labels, with features of items and without."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likeminds
from likeminds import AnnotationFolder, Annotations, HierarchicalRanker

N_USERS, N_ITEMS, N_ANSWERS = 24, 10, 10
KINDS = ("label", "grade", "comparison", "tie", "choice", "ranking", "best_worst", "mixed")

pytestmark = [
    pytest.mark.seconds,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


class Crowd:
    """Two camps, whose scores are an item effect plus or minus a factor."""

    def __init__(self, kind, *, described):
        rng = self.rng = np.random.default_rng(0)
        self.kind, camp = kind, np.where(np.arange(N_USERS) % 2, 1.0, -1.0)
        table = rng.normal(size=(N_ITEMS, 2))
        self.scores = 1.5 * rng.normal(size=N_ITEMS) + np.outer(camp, rng.normal(size=N_ITEMS))
        self.scores += described * table[:, 0]
        self.items = np.array([f"item {j}" for j in range(N_ITEMS)])
        features = dict(zip(self.items.tolist(), table, strict=True))
        self.known = {"features": features} if described else {}

    def answers(self, users, items=N_ITEMS, kind=None, n=N_ANSWERS):
        """Return answers of some users on the first items, or on the given ones."""
        kind, who = kind or self.kind, np.repeat(users, n)
        among = np.arange(items) if isinstance(items, int) else np.asarray(items)
        n_shown = {"label": 1, "grade": 1, "comparison": 2, "tie": 2, "mixed": 2}.get(kind, 4)
        shown = np.array([self.rng.choice(among, n_shown, replace=False) for _ in who])
        noisy = self.scores[who[:, None], shown] + self.rng.gumbel(size=shown.shape)
        order = np.take_along_axis(shown, np.argsort(-noisy, axis=1), axis=1)
        names, ranked = [f"u{i:02}" for i in who], self.items[order].tolist()
        best, worst = self.items[order[:, 0]], self.items[order[:, -1]]
        if kind in {"label", "grade"}:
            scores = noisy[:, 0] if kind == "label" else np.clip(np.rint(noisy[:, 0]), -2, 2)
            return Annotations(names, best, scores > 0 if kind == "label" else scores, **self.known)
        if kind in {"comparison", "tie", "mixed"}:
            ties = np.abs(np.diff(noisy)[:, 0]) < 0.5 if kind == "tie" else None
            pairs = Annotations.from_comparisons(names, best, worst, ties, **self.known)
            return pairs if kind != "mixed" else pairs.concat(self.answers(users, items, "label"))
        if kind == "ranking":
            return Annotations.from_rankings(names, ranked, **self.known)
        menu = self.items[shown].tolist()
        if kind == "choice":
            return Annotations.from_choices(names, menu, best, **self.known)
        return Annotations.from_best_worst(names, menu, best, worst, **self.known)

    def to_score(self, user, items=N_ITEMS):
        """Return items as rows of a user."""
        return Annotations([user] * items, self.items[:items], np.ones(items, bool), **self.known)


def on_disk(said, folder):
    """Write rows of choice sets, or labels, as Parquet files."""
    columns = {"user": said.users.tolist(), "item": said.items.tolist(), "label": said.outcomes}
    columns |= {
        name: values
        for name, values in {
            "choice_set": said.choice_set_codes,
            "weight": said.weights,
            "tied": said.tied,
            "picks_worst": said.picks_worst,
        }.items()
        if values is not None
    }
    more = {"grades": True} if said.grades is not None else {}
    if said.n_features:
        table = dict(zip(said.feature_names, said.features.T, strict=True))
        pq.write_table(pa.table({"item": said.item_ids.tolist()} | table), folder / "items.parquet")
        more["features"] = folder / "items.parquet"
    (folder / "labels").mkdir()
    for part in (0, 1):
        rows = pa.table(columns).take(list(range(part, len(said), 2)))
        pq.write_table(rows, folder / "labels" / f"{part}.parquet")
    return AnnotationFolder(folder / "labels", **more)


@pytest.mark.parametrize("described", [False, True], ids=["ids", "features"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_the_capabilities_of_labels(kind, described, tmp_path):
    crowd = Crowd(kind, described=described)
    said = crowd.answers(np.arange(N_USERS - 4), N_ITEMS - 1)
    new = crowd.answers(np.arange(N_USERS - 4, N_USERS), N_ITEMS - 1)
    make = {"n_item_factors": 1, "loss": "cumulative" if kind == "grade" else "auto", "tol": 1e-3}
    ranker = HierarchicalRanker(**make).fit(said)
    assert ranker.item_effects_
    rows, first = crowd.to_score("u00", N_ITEMS - 1), ranker.users_[0]
    scores = ranker.decision_function(rows)
    assert np.corrcoef(scores, crowd.scores[0, :-1])[0, 1] > 0.5
    # Uncertainty, and which items to ask about.
    low, high = ranker.rank_interval(first, rows)
    assert (low <= high).all()
    assert (high > low).any()
    assert (ranker.standard_error(rows) > 0).all()
    assert len(set(ranker.next_items(first, rows, n=2))) == 2
    chances = ranker.predict_proba(said)[:, 1]
    assert chances[said.labels].mean() > chances[~said.labels].mean()
    # New users, whose answers are of the same kind, or labels.
    belief = ranker.newcomer(new)
    learned = [belief.decision_function(rows, [user] * len(rows)) for user in belief.users]
    assert np.corrcoef(np.mean(learned, axis=0), crowd.scores[-4:, :-1].mean(axis=0))[0, 1] > 0.5
    assert len(belief.next_items(rows, user=belief.users[0], n=2)) == 2
    liked = {crowd.items[0]: 2 if kind == "grade" else True}
    assert len(ranker.newcomer(liked).rank(k=3).items) == 3
    # New items, from answers that may show known ones.
    late = [N_ITEMS - 1] if kind in {"label", "grade"} else [0, 1, 2, N_ITEMS - 1]
    if kind == "mixed":
        late = late[-2:]
    answers = crowd.answers(np.arange(12), late, n=1 if len(late) == 1 else 4)
    wider = ranker.new_items(answers)
    assert len(wider.items_) == N_ITEMS
    np.testing.assert_array_equal(wider.decision_function(rows), scores)
    # Schools and explanations.
    schools = likeminds.find_schools(ranker, n_schools=2)
    assert len(schools) == 2
    assert sum(school.size for school in schools) == N_USERS - 4
    why = ranker.explain(first, crowd.items[0])
    assert why.score == pytest.approx(sum(why.levels.values()))
    # Files, with more answers, and fits from disk.
    loaded = likeminds.load(likeminds.save(ranker, tmp_path / "m.likeminds", with_data=True))
    np.testing.assert_array_equal(loaded.decision_function(rows), scores)
    np.testing.assert_allclose(loaded.newcomer(new).points, belief.points, atol=1e-9)
    joint = HierarchicalRanker(**make).fit(said.concat(new))
    np.testing.assert_allclose(
        loaded.update(new).decision_function(new), joint.decision_function(new), atol=1e-8
    )
    from_disk = HierarchicalRanker(**make).fit(on_disk(said, tmp_path))
    np.testing.assert_allclose(from_disk.decision_function(rows), scores, atol=1e-8)
    if not described:  # items without features are known by their effects
        bare = likeminds.load(likeminds.save(ranker, tmp_path / "bare.likeminds"))
        assert bare.annotations_ is None
        assert bare.rank("u00").items.tolist() == ranker.rank("u00").items.tolist()
