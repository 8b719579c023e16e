"""Models that take the labels of crowds, with the methods that `benchmarks.crowd_peers` scores."""

import warnings
from collections.abc import Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit, log_softmax, logsumexp, softmax
from sklearn.linear_model import LogisticRegressionCV

from benchmarks.choice_models import Specification, rectangle
from likeminds import Annotations
from likeminds.rankers.registry import default_rankers

_RANKS = (4, 8, 16)
_DRAWS = 300
# Hyperparameters are chosen on this share of the training rows.
_ASIDE = 0.15
# GPBoost: with more features, weights do not vary between users.
_MOST_SLOPES = 20
# xlogit: at most so many draws in fits, and so many of each user's weights in predictions.
_MOST_DRAWS, _WEIGHTS = 300, 5000


class Design:
    """Rows of users, items and features, one per label or, for choices, one per pair."""

    def __init__(self, train: Annotations) -> None:
        self._users, self._items = train.user_ids, train.item_ids
        spread = train.features.std(axis=0)
        self._spread = np.where(spread > 0, spread, 1.0)

    def rows(self, annotations: Annotations) -> sparse.csr_matrix:
        """Return one row per label: user, item, features."""
        users = _one_hot(annotations.users, self._users)
        return sparse.hstack([users, self._of_items(annotations)], format="csr")

    def pairs(self, annotations: Annotations) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray]:
        """Return one row per pair (first less second), and the positions of the two rows."""
        order = np.argsort(annotations.choice_set_codes, kind="stable")
        first, second = order[::2].copy(), order[1::2].copy()
        # Winners may come first in all pairs: every other pair is turned round.
        first[::2], second[::2] = order[1::4], order[::4]
        items = self._of_items(annotations)
        users = _one_hot(annotations.users[first], self._users)
        both = sparse.hstack([users, items[first] - items[second]], format="csr")
        return both, first, second

    def _of_items(self, annotations: Annotations) -> sparse.csr_matrix:
        parts = [sparse.csr_matrix(annotations.X / self._spread)]
        if annotations.has_items:
            parts.append(_one_hot(annotations.items, self._items))
        return sparse.hstack(parts, format="csr")


def _one_hot(values: np.ndarray, known: np.ndarray) -> sparse.csr_matrix:
    order = np.argsort(known)
    place = order[np.searchsorted(known[order], values).clip(max=len(known) - 1)]
    there = known[place] == values
    shape = (len(values), len(known))
    return sparse.csr_matrix((there.astype(float), (np.arange(len(values)), place)), shape=shape)


class Machine:
    """Base: a model of `Design` rows, with the methods that the scores ask for."""

    def fit(self, train: Annotations) -> "Machine":
        """Learn from labels, grades or pairs."""
        self._design = Design(train)
        self._is_paired = train.choice_set_codes is not None
        self._levels = self.grading_ = None if train.grades is None else np.unique(train.grades)
        self._learn(*self._given(train))
        return self

    def _given(self, annotations: Annotations) -> tuple[sparse.csr_matrix, np.ndarray]:
        if self._is_paired:
            rows, first, _ = self._design.pairs(annotations)
            return rows, annotations.labels[first].astype(int)
        rows = self._design.rows(annotations)
        if self._levels is not None:
            return rows, np.searchsorted(self._levels, annotations.grades)
        return rows, annotations.labels.astype(int)

    def predict_proba(self, annotations: Annotations) -> np.ndarray:
        """Return the probability of each label; of a pair's rows, to be chosen."""
        if not self._is_paired:
            return self._of_answers(self._design.rows(annotations))
        rows, first, second = self._design.pairs(annotations)
        chance = np.empty(len(annotations))
        chance[first] = self._of_answers(rows)[:, 1]
        chance[second] = 1.0 - chance[first]
        return np.column_stack([1 - chance, chance])

    def predict_grades(self, annotations: Annotations) -> SimpleNamespace:
        """Return the probability of each grade."""
        chances = self._of_answers(self._design.rows(annotations))
        return SimpleNamespace(grades=self._levels, probabilities=chances)

    def decision_function(self, annotations: Annotations) -> np.ndarray:
        """Return log-odds, or expected grades."""
        if self._levels is not None:
            return self._of_answers(self._design.rows(annotations)) @ self._levels
        chance = self.predict_proba(annotations)[:, 1].clip(1e-9, 1 - 1e-9)
        return np.log(chance / (1 - chance))

    def _learn(self, rows: sparse.csr_matrix, answer: np.ndarray) -> None:
        raise NotImplementedError

    def _of_answers(self, rows: sparse.csr_matrix) -> np.ndarray:
        """Return the probability of each label or grade, by row."""
        raise NotImplementedError


