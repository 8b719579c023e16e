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
