"""The paper's theorems as functions: Lipschitz constants, convergence, generalisation."""

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.utils.validation import check_is_fitted

from likeminds._util.array_types import Float
from likeminds.data.annotations import Annotations
from likeminds.losses import QuadraticLoss, SquaredAUC
from likeminds.losses.statistics import Statistics
from likeminds.rankers.three_level import ThreeLevelRanker
from likeminds.solvers import History

__all__ = [
    "ConvergenceCertificate",
    "GeneralizationBound",
    "convergence_certificate",
    "generalization_bound",
    "lipschitz_bound",
    "lipschitz_constant",
]


def lipschitz_bound(statistics: Statistics, scale: Float | None = None) -> float:
    """Return Theorem 1's constant: 3 U sqrt(2U + 1) max_i n_i |X_i|^2 / (n_i+ n_i-).

    This is the upper bound of the paper; `lipschitz_constant` is the sharp one, usually thousands
    of times smaller. Each row counts by its weight.

    Parameters
    ----------
    statistics : Statistics
        The statistics of all users' labels.
    scale : array of shape (n_features,), optional
        The units of the features.

    Examples
    --------
    >>> annotations = Annotations(
    ...     users=["ann"] * 3, items=None, labels=[0, 0, 1], features=[[1.0], [2.0], [4.0]]
    ... )
    >>> lipschitz_bound(Statistics.from_annotations(annotations))  # 3 sqrt(3) (3 * 21) / (1 * 2)
    163.67...
    """
    negatives, positives = statistics.class_weight.T
    pairs = statistics.has_pairs
    ratio = (negatives + positives)[pairs] / (negatives * positives)[pairs]
    worst = float(np.max(ratio * _squared_norms(statistics, scale)[pairs]))
    n_users = int(pairs.sum())
    return 3 * n_users * float(np.sqrt(2 * n_users + 1)) * worst


def lipschitz_constant(loss: QuadraticLoss) -> float:
    """Return the smallest Lipschitz constant of the loss's gradient by (theta, G, P).

    It is the largest eigenvalue of the Hessian, found by Lanczos iterations. G and P move
    the weights alike, so the extreme direction moves them by the same amount.

    Examples
    --------
    >>> annotations = Annotations(
    ...     users=["ann"] * 3, items=None, labels=[0, 0, 1], features=[[1.0], [2.0], [4.0]]
    ... )
    >>> loss = SquaredAUC().of(Statistics.from_annotations(annotations))
    >>> round(lipschitz_constant(loss), 9)  # one person: 3 A, with A = 0.25 + 0 + 2.5^2
    19.5
    """
    n_users, n_features = loss.shape

    def hessian(direction: Float) -> Float:
        theta, both = direction[:n_features], direction[n_features:].reshape(loss.shape)
        bent = loss.apply(theta + np.sqrt(2.0) * both)
        return np.concatenate([bent.sum(axis=0), np.sqrt(2.0) * bent.ravel()])

    size = n_features * (n_users + 1)
    operator = LinearOperator((size, size), matvec=hessian, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)
    (largest,) = eigsh(operator, k=1, which="LA", v0=start, return_eigenvectors=False)
    return float(largest)


@dataclass(frozen=True)
class ConvergenceCertificate:
    """The five claims of Theorem 2, checked on the history of a run.

    Claims 2 to 4 are about limits: a run provides evidence, not a proof.

    Attributes
    ----------
    decreases : bool
        Claim 1: each step lowers the objective by at least (rho - eta)/2 times its squared
        length, to rounding.
    steps_vanish : bool
        Claim 2: the last step of each level is at most ``tol`` times its longest.
    bounded : bool
        Claim 3: the norms of all levels grow at most as much in the second half of the steps as in
        the first.
    critical : bool
        Claim 4: the optimality residual of the last iterate is at most ``tol``.
    rate_holds : bool
        Claim 5: the shortest squared step of each level is at most C_T / T.
    largest_shortfall : float
        The largest violation of claim 1 by a step, relative to the first objective.
    last_steps : array of shape (n_components,)
        The last step of each level over its longest.
    largest_norms : array of shape (n_components,)
        The largest norm of each level.
    residual : float
        The optimality residual of the last iterate.
    best_squared_steps : array of shape (n_components,)
        The shortest squared step of each level.
    rate_constant : float
        C_T = F_0 / min_k (rho_k - eta_k)/2 of claim 5.
    n_steps : int
        T.
    """

    decreases: bool
    steps_vanish: bool
    bounded: bool
    critical: bool
    rate_holds: bool
    largest_shortfall: float
    last_steps: Float
    largest_norms: Float
    residual: float
    best_squared_steps: Float
    rate_constant: float
    n_steps: int

    @property
    def claims(self) -> tuple[bool, bool, bool, bool, bool]:
        """Whether each claim holds, in the order of the theorem."""
        return self.decreases, self.steps_vanish, self.bounded, self.critical, self.rate_holds

    @property
    def holds(self) -> bool:
        """Whether all five claims hold."""
        return all(self.claims)


