"""A low-rank reward model: reward = x'V softmax(w_i), after its description in the literature.

A few reward functions, the columns of V, are shared by all, and a person mixes them: the weights
are positive and sum to one. Both are found by maximum penalised likelihood of the pairs; the number
of functions and the penalties by pairs that are held out. Of somebody new, only w_i is fitted.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, softmax

from likeminds import Annotations, split_within_users
from likeminds._util.array_types import Float, Index
from likeminds.data.identifiers import lookup

RANKS = (3, 6, 12)
# Penalties of how far the functions are from their mean, and of w.
PENALTIES = ((1.0, 0.3), (3.0, 0.3), (10.0, 0.1), (10.0, 0.3))
_HARDLY = 0.1


def sides(said: Annotations) -> tuple[Index, Index]:
    """Return the items of winners and losers, pair by pair."""
    assert said.choice_set_codes is not None
    order = np.argsort(said.choice_set_codes, kind="stable")
    codes, won = said.item_codes[order], said.labels[order]
    return codes[won], codes[~won]


class LowRankReward:
    """The model for items that are known by their ids: x is one of the rows of the identity."""

    def __init__(self, max_iter: int = 300) -> None:
        self.max_iter = max_iter

    def fit(self, train: Annotations) -> "LowRankReward":
        """Choose rank and penalties by a fifth of everybody's pairs, and learn from all."""
        part, held_out = split_within_users(train, 0.2, 0)
        tried = {}
        for rank in RANKS:
            for penalty in PENALTIES:
                self._learn(part, rank, penalty)
                scores, _ = self.predict(held_out, None)
                won, lost = scores[held_out.labels], scores[~held_out.labels]
                tried[rank, penalty] = float(np.logaddexp(0.0, lost - won).mean())
        self.rank_, self.penalty_ = min(tried, key=lambda key: tried[key])
        return self._learn(train, self.rank_, self.penalty_)

    def predict(self, said: Annotations, told: Annotations | None) -> tuple[Float, None]:
        """Return scores; of people unseen, given their pairs (without any, those of the mean)."""
        w, known = (self.w_, self.users_)
        if told is not None:
            w, known = self._fold_in(told), told.user_ids
        mixing = np.vstack([softmax(w, axis=1), self._middle])
        places = lookup(said.user_ids, known, "users")[said.user_codes]
        return np.einsum("nk,nk->n", self.V_[said.item_codes], mixing[places]), None

    @property
    def _middle(self) -> Float:
        """The mixture of somebody of whom nothing is known: the mean of everybody's."""
        return np.asarray(softmax(self.w_, axis=1).mean(axis=0))

    def _learn(
        self, train: Annotations, rank: int, penalty: tuple[float, float]
    ) -> "LowRankReward":
        n_items, n_users = train.n_items, train.n_users
        won, lost = sides(train)
        who = _owners(train)
        start = 0.3 * np.random.default_rng(0).standard_normal((n_items + n_users) * rank)

        def cost(flat: Float) -> tuple[float, Float]:
            V, w = np.split(flat.reshape(-1, rank), [n_items])
            value, by_mixing, slope = _loss(V, w, won, lost, who)
            by_w = np.zeros_like(w)
            np.add.at(by_w, who, by_mixing)
            by_V = np.zeros_like(V)
            pull = slope[:, None] * softmax(w, axis=1)[who]
            np.add.at(by_V, won, pull)
            np.add.at(by_V, lost, -pull)
            # What all agree on, the mean of the functions, is hardly penalised.
            mean = V.mean(axis=1, keepdims=True)
            by_V += penalty[0] * (V - mean) + _HARDLY * mean
            by_w += penalty[1] * w
            value += 0.5 * penalty[0] * float(((V - mean) ** 2).sum())
            value += 0.5 * _HARDLY * rank * float((mean**2).sum())
            value += 0.5 * penalty[1] * float((w**2).sum())
            return value, np.concatenate([by_V, by_w]).ravel()

        found = minimize(
            cost, start, jac=True, method="L-BFGS-B", options={"maxiter": self.max_iter}
        )
        self.V_, self.w_ = np.split(found.x.reshape(-1, rank), [n_items])
        self.users_, self.mean_, self._held = train.user_ids, self.w_.mean(axis=0), penalty[1]
        return self

    def _fold_in(self, told: Annotations) -> Float:
        """Fit the mixtures of people unseen, near those of the others."""
        won, lost = sides(told)
        who = _owners(told)

        def cost(flat: Float) -> tuple[float, Float]:
            w = flat.reshape(told.n_users, -1)
            value, by_mixing, _ = _loss(self.V_, w, won, lost, who)
            slope = self._held * (w - self.mean_)
            np.add.at(slope, who, by_mixing)
            away = 0.5 * self._held * float(((w - self.mean_) ** 2).sum())
            return value + away, slope.ravel()

        start = np.tile(self.mean_, told.n_users)
        options = {"maxiter": self.max_iter}
        found = minimize(cost, start, jac=True, method="L-BFGS-B", options=options)
        return np.asarray(found.x.reshape(told.n_users, -1))


def _owners(said: Annotations) -> Index:
    assert said.choice_set_codes is not None
    order = np.argsort(said.choice_set_codes, kind="stable")
    return said.user_codes[order][said.labels[order]]


def _loss(V: Float, w: Float, won: Index, lost: Index, who: Index) -> tuple[float, Float, Float]:
    """Return the loss of pairs, its gradient by each pair's w, and by its margin."""
    mixing = softmax(w, axis=1)[who]
    apart = V[won] - V[lost]
    margin = np.einsum("nk,nk->n", apart, mixing)
    slope = -expit(-margin)
    by_mixing = slope[:, None] * mixing * (apart - margin[:, None])
    return float(np.logaddexp(0.0, -margin).sum()), by_mixing, slope
