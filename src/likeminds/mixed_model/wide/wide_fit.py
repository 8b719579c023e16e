"""Learning the prior from wide features: the consensus first, then as many directions as help.

Omega is s^2 I plus a few leading directions. The consensus and every direction have a ridge
penalty of their own, the one that makes them most likely: of thousands of numbers, only what the
labels tell is kept. How many directions there are, held-out people say: their labels have to be
likelier with them than without, by more than chance.
"""

from dataclasses import dataclass, replace

import numpy as np

from likeminds._util.array_types import Bool, Float
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.blocks import Responses
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.laplace_moments import WarmStarts
from likeminds.mixed_model.lbfgs import EXACTER, ROUGH, PriorFit, descend, first_model
from likeminds.mixed_model.likelihoods import Likelihood
from likeminds.mixed_model.losses import PriorLoss
from likeminds.mixed_model.marginal_likelihood import LOW_RANK, PriorModel
from likeminds.mixed_model.model_selection import FEWEST_USERS, grow_while_lower
from likeminds.mixed_model.wide.basis_reduction import few_coordinates, in_few, with_doubt
from likeminds.mixed_model.wide.kernel_rows import KernelRows
from likeminds.mixed_model.wide.spectrum import InformationSpectrum, first_directions
from likeminds.mixed_model.wide.wide_marginal_likelihood import RowMoments, WideMarginalLikelihood
from likeminds.solvers.solver import Callback

# Numbers of directions tried, as long as each lowers the held-out loss by two standard errors.
_TRIED = (0, 1, 2, 4, 8)
# Users of both folds, at most.
_MOST_USERS = 600
# Rounds in which ridges are learned, and steps in each.
_ROUNDS, _STEPS = 4, 20
_ROUNDS_OF_HALF = 2
# Ridges that move by less than this share are learned.
_SETTLED = 0.05


@dataclass(frozen=True)
class FittedWideModel:
    """A model with the ridges that suit it, and what was found on the way."""

    objective: WideMarginalLikelihood
    found: RowMoments
    spectrum: InformationSpectrum

    @property
    def model(self) -> PriorModel:
        """The model."""
        return self.objective.model