def convergence_certificate(
    run: ThreeLevelRanker | History, tol: float = 0.01
) -> ConvergenceCertificate:
    """Check Theorem 2 on a run of the paper's algorithm as printed.

    Parameters
    ----------
    run : ThreeLevelRanker or History
        A ranker fitted with ``solver="paper"``, or its ``solution_.history``.
    tol : float, default=0.01
        The tolerance of the last steps (claim 2) and of the residual (claim 4).

    Examples
    --------
    >>> from likeminds import make_simulation
    >>> labels = make_simulation(10, 100, 8, n_positive=10, random_state=0).annotations
    >>> ranker = ThreeLevelRanker(solver="paper", tol=1e-3, max_iter=5000).fit(labels)
    >>> convergence_certificate(ranker).claims
    (True, True, True, True, True)
    """
    history = _paper_history(run)
    squared = history.squared_steps.sum(axis=1)
    margin = (history.step_constant - history.curvature) / 2
    shortfall = margin * squared - -np.diff(history.objective)
    first = float(history.objective[0])
    worst = float(shortfall.max()) / first
    moving = margin[squared > 0]
    constant = first / float(moving.min()) if moving.size else np.inf
    lengths = np.sqrt(history.squared_steps)
    last = lengths[-1] / np.where(lengths.any(axis=0), lengths.max(axis=0), 1.0)
    reached = np.maximum.accumulate(history.norms)
    half = len(reached) // 2
    early, late = reached[half] - reached[0], reached[-1] - reached[half]
    best = history.squared_steps.min(axis=0)
    residual = float(history.residual[-1])
    return ConvergenceCertificate(
        decreases=worst <= 1e-12,
        steps_vanish=bool((last <= tol).all()),
        bounded=bool((late <= early + 1e-9 * reached[-1]).all()),
        critical=residual <= tol,
        rate_holds=bool((best <= constant / len(squared)).all()),
        largest_shortfall=max(worst, 0.0),
        last_steps=last,
        largest_norms=reached[-1],
        residual=residual,
        best_squared_steps=best,
        rate_constant=constant,
        n_steps=len(squared),
    )


def _paper_history(run: ThreeLevelRanker | History) -> History:
    """Return the history with the quantities of the theorem, or raise an error."""
    fix = 'Fit ThreeLevelRanker(solver="paper"), and pass the ranker or its solution_.history.'
    history, name = run, type(run).__name__
    if isinstance(run, ThreeLevelRanker):
        check_is_fitted(run)
        if run.solution_ is None:
            raise ValueError(f"This ranker has no history: it was read from a file. {fix}")
        history, name = run.solution_.history, f"ranker with solver={run.solver!r}"
    if not (isinstance(history, History) and len(history.norms)):
        raise TypeError(
            f"Theorem 2 is about the algorithm as printed, but this is a {name}: its "
            f"history has no step constants. {fix}"
        )
    if not len(history.residual):
        raise ValueError(f"This run has no steps: it was interrupted before the first. {fix}")
    return history


@dataclass(frozen=True)
class GeneralizationBound:
    """Theorem 3: a bound of the expected AUC loss that holds with probability 1 - delta.

    The three terms bound the sum over users of the expected share of wrongly ordered pairs.

    Attributes
    ----------
    training_loss : float
        Sum over users of the mean over pairs of (1 - difference)^2, without the factor 1/2, so it
        is at least the share of wrongly ordered pairs.
    capacity : float
        The term with B_1.
    deviation : float
        The term with B_2 and delta.
    n_users : int
        The number of users with pairs.
    """

    training_loss: float
    capacity: float
    deviation: float
    n_users: int

    @property
    def value(self) -> float:
        """The bound on the sum over users."""
        return self.training_loss + self.capacity + self.deviation

    @property
    def is_vacuous(self) -> bool:
        """Whether the bound is vacuous, as the AUC loss of a user is at most 1."""
        return self.value >= self.n_users


