"""Ours and its rivals on shared items: each takes a crowd's labels and returns scores."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import RidgeCV

from benchmarks.peers import standardised
from likeminds import Annotations, HierarchicalRanker
from likeminds._util.array_types import Float
from likeminds.rankers.registry import default_rankers

OURS = "HierarchicalRanker"
WITHOUT = "without item effects"
GPBOOST = "GPBoost, crossed"
RIDGE = "ridge on items"
# Rankers that know items by their features alone, each tuned.
FEATURES_ONLY = ("ThreeLevelRankerCV", "RidgeToConsensus", "COMT")
BY_ID = ("Popularity", "Factorisation")
Method = Callable[[Annotations, Annotations], Float]


def methods_for(
    said: Annotations, *, shared: bool, quick: bool = False, words_only: bool = False
) -> dict[str, Method]:
    """Return the methods that apply to a crowd, ours first; the quick ones are fewer."""
    named, ours = (
        default_rankers(),
        HierarchicalRanker(standardize=not words_only, unknown="consensus"),
    )
    chosen: dict[str, Any] = {OURS: ours}
    if shared:
        chosen |= {name: named[name] for name in BY_ID}
    if said.n_features:
        chosen[WITHOUT] = clone(ours).set_params(item_effects=False)
    if shared and said.n_features:
        chosen |= {name: named[name] for name in FEATURES_ONLY}
    methods: dict[str, Method] = {name: _scores_of(ranker) for name, ranker in chosen.items()}
    # Its threads can wait for each other for half a minute on a busy machine.
    if shared and not quick and find_spec("gpboost") is not None:
        methods[GPBOOST] = crossed
    return methods


def _scores_of(ranker: Any) -> Method:
    """Return scores of a ranker; new users and items are average."""
    unknown = {n: "consensus" for n in ranker.get_params() if n.rpartition("__")[2] == "unknown"}
    asked = clone(ranker).set_params(**unknown)
    return lambda train, test: asked.fit(train).decision_function(test)


def ridge_on_items(train: Annotations, test: Annotations) -> Float:
    """Return what a tuned ridge regression makes of features: of items' log-odds of a yes."""
    item, first = np.unique(train.item_codes, return_index=True)
    number = np.bincount(train.item_codes)[item]
    yes = np.bincount(train.item_codes, train.labels)[item]
    log_odds = np.log((yes + 1.0) / (number - yes + 1.0))
    model = RidgeCV(alphas=np.logspace(-2, 4, 25)).fit(train.X[first], log_odds)
    return np.asarray(model.predict(test.X))


def crossed(train: Annotations, test: Annotations) -> Float:
    """Return the scores of GPBoost with crossed random effects of people and items.

    People have random coefficients of the standardised features, too, where there are any.
    """
    gpboost = import_module("gpboost")
    slopes, fixed = [{}, {}], [np.ones((len(rows), 1)) for rows in (train, test)]
    if train.n_features:
        X, X_test = standardised(train, test)
        by_user = {"ind_effect_group_rand_coef": [1] * X.shape[1]}
        slopes = [{"group_rand_coef_data": X} | by_user, {"group_rand_coef_data_pred": X_test}]
        fixed = [np.hstack(pair) for pair in zip(fixed, (X, X_test), strict=True)]
    who = [np.column_stack([rows.users, rows.items]).astype(str) for rows in (train, test)]
    model = gpboost.GPModel(group_data=who[0], likelihood="bernoulli_logit", **slopes[0])
    model.fit(y=train.labels.astype(np.float64), X=fixed[0])
    predicted = model.predict(
        group_data_pred=who[1], X_pred=fixed[1], predict_response=False, **slopes[1]
    )
    return np.asarray(predicted["mu"])
