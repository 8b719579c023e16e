"""The definitions, written as they stand in the paper: slow, and beyond doubt."""

import numpy as np
from scipy.optimize import minimize_scalar


def auc_quadratic(rows, labels, weights=None):
    """A, b, c of the squared AUC loss, by a double loop over pairs."""
    rows = np.asarray(rows, dtype=np.float64)
    weights = np.ones(len(rows)) if weights is None else weights
    d = rows.shape[1]
    A, b, total = np.zeros((d, d)), np.zeros(d), 0.0
    for p in np.flatnonzero(labels):
        for q in np.flatnonzero(~labels):
            pair = weights[p] * weights[q]
            difference = rows[p] - rows[q]
            A += pair * np.outer(difference, difference)
            b += pair * difference
            total += pair
    return (A / total, b / total, 1.0) if total else (A, b, 0.0)


def auc_loss(rows, labels, w, weights=None):
    """Half the mean over pairs of (1 - (f_p - f_q))^2: positives above negatives, one by one."""
    return auc_loss_of_grades(rows, labels, w, np.ones(len(rows)) if weights is None else weights)


def auc_loss_of_grades(rows, grades, w, weights):
    """Half the mean over pairs of unequal grades of (1 - (f_higher - f_lower))^2."""
    p, q = np.nonzero(np.greater.outer(grades, grades))
    pairs = weights[p] * weights[q]
    loss = pairs @ (1.0 - (rows[p] - rows[q]) @ w) ** 2
    return 0.5 * loss / pairs.sum() if len(pairs) else 0.0


def least_squares_loss(rows, labels, w, weights):
    """Half the weighted mean of (y - intercept - f)^2 at the best intercept, which is fitted."""
    y = np.where(labels, 1.0, -1.0)
    intercept = minimize_scalar(lambda c: np.sum(weights * (y - c - rows @ w) ** 2)).x
    return 0.5 * np.sum(weights * (y - intercept - rows @ w) ** 2) / weights.sum()


def least_squares_raw_loss(rows, labels, w, weights):
    """Half the weighted sum of (y - f)^2."""
    y = np.where(labels, 1.0, -1.0)
    return 0.5 * sum(weights[r] * (y[r] - rows[r] @ w) ** 2 for r in range(len(rows)))


def logistic_cost(rows, labels, w, weights):
    """Minus the log-probability of each label by itself."""
    eta = rows @ w
    return sum(
        weights[r] * (np.log1p(np.exp(eta[r])) - labels[r] * eta[r]) for r in range(len(rows))
    )


def choice_cost(rows, labels, w, weights):
    """Minus the log-probability of each positive label among it and the negatives."""
    eta, total = rows @ w, 0.0
    for p in np.flatnonzero(labels):
        if not labels.all():
            among = np.exp(eta[p]) + weights[~labels] @ np.exp(eta[~labels])
            total += weights[p] * (np.log(among) - eta[p])
    return total


def davidson_cost(won, lost, tied, nu):
    """Minus the log-probability of each pair of scores: the first wins, or the two are tied."""
    total = 0.0
    for a, b, tie in zip(won, lost, tied, strict=True):
        terms = {False: np.exp(a), True: nu * np.exp((a + b) / 2)}
        total -= np.log(terms[bool(tie)] / (np.exp(b) + sum(terms.values())))
    return total


def auc_cost(rows, labels, w, weights, precision=2.0):
    """Minus the log-density of as many normal observations as the pairs are worth."""
    positive, negative = weights[labels].sum(), weights[~labels].sum()
    strength = positive * negative / (positive + negative)
    return strength * (precision * auc_loss(rows, labels, w, weights) - np.log(precision))


def by_user(annotations):
    """Yield (rows, labels, weights) of each person in the order of user_ids."""
    weights = annotations.weights
    weights = np.ones(len(annotations)) if weights is None else weights
    for code in range(annotations.n_users):
        mine = annotations.user_codes == code
        yield annotations.X[mine], annotations.labels[mine], weights[mine]


LOSSES = {
    "auc": auc_loss,
    "least_squares": least_squares_loss,
    "least_squares_raw": least_squares_raw_loss,
}

PRIOR_LOSSES = {
    "logistic": logistic_cost,
    "choice": choice_cost,
    "mixed": logistic_cost,  # of labels that are in no group
    "auc": auc_cost,
}


def total_loss(annotations, W, loss="auc"):
    """The sum over people of their loss at their row of W."""
    users = zip(W, by_user(annotations), strict=True)
    return sum(LOSSES[loss](rows, labels, w, weights) for w, (rows, labels, weights) in users)


def objective(annotations, theta, G, P, *, lambdas, n_groups, loss="auc"):
    """F of the paper (with 1/2 on the loss), every formula spelled out."""
    lambda1, lambda2, lambda3, lambda4 = lambdas
    loss = total_loss(annotations, theta + G + P, loss)
    sigma = np.linalg.svd(G, compute_uv=False)
    return (
        loss
        + lambda1 * theta @ theta
        + lambda2 * np.sum(sigma[n_groups:] ** 2)
        + lambda4 * np.sum(sigma[:n_groups] ** 2)
        + lambda3 * sum(np.linalg.norm(row) for row in P)
    )
