"""Everybody's posterior, once the prior is learned: its mode, and what labels say of the rest."""

from collections import deque
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from likeminds._support.arrays import Bool, Float
from likeminds._support.stacks import solve
from likeminds._support.threads import one_blas_thread
from likeminds.prior.crowd import Crowd
from likeminds.prior.likelihoods import Curvature
from likeminds.prior.posterior import Dual, Mode, Primal, find_mode, over_blocks, system_of
from likeminds.prior.prior import Prior
from likeminds.prior.signs import keep_signs
from likeminds.prior.tasks import Tasks


def posterior_of(
    tasks: Tasks,
    n_people: int,
    crowd: Crowd,
    *,
    pulls: Float,
    rank: int,
    shifts: Float | None = None,
) -> tuple[Float, NDArray[np.float32]]:
    """Return everybody's mode and matrix K, of at most ``rank`` rows; see `Beliefs`.

    The mode is that of the prior; the uncertainty includes that of the prior's parameters. Where
    a crowd has covariates, people whose own are not known may have any: their prior is the wider
    one, in which covariates are integrated out. Of the others, K says that they are known.
    """
    prior = crowd.prior.shifted(shifts)
    size = len(prior.mean)
    points = prior.means(np.arange(n_people))
    # The penalty for the uncertainty of items takes a few rows more, and so do covariates.
    n_more = 0 if crowd.items is None else crowd.items.n_factors
    told = crowd.told(shifts, n_people)
    n_rows = min(rank + n_more, size + n_more)
    known = np.zeros((n_people, n_rows + told.shape[1], size), dtype=np.float32)
    known[:, n_rows:] = told
    settling = _Settling(crowd, points, known, min(rank, size))
    with one_blas_thread():
        settling.settle(tasks, prior, prior if crowd.wider is None else crowd.wider, pulls)
        if told.shape[1]:
            settling.settle_unknown(tasks, np.all(told == 0.0, axis=(1, 2)))
    return points, known


@dataclass(frozen=True)
class _Settling:
    """Arrays that are filled block by block: points, and the matrices K."""

    crowd: Crowd
    points: Float
    known: NDArray[np.float32]
    rank: int

    def settle(self, tasks: Tasks, prior: Prior, predictive: Prior, pulls: Float) -> None:
        """Find the modes under a prior, and K under the predictive one."""

        def settle(number: int) -> None:
            # Every block has people of its own, so that threads do not meet; and nothing as large
            # as a block is left behind.
            task = tasks.task(number)
            earlier = None if task.places is None else pulls[task.places]
            mode = find_mode(task, prior, self.crowd.likelihood, earlier)
            self._place(mode, prior, predictive)

        deque(over_blocks(settle, tasks), maxlen=0)

    def settle_unknown(self, tasks: Tasks, unknown: Bool) -> None:
        """Settle anew those of whom no covariate is known (a mask over all people)."""
        chosen = np.zeros(tasks.n_people, dtype=np.bool_)
        for number, people in enumerate(tasks.plan):
            chosen[people] = unknown[tasks.task(number).people]
        if not chosen.any():
            return
        crowd, few = self.crowd, tasks.of_people(chosen)
        self.settle(few, crowd.everybody, crowd.predictive, np.zeros(few.n_places))

    def _place(self, mode: Mode, prior: Prior, predictive: Prior) -> None:
        task, crowd = mode.task, self.crowd
        found = prior.means(task.people) + mode.system.z(mode.state) @ prior.root.T
        if crowd.signs is not None:
            found = keep_signs(found, task, prior, crowd.likelihood, crowd.signs)
        self.points[task.people] = found
        system = mode.system if predictive is prior else system_of(task, predictive)
        inner = _known(system, mode.said.curvature, self.rank)
        self.known[task.people, : inner.shape[1]] = inner @ predictive.root.T


def _known(system: Primal | Dual, curvature: Curvature, most: int) -> Float:
    """Return matrices K of few rows, (b, m, p), with the covariance I - K'K of z."""
    if system.held is not None:
        inner = system.held.of_rows(_known(replace(system, held=None), curvature, most))
        return np.concatenate([system.held.known(), inner], axis=1)
    if isinstance(system, Dual) and system.rows.shape[1] <= most:
        # Where there is room for all rows, a Cholesky factor does what eigenvectors would.
        factor: Float = np.asarray(np.linalg.cholesky(system.inner(curvature)), dtype=np.float64)
        return solve(factor, curvature.times_root_back(system.rows))
    directions, shrunk = system.information(curvature, most)
    return np.asarray(np.sqrt(shrunk)[:, :, None] * directions)