def learn_wide(
    rows: KernelRows,
    n_weights: int,
    size: int,
    n_groups: int | None,
    *,
    likelihood: Likelihood,
    centre: Float | float = 0.0,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> tuple[PriorFit, InformationSpectrum]:
    """Learn the prior; parameters are those of `mixed_model.fit_prior.learn`."""
    model = first_model(size, n_weights, likelihood, centre)
    model = replace(model, ridge=float(n_weights))
    unit = model.prior.residual
    start = WideMarginalLikelihood(rows, n_weights, model, unit, shape=LOW_RANK)
    at = settle(start)
    criterion: list[float] = []
    if n_groups is None:
        n_groups, criterion = count_directions(at)
    if n_groups:
        at = settle(with_directions(at, n_groups), at.spectrum)
    exact = replace(at.objective, enough=min(at.objective.enough, EXACTER * tol))
    found = descend(exact, tol=tol, max_iter=max_iter, callback=callback)
    found = replace(found, n_groups=n_groups, criterion=criterion, shape=LOW_RANK)
    return found, at.spectrum


def learn_in_rows(
    loss: PriorLoss,
    said: Annotations,
    coordinates: Design,
    n_groups: int | None,
    *,
    likelihood: Likelihood,
    centre: Float | float,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> tuple[PriorFit, Responses, Design]:
    """Learn the prior; return it, and everybody's labels, in a few coordinates."""
    rows = KernelRows.of_annotations(said, loss, coordinates)
    learned, spectrum = learn_wide(
        rows,
        coordinates.n_weights,
        coordinates.size,
        n_groups,
        likelihood=likelihood,
        centre=centre,
        tol=tol,
        max_iter=max_iter,
        callback=callback,
    )
    few = few_coordinates(learned, rows, coordinates)
    tasks = loss.tasks(said, few)
    learned = in_few(learned, coordinates, few)
    return with_doubt(learned, tasks, few, spectrum, coordinates.n_weights), tasks, few


def settle(
    objective: WideMarginalLikelihood,
    spectrum: InformationSpectrum | None = None,
    n_rounds: int = _ROUNDS,
) -> FittedWideModel:
    """Learn a model roughly, with its ridges.

    The spectrum of the information hardly changes from round to round: it is found once.
    """
    for _ in range(n_rounds):
        model = descend(objective, tol=ROUGH, max_iter=_STEPS).model
        objective = replace(objective, model=model)
        found = objective.look(model)
        if spectrum is None:
            spectrum = InformationSpectrum.of(found.told, objective.n_weights)
        new = _with_ridges(objective, found, spectrum)
        moved = np.abs(np.log(_ridges(new) / _ridges(objective))).max()
        objective = new
        if moved < _SETTLED:
            break
    assert spectrum is not None
    return FittedWideModel(objective, found, spectrum)


def _ridges(objective: WideMarginalLikelihood) -> Float:
    return np.append(objective.ridges, objective.model.ridge)


def _with_ridges(
    objective: WideMarginalLikelihood, found: RowMoments, spectrum: InformationSpectrum
) -> WideMarginalLikelihood:
    model = objective.model
    away = objective.away(model)
    ridge = spectrum.ridge(model.ridge, float(away @ away))
    B = objective.directions(model)[: objective.n_weights]
    # Labels tell the less of a direction, the less is known of where people are along it.
    known = np.einsum("dk,dk->k", B, found.told.times(B)) / found.n_users if B.size else ()
    ridges = [
        spectrum.times(float(share)).ridge(last, float(b @ b))
        for last, b, share in zip(objective.ridges, B.T, known, strict=True)
    ]
    return replace(objective, model=replace(model, ridge=ridge), ridges=np.array(ridges))


def with_directions(at: FittedWideModel, n: int) -> WideMarginalLikelihood:
    """Return the objective with so many directions more, at a good start."""
    objective, model = at.objective, at.model
    prior = model.prior
    B = np.zeros((len(prior.mean), n))
    B[: objective.n_weights] = first_directions(model, at.found, n)
    prior = replace(prior, loadings=B / prior.residual[:, None])
    ridges = np.full(n, model.ridge)
    pulls = objective.pulls.copy()
    return replace(objective, model=replace(model, prior=prior), ridges=ridges, pulls=pulls)


def count_directions(at: FittedWideModel) -> tuple[int, list[float]]:
    """Choose the number of directions by two-fold cross-validation; return it and all losses."""
    rows = at.objective.rows
    if rows.n_users < FEWEST_USERS:
        return 0, []
    # At random: the order of users may go with their tastes.
    place = np.random.default_rng(0).permutation(rows.n_users)
    most = min(_MOST_USERS, rows.n_users)
    one, other = place < most // 2, (place >= most // 2) & (place < most)
    folds = [_WideFold.of(at, *halves) for halves in ((one, other), (other, one))]

    def losses_of(n: int) -> Float:
        return np.concatenate([fold.cost(n) for fold in folds])

    tried = [n for n in _TRIED if n <= at.objective.n_weights]
    return grow_while_lower(tried, losses_of, n_errors=2.0)


@dataclass(frozen=True)
class _WideFold:
    """A fit to one fold of users, and the objective of the held-out fold."""

    at: FittedWideModel
    other: WideMarginalLikelihood

    @classmethod
    def of(cls, at: FittedWideModel, one: Bool, other: Bool) -> "_WideFold":
        own = _only(at.objective, one)
        spectrum = at.spectrum.times(own.rows.n_users / at.found.n_users)
        return cls(settle(own, spectrum, 1), _only(at.objective, other))

    def cost(self, n: int) -> Float:
        """Return the held-out losses by user, with this many directions."""
        if not n:
            return self.other.look(self.at.model).objectives
        own = settle(with_directions(self.at, n), self.at.spectrum, _ROUNDS_OF_HALF)
        return self.other.look(own.model).objectives


def _only(objective: WideMarginalLikelihood, chosen: Bool) -> WideMarginalLikelihood:
    rows = objective.rows.of_users(chosen)
    return replace(objective, tasks=rows, pulls=WarmStarts())
