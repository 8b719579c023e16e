"""All pairs of unequal grades, without a list of them.

The graph joins every two rows r and s of a person whose grades differ, with weight w_r w_s / N,
where N is the weight of all such pairs. With n the weight of all rows, n_a that of the rows of
grade a, m and m_a their means and S_a the covariance of the latter, its Laplacian L has

    X'LX = sum over a < b of n_a n_b / N (S_a + S_b + d_ab d_ab'),       d_ab = m_b - m_a
         = sum over a of n_a (n - n_a) / N S_a  +  n / N sum over a of n_a (m_a - m)(m_a - m)'

and the pull of the pairs, each with its higher grade on top, is

    sum over a < b of n_a n_b / N d_ab = sum over a of n_a (below_a - above_a) / N m_a

with the weights below_a and above_a of rows with lower and with higher grades. With two grades
this is the Laplacian of the paper: see `paper.laplacian`.
"""

import numpy as np

from likeminds._util.array_types import Bool, Float
from likeminds.losses.rows import RowBlock


def pair_weight(class_weight: Float) -> Float:
    """Return the weight of all pairs of unequal grades, given that of each grade: (people, K)."""
    lower = np.cumsum(class_weight, axis=1)[:, :-1]
    return np.asarray(np.einsum("pk,pk->p", lower, class_weight[:, 1:]))


def pairs_from_moments(weight: Float, mean: Float, scatter: Float) -> tuple[Float, Float]:
    """Return X'LX and the pull of the pairs, from weight, mean and scatter by grade.

    The shapes are (p, K), (p, K, d) and (p, K, d, d); people with one grade get zeros.
    """
    pairs = pair_weight(weight)
    per_pair = np.where(pairs > 0, 1.0 / np.where(pairs > 0, pairs, 1.0), 0.0)
    total = weight.sum(axis=1)
    others = (total[:, None] - weight) * per_pair[:, None]
    matrices = np.einsum("pk,pkde->pde", others, scatter)
    share = weight / np.where(total > 0, total, 1.0)[:, None]
    apart = mean - np.einsum("pk,pkd->pd", share, mean)[:, None]
    apart *= (weight > 0)[:, :, None]
    between = np.sqrt(weight * (total * per_pair)[:, None])[:, :, None] * apart
    matrices += between.transpose(0, 2, 1) @ between
    below = np.cumsum(weight, axis=1) - weight
    lift = weight * (2.0 * below + weight - total[:, None]) * per_pair[:, None]
    return matrices, np.asarray(np.einsum("pk,pkd->pd", lift, apart))


def pairs_from_rows(block: RowBlock) -> tuple[Float, Float]:
    """Return Z with Z'Z = X'LX, and targets t with Z't the pull of the pairs and t't = 1.

    A row of grade a is sqrt((n - n_a)/N) (x - m_a) + sqrt(n/N) (m_a - m), its target
    (below_a - above_a) / sqrt(n N). Features cannot meet what is left of the targets of length
    one: the last row is zero.
    """
    weight = block.weight.sum(axis=1)
    grade, below, own_mean = _by_grade(block, weight)
    total = weight.sum(axis=1, keepdims=True)
    pairs = np.einsum("bn,bn->b", weight, below)[:, None]
    able: Bool = pairs > 0
    per_pair = np.where(able, 1.0 / np.where(able, pairs, 1.0), 0.0)
    share = weight / total
    mean = np.einsum("bn,bnd->bd", share, block.rows)[:, None]
    Z = np.zeros((*weight.shape[:1], weight.shape[1] + 1, block.rows.shape[2]))
    np.multiply(
        block.rows - own_mean, np.sqrt((total - grade) * per_pair)[:, :, None], out=Z[:, :-1]
    )
    Z[:, :-1] += (own_mean - mean) * np.sqrt(total * per_pair)[:, :, None]
    Z[:, :-1] *= np.sqrt(weight)[:, :, None]
    target = np.zeros(Z.shape[:2])
    lift = (2.0 * below + grade - total) * np.sqrt(per_pair / total)
    target[:, :-1] = np.sqrt(weight) * lift
    met = np.einsum("bn,bn->b", target, target)
    target[:, -1] = np.sqrt(np.maximum(able[:, 0] - met, 0.0))
    return Z, target


def _by_grade(block: RowBlock, weight: Float) -> tuple[Float, Float, Float]:
    """Return, for each row, the weight of its grade, of lower grades, and its grade's mean.

    Rows of a person come in the order of their grades, so that grades are runs of rows.
    """
    assert block.grade is not None
    n_users, n_rows = weight.shape
    begins = np.ones(weight.shape, dtype=np.bool_)
    begins[:, 1:] = np.diff(block.grade, axis=1) != 0
    starts = np.flatnonzero(begins.ravel())
    run = np.cumsum(begins.ravel()) - 1
    of_run = np.add.reduceat(weight.ravel(), starts)
    before = np.cumsum(weight, axis=1) - weight
    sums = np.add.reduceat(
        (block.rows * weight[:, :, None]).reshape(-1, block.rows.shape[2]), starts
    )
    means = sums / np.where(of_run > 0, of_run, 1.0)[:, None]
    shape = (n_users, n_rows)
    grade, below = of_run[run].reshape(shape), before.ravel()[starts][run].reshape(shape)
    return grade, below, means[run].reshape(block.rows.shape)