class Pooled(Machine):
    """One regression for all: item effects and features.

    For pairs, it is a Bradley-Terry model; for grades, multinomial.
    """

    def _learn(self, rows: sparse.csr_matrix, answer: np.ndarray) -> None:
        penalties = np.logspace(-2, 2, 9)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._model = LogisticRegressionCV(
                Cs=penalties, cv=5, scoring="neg_log_loss", fit_intercept=not self._is_paired
            ).fit(rows, answer)

    def _of_answers(self, rows: sparse.csr_matrix) -> np.ndarray:
        return np.asarray(self._model.predict_proba(rows))


class MyFM(Machine):
    """The Bayesian factorisation machine; its rank is chosen on held-out rows."""

    def _learn(self, rows: sparse.csr_matrix, answer: np.ndarray) -> None:
        myfm = import_module("myfm")
        make = myfm.MyFMClassifier if self._levels is None else myfm.MyFMOrderedProbit
        out = np.random.default_rng(0).random(len(answer)) < _ASIDE
        losses = []
        for rank in _RANKS:
            self._model = self._sampled(make(rank, random_seed=0), rows[~out], answer[~out])
            given = self._of_answers(rows[out])[np.arange(out.sum()), answer[out]]
            losses.append(-np.log(np.maximum(given, 1e-12)).mean())
        self._model = self._sampled(make(_RANKS[int(np.argmin(losses))]), rows, answer)

    def _sampled(self, model: Any, rows: sparse.csr_matrix, answer: np.ndarray) -> Any:
        n_users = len(self._design._users)
        shapes = [n_users, rows.shape[1] - n_users]
        return model.fit(
            rows, answer, n_iter=_DRAWS, n_kept_samples=_DRAWS // 2, group_shapes=shapes
        )

    def _of_answers(self, rows: sparse.csr_matrix) -> np.ndarray:
        found = np.asarray(self._model.predict_proba(rows))
        return found if found.ndim == 2 else np.column_stack([1 - found, found])


class TunedFactorisation:
    """Factorisation with cross-validated parameters; its scores are log-odds."""

    def fit(self, train: Annotations) -> "TunedFactorisation":
        """Tune and fit."""
        ranker = default_rankers()["Factorisation"].set_params(ranker__unknown="consensus")
        self._ranker = ranker.fit(train)
        return self

    def decision_function(self, annotations: Annotations) -> np.ndarray:
        """Return log-odds."""
        return np.asarray(self._ranker.decision_function(annotations))

    def predict_proba(self, annotations: Annotations) -> np.ndarray:
        """Return the probability of each label."""
        chance = expit(self.decision_function(annotations))
        return np.column_stack([1 - chance, chance])


class CrossedEffects:
    """GPBoost: a logistic regression with random effects of users and of items.

    Whether the weights of features vary between users, too, is chosen on held-out rows.
    """

    def fit(self, train: Annotations) -> "CrossedEffects":
        """Choose the random effects, and fit."""
        spread = train.features.std(axis=0)
        self._mean, self._scale = train.features.mean(axis=0), np.where(spread > 0, spread, 1.0)
        aside = np.random.default_rng(0).random(len(train)) < _ASIDE
        losses = {}
        for slopes in {False, 0 < train.n_features <= _MOST_SLOPES}:
            self._learn(train[~aside], slopes)
            chance = self.predict_proba(train[aside])[:, 1]
            given = np.where(train.labels[aside], chance, 1 - chance)
            losses[slopes] = -np.log(np.maximum(given, 1e-12)).mean()
        self._learn(train, min(losses, key=losses.__getitem__))
        return self

    def _learn(self, train: Annotations, slopes: bool) -> None:
        self.has_slopes_ = slopes
        groups, X = self._design(train)
        options: dict[str, Any] = {}
        if slopes:
            each = [1] * train.n_features
            options = {"group_rand_coef_data": X[:, 1:], "ind_effect_group_rand_coef": each}
        make = import_module("gpboost").GPModel
        self._model = make(
            group_data=groups,
            likelihood="bernoulli_logit",
            matrix_inversion_method="cholesky",
            **options,
        )
        self._model.fit(y=train.labels.astype(float), X=X)

    def _design(self, annotations: Annotations) -> tuple[np.ndarray, np.ndarray]:
        groups = np.column_stack([annotations.users.astype(str), annotations.items.astype(str)])
        X = (annotations.X - self._mean) / self._scale
        return groups, np.column_stack([np.ones(len(X)), X])

    def predict_proba(self, annotations: Annotations) -> np.ndarray:
        """Return the probability of each label, integrated over the random effects."""
        groups, X = self._design(annotations)
        varying = {"group_rand_coef_data_pred": X[:, 1:]} if self.has_slopes_ else {}
        chance = self._model.predict(
            group_data_pred=groups, X_pred=X, predict_response=True, **varying
        )["mu"]
        return np.column_stack([1 - chance, chance])

    def decision_function(self, annotations: Annotations) -> np.ndarray:
        """Return log-odds."""
        chance = self.predict_proba(annotations)[:, 1].clip(1e-9, 1 - 1e-9)
        return np.log(chance / (1 - chance))


