"""Small crowds to test on."""

import numpy as np

from likeminds import Annotations


def make_crowd(rng, n_features=5, shift=0.0, spread=1.0, weights=True):
    counts = [2, 3, 4, 4, 6, 9, 10, 14, 20, 30, 5, 7]
    users = np.repeat([f"person-{i:02d}" for i in range(len(counts))], counts)
    labels = rng.random(len(users)) < 0.4
    for person in np.unique(users):
        mine = np.flatnonzero(users == person)
        labels[mine[0]], labels[mine[1]] = True, False
    labels[users == "person-10"] = True  # one class only
    order = rng.permutation(len(users))
    features = shift + spread * rng.standard_normal((len(users), n_features))
    return Annotations(
        users=users[order],
        items=None,
        labels=labels[order],
        features=features,
        weights=rng.uniform(0.5, 2.0, len(users)) if weights else None,
    )


def make_choices(mean, covariance, *, n_users=60, n_sets=8, set_size=3, seed=0):
    """Return choices of people whose weights are draws from a normal distribution."""
    rng = np.random.default_rng(seed)
    mean, d = np.asarray(mean, dtype=np.float64), len(mean)
    weights = mean + rng.standard_normal((n_users, d)) @ np.linalg.cholesky(covariance).T
    X = rng.standard_normal((n_users, n_sets, set_size, d))
    utility = np.einsum("isjd,id->isj", X, weights) + rng.gumbel(size=X.shape[:3])
    chosen = utility.argmax(axis=2)[:, :, None] == np.arange(set_size)
    users = np.repeat([f"p{i:03d}" for i in range(n_users)], n_sets * set_size)
    groups = np.repeat(np.arange(n_users * n_sets), set_size)
    crowd = Annotations(
        users,
        None,
        chosen.ravel(),
        X.reshape(-1, d),
        choice_sets=groups,
        feature_names=["price", "size", "speed", "colour"][:d],
    )
    return crowd, weights


def make_votes(
    seed=0, *, n_users=60, n_items=30, per_person=12, n_features=2, effect=1.0, factor=0.0
):
    """Everybody judges some of the items; returns the annotations and the true scores."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, n_features))
    W = rng.normal(size=n_features) + 0.5 * rng.normal(size=(n_users, n_features))
    scores = W @ X.T + effect * rng.normal(size=n_items)
    scores += factor * np.outer(rng.normal(size=n_users), rng.normal(size=n_items))
    user = np.repeat(np.arange(n_users), per_person)
    item = np.concatenate([rng.permutation(n_items)[:per_person] for _ in range(n_users)])
    labels = rng.random(len(user)) < 1 / (1 + np.exp(-scores[user, item]))
    said = Annotations(user, item, labels, X, item_ids=np.arange(n_items))
    return said, scores


def make_grades(rng, n_users=30, n_items=40, n_each=20):
    """People who grade shared items from 1 to 7, in their own part of the scale."""
    X = rng.normal(size=(n_items, 3))
    effect = rng.normal(size=n_items)
    taste = np.array([1.0, -1.0, 0.0]) + 0.5 * rng.normal(size=(n_users, 3))
    users = np.repeat(np.arange(n_users), n_each)
    items = np.concatenate([rng.permutation(n_items)[:n_each] for _ in range(n_users)])
    liked = np.einsum("nd,nd->n", X[items], taste[users]) + effect[items]
    own = np.exp(0.4 * rng.normal(size=n_users))[users], rng.normal(size=n_users)[users]
    grades = np.clip(np.round(4 + own[1] + own[0] * (liked + rng.logistic(size=len(users)))), 1, 7)
    return Annotations(users, items, grades, X)
