"""A learned prior taken to the maximum of the simulated likelihood, as the caller specifies it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from likeminds._support.arrays import Float, IdArray, Index
from likeminds._support.checks import listing
from likeminds._support.threads import one_blas_thread
from likeminds.choice_models.maximising import Callback, Surface, maximise, surface_of
from likeminds.choice_models.simulating import Coefficients, Setting
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.descent import Learned
from likeminds.prior.likelihoods import Choice, Likelihood, Logistic
from likeminds.prior.posterior import Pulls
from likeminds.prior.prior import Prior
from likeminds.prior.tasks import Tasks

# Draws for each person where the specification asks for simulation, but not for a number.
_DRAWS = 200
# Where a mean starts that has the wrong sign, in standard deviations.
_NEAR_ZERO = 0.1


@dataclass(frozen=True)
class Specification:
    """What the caller knows about the weights, and how much is simulated.

    Attributes
    ----------
    fixed : array of int
        The features whose weights are the same for everybody.
    signs : array of shape (d,)
        1 or -1 for features whose weights have a known sign, else 0.
    n_draws : int
        Draws for each person; 0 where nothing is simulated.
    """

    fixed: Index
    signs: Float
    n_draws: int

    @classmethod
    def read(
        cls,
        names: IdArray,
        fixed: Iterable[Any] = (),
        signs: Mapping[Any, Any] | None = None,
        draws: int | str = "auto",
    ) -> "Specification":
        """Read what the caller says, by names or positions of features."""
        which = np.array([find_feature(name, names, "fixed") for name in fixed], dtype=np.intp)
        known = np.zeros(len(names))
        for name, sign in (signs or {}).items():
            if sign not in (1, -1):
                raise ValueError(f"signs says {sign!r} of {name}: a sign is 1 or -1.")
            known[find_feature(name, names, "signs")] = sign
        both = np.flatnonzero(known[which])
        if both.size:
            raise ValueError(
                f"{listing(names[which[both]])} cannot be both in fixed and in signs: a weight "
                "that is the same for everybody has the sign that the labels say."
            )
        asked = bool(which.size or known.any())
        n_draws = (_DRAWS if asked else 0) if isinstance(draws, str) else int(draws)
        if asked and not n_draws:
            raise ValueError(
                'fixed and signs are learned by simulation: draws cannot be 0; leave it at "auto".'
            )
        return cls(np.unique(which), known, n_draws)

    @property
    def is_plain(self) -> bool:
        """Whether nothing is known and nothing is simulated."""
        return self.n_draws == 0

    def setting(
        self,
        tasks: Tasks,
        likelihood: Likelihood,
        coordinates: Coordinates,
        shifts: Float | None,
    ) -> Setting:
        """Return what is simulated."""
        if not has_chances(likelihood):
            raise ValueError(
                "Only choices and labels of yes or no are simulated, not grades, and not "
                'loss="auc": draws, fixed, signs and tables of part-worths need loss="choice" or '
                '"logistic".'
            )
        if coordinates.basis is not None and (self.fixed.size or self.signs.any()):
            raise ValueError(
                "Some features follow from others (dummies of all categories add up to one, say), "
                "so that no single weight is known, and none can be in fixed or signs: leave out "
                "a feature of each such set."
            )
        size, n_weights = coordinates.size, coordinates.n_weights
        varies = np.setdiff1d(np.arange(size), self.fixed)
        if not varies.size:
            raise ValueError("fixed names all features: leave at least one that people differ in.")
        signs = np.zeros(size)
        if coordinates.basis is None:
            signs[:n_weights] = self.signs
        return Setting(tasks, likelihood, varies, self.fixed, n_weights, signs[varies], shifts)


def refine(
    specification: Specification,
    learned: Learned,
    tasks: Tasks,
    coordinates: Coordinates,
    *,
    shifts: Float | None,
    max_iter: int,
    callback: Callback | None = None,
) -> Learned:
    """Return the prior of the greatest simulated likelihood, from one that is near."""
    likelihood = learned.model.likelihood
    setting = specification.setting(tasks, likelihood, coordinates, shifts)
    start = _start(setting, learned.model.prior)
    kind, n_groups, n_draws = learned.shape.kind, learned.n_groups, specification.n_draws
    with one_blas_thread():
        found = maximise(
            setting,
            start,
            kind=kind,
            n_groups=n_groups,
            n_draws=n_draws,
            max_iter=max_iter,
            callback=callback,
        )
        at = found.coefficients
        surface = surface_of(setting, at, kind, n_groups, n_draws)
        unsure = _covariance_of_mean(surface, setting)
    return replace(
        learned,
        model=replace(learned.model, prior=setting.prior(at)),
        trace=[-value for value in found.trace],
        converged=found.converged,
        interrupted=learned.interrupted or found.interrupted,
        pulls=Pulls(),
        unsure=unsure,
    )


def _start(setting: Setting, prior: Prior) -> Coefficients:
    """Return the coefficients in a prior, their means on the right side of zero."""
    at = setting.coefficients(prior)
    least = _NEAR_ZERO * np.sqrt(at.covariance.diagonal())
    wrong = setting.signs * at.mean < 0
    return replace(at, mean=np.where(wrong, setting.signs * least, at.mean))


def _covariance_of_mean(surface: Surface, setting: Setting) -> Float:
    """Return the covariance of the means and of the weights that do not vary, given Omega."""
    at = surface.at
    unit = np.concatenate([np.sqrt(at.covariance.diagonal()), np.ones(len(at.fixed))])
    inner = np.linalg.pinv(surface.information(len(unit)), hermitian=True)
    places = np.concatenate([setting.varies, setting.constant])
    covariance = np.zeros((len(places), len(places)))
    covariance[np.ix_(places, places)] = inner * np.outer(unit, unit)
    return covariance


def has_chances(likelihood: Likelihood) -> bool:
    """Say whether labels are choices, or yes and no, which have chances that scores tell."""
    return isinstance(likelihood, Logistic | Choice)


def find_feature(name: Any, names: IdArray, parameter: str) -> int:
    """Return the position of a feature, given by its name or position."""
    found = np.flatnonzero(names == name)
    if found.size:
        return int(found[0])
    if isinstance(name, Integral) and 0 <= int(name) < len(names):
        return int(name)
    raise ValueError(f"{parameter} names {name!r}, but the features are {listing(names)}.")