class SimulatedMixedLogit:
    """xlogit: a mixed logit, as published or with normal weights of all features.

    The one with the lower AIC is taken. xlogit predicts for the population; here, the draws of
    weights are reweighted by the likelihood of the training choices of each user.
    """

    def __init__(self, specification: Specification) -> None:
        self._specification = specification

    def fit(self, train: Annotations) -> "SimulatedMixedLogit":
        """Estimate by simulated maximum likelihood, then draw the weights of each user."""
        spec, names = self._specification, list(train.feature_names)
        published = {
            name: "ln" if name in spec.logs else "n" for name in names if name not in spec.fixed
        }
        everything = dict.fromkeys(names, "n")
        kinds = [published] if published == everything else [published, everything]
        fits = [(kind, self._estimate(train, kind)) for kind in kinds]
        kind, model = min(fits, key=lambda fit: fit[1].aic)
        said = dict(zip(model.coeff_names, model.coeff_, strict=True))
        rng = np.random.default_rng(0)
        self._weights = np.empty((len(names), _WEIGHTS))
        for row, name in zip(self._weights, names, strict=True):
            drawn = said[name] + said.get(f"sd.{name}", 0.0) * rng.standard_normal(_WEIGHTS)
            row[:] = spec.logs[name] * np.exp(drawn) if kind.get(name) == "ln" else drawn
        self._log_shares = {}
        for user, mine in _by_user(train):
            log_chance = self._by_draw(train[mine], log_softmax)[train.labels[mine]].sum(axis=0)
            self._log_shares[user] = log_chance - logsumexp(log_chance)
        return self

    def _estimate(self, train: Annotations, kind: dict[str, str]) -> Any:
        spec, names = self._specification, list(train.feature_names)
        X, y, ids, alts, panels, available = rectangle(train)
        signs = [spec.logs[name] if kind.get(name) == "ln" else 1 for name in names]
        model = import_module("xlogit").MixedLogit()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(
                X=X * np.array(signs),
                y=y,
                varnames=names,
                ids=ids,
                alts=alts,
                panels=panels,
                avail=available,
                randvars=kind,
                n_draws=min(spec.draws, _MOST_DRAWS),
                optim_method=spec.method,
                skip_std_errs=True,
                verbose=0,
            )
        return model

    def _by_draw(self, annotations: Annotations, normalised: Any) -> np.ndarray:
        """Return, by row and draw, the probability to be chosen in its set, or its logarithm."""
        utility = annotations.X @ self._weights
        codes = annotations.choice_set_codes
        for code in np.unique(codes):
            utility[codes == code] = normalised(utility[codes == code], axis=0)
        return utility

    def predict_proba(self, annotations: Annotations) -> np.ndarray:
        """Return the probability to be chosen of each row of a choice set."""
        chance = np.empty(len(annotations))
        for user, mine in _by_user(annotations):
            chance[mine] = self._by_draw(annotations[mine], softmax) @ np.exp(
                self._log_shares[user]
            )
        return np.column_stack([1 - chance, chance])

    def decision_function(self, annotations: Annotations) -> np.ndarray:
        """Return the logarithms of these probabilities."""
        return np.log(self.predict_proba(annotations)[:, 1].clip(min=1e-12))


def _by_user(annotations: Annotations) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield the users with the positions of their rows."""
    order = np.argsort(annotations.user_codes, kind="stable")
    ends = np.cumsum(np.bincount(annotations.user_codes, minlength=annotations.n_users))[:-1]
    yield from zip(annotations.user_ids.tolist(), np.split(order, ends), strict=True)