def generalization_bound(
    ranker: ThreeLevelRanker,
    annotations: Annotations,
    delta: float = 0.05,
    form: Literal["proved", "printed"] = "proved",
) -> GeneralizationBound:
    """Return Theorem 3's bound for a fitted ranker, with the remark's choice of the psi's.

    The proof in the paper does not give the printed theorem: it inverts a sum over users and uses
    half of the largest difference of scores. "proved" is what the same proof gives without these
    two steps.

    The loss depends only on differences of rows, so rows are measured from their mean, in the
    ranker's units. The theorem takes the longest row and the largest singular value of G as given.
    Here they come from the data and the fit. A warning is given if the bound is vacuous, as it
    mostly is.

    Parameters
    ----------
    ranker : ThreeLevelRanker
        Fitted to the annotations.
    annotations : Annotations
        The training data.
    delta : float
        The bound holds with probability 1 - delta.
    form : {"proved", "printed"}, default="proved"
        The provable form, or the one in the paper, which is smaller and not proved.
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, but is {delta}.")
    if form not in ("proved", "printed"):
        raise ValueError(f'form must be "proved" or "printed", but is {form!r}.')
    statistics = Statistics.from_annotations(annotations)
    pairs = statistics.has_pairs
    radius = _largest_row(annotations, ranker.scale_)
    size = _hypothesis_size(ranker, float(pairs.sum()) / 2, statistics.n_users)
    zeta = radius * size
    negatives, positives = statistics.class_weight[pairs].T
    effective = negatives * positives / (negatives + positives)
    loss = SquaredAUC().of(statistics)
    shared, group, personal = ranker._fitted_parts()
    # Differences of two scores reach 2 zeta; the squared deviations of users add up.
    steepness = 1 + (2 * zeta if form == "proved" else zeta)
    total = (1 / effective).sum() if form == "proved" else 1 / effective.sum()
    spread = np.sqrt(np.log(2 / delta) * total)
    bound = GeneralizationBound(
        training_loss=2 * loss.value(shared + group + personal),
        capacity=float(np.sum(8 * np.sqrt(2) * zeta * steepness / np.sqrt(effective))),
        deviation=float(10 * np.sqrt(2) * steepness * zeta * spread),
        n_users=int(pairs.sum()),
    )
    if bound.is_vacuous:
        warnings.warn(
            f"The bound is vacuous: it allows {bound.value:.3g}, and {bound.n_users} people "
            f"cannot have an AUC loss above {bound.n_users} together.",
            UserWarning,
            stacklevel=2,
        )
    return bound


def _hypothesis_size(ranker: ThreeLevelRanker, start: float, n_users: int) -> float:
    """Return C = psi_1 + sqrt(psi_2 + kappa sigma_max^2) + psi_3 from F at the start."""
    with np.errstate(divide="ignore"):
        psi_1 = np.sqrt(np.float64(start) / (ranker.alpha_consensus * n_users))
        psi_2 = np.float64(start) / ranker.alpha_group_
        psi_3 = np.float64(start) / ranker.alpha_personal
    sigma_max = np.linalg.norm(ranker.raw_group_ * ranker.scale_, ord=2)
    assert ranker.n_groups_ is not None
    return float(psi_1 + np.sqrt(psi_2 + ranker.n_groups_ * sigma_max**2) + psi_3)


def _largest_row(annotations: Annotations, scale: Float) -> float:
    used = annotations.features[np.unique(annotations.feature_rows)] / scale
    return float(np.linalg.norm(used - used.mean(axis=0), axis=1).max())


def _squared_norms(statistics: Statistics, scale: Float | None) -> Float:
    """Return the squared spectral norm of each user's rows."""
    unit = np.ones(statistics.n_features) if scale is None else scale
    norms = np.zeros(statistics.n_users)
    dense = statistics.dense
    mean = dense.mean + statistics.origin
    gram = dense.scatter.sum(axis=1)
    gram += np.einsum("pc,pci,pcj->pij", dense.weight, mean, mean)
    norms[dense.users] = np.linalg.eigvalsh(gram / (unit[:, None] * unit))[:, -1]
    for block in statistics.rows.blocks(statistics.origin):
        rows = (block.rows + statistics.origin) / unit
        rows *= np.sqrt(block.weight.sum(axis=1))[:, :, None]
        norms[block.users] = np.linalg.eigvalsh(rows @ rows.transpose(0, 2, 1))[:, -1]
    return norms
