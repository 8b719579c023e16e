"""What a choice modeller specifies: weights that do not vary, known signs, distributions, draws."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from likeminds._util.array_types import Bool, Float, IdArray, Index
from likeminds._util.checks import did_you_mean, listing
from likeminds.choice_models.importance_sampling import SimulationProblem
from likeminds.data.alternatives import null_space
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.extensions.sign_constraints import LogNormalPrior, matched
from likeminds.mixed_model.fitted_prior import FittedPrior
from likeminds.mixed_model.likelihoods import ChoiceLikelihood, Likelihood, LogisticLikelihood
from likeminds.mixed_model.responses import Responses, task_of

# Draws for each person where the specification asks for simulation, but not for a number.
_DRAWS = 200
# Features with a smaller share of a direction are no part of it.
_PART = 1e-6
# How a weight may be distributed over people.
DISTRIBUTIONS = ("normal", "censored", "lognormal")


@dataclass(frozen=True)
class Specification:
    """What the caller knows about the weights, and how much is simulated.

    ``signs`` and ``logs`` are 1 or -1 for features whose weights have a known sign (or are zero),
    or are log-normal with this sign, else 0. Without ``n_draws``, nothing is simulated.
    """

    fixed: Index
    signs: Float
    logs: Float
    n_draws: int
    names: IdArray

    @classmethod
    def read(
        cls,
        names: IdArray,
        fixed: Iterable[Any] = (),
        signs: Mapping[Any, Any] | None = None,
        distributions: Mapping[Any, Any] | None = None,
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
        is_log = _log_normal(names, known, distributions or {})
        asked = bool(which.size or known.any())
        n_draws = (_DRAWS if asked else 0) if isinstance(draws, str) else int(draws)
        if asked and not n_draws:
            raise ValueError(
                'fixed and signs are learned by simulation: draws cannot be 0; leave it at "auto".'
            )
        return cls(np.unique(which), known * ~is_log, known * is_log, n_draws, names)

    @property
    def is_plain(self) -> bool:
        """Whether nothing is known and nothing is simulated."""
        return self.n_draws == 0

    def refuse_unidentified(
        self, tasks: Responses, likelihood: Likelihood, coordinates: Design
    ) -> None:
        """Refuse features whose weights the labels do not identify; name them.

        Features that follow from others among all items are allowed where no single weight is
        named: their weights are the shortest ones with the same utilities.
        """
        named = self.fixed.size or self.signs.any() or self.logs.any()
        if coordinates.basis is not None and not named:
            return
        unknown = self.names[unidentified(tasks, likelihood, coordinates)]
        if len(unknown):
            raise ValueError(
                f"The labels do not identify the weights of {listing(unknown)}: these features are "
                "constant, or follow from each other (dummies of all categories add up to one), "
                "among items shown together. Leave out one of each such set."
            )

    def setting(
        self,
        tasks: Responses,
        likelihood: Likelihood,
        coordinates: Design,
        shifts: Float | None,
    ) -> SimulationProblem:
        """Return what is simulated."""
        if not has_chances(likelihood):
            raise ValueError(
                "Only choices and labels of yes or no are simulated, not grades, and not "
                'loss="auc": draws, fixed, signs and tables of part-worths need loss="choice" or '
                '"logistic".'
            )
        size, n_weights = coordinates.size, coordinates.n_weights
        varies = np.setdiff1d(np.arange(size), self.fixed)
        if not varies.size:
            raise ValueError("fixed names all features: leave at least one that people differ in.")
        if shifts is not None and self.logs.any():
            raise ValueError(
                "Covariates of people move their weights, and the logarithm of a weight is not "
                'moved in the same way: leave out user_features=, or distributions="lognormal".'
            )
        signs, logs = (_in_coordinates(known, coordinates) for known in (self.signs, self.logs))
        ways = (signs[varies], logs[varies])
        return SimulationProblem(tasks, likelihood, varies, self.fixed, n_weights, *ways, shifts)

    def told(self, fitted_prior: FittedPrior) -> FittedPrior:
        """Return a crowd, whose prior was simulated, that knows which signs its weights have."""
        signs, logs = (
            _in_coordinates(known, fitted_prior.design) for known in (self.signs, self.logs)
        )
        if signs.any():
            fitted_prior = replace(fitted_prior, signs=signs)
        if not logs.any() or fitted_prior.inflated is None:
            return fitted_prior
        return replace(
            fitted_prior,
            prior=matched(fitted_prior.prior, logs),
            inflated=matched(fitted_prior.inflated, logs),
            log_normal=LogNormalPrior(logs, fitted_prior.prior, fitted_prior.inflated),
        )


def unidentified(tasks: Responses, likelihood: Likelihood, coordinates: Design) -> Bool:
    """Tell which features' weights the labels do not identify, shape (d,).

    The information of labels has no directions in which features are constant or collinear among
    the items that were shown together.
    """
    n_weights = coordinates.n_weights
    information = np.zeros((n_weights, n_weights))
    for task in tasks.map(task_of, None):
        said = likelihood.at(np.zeros(task.rows.shape[:2]), task)
        root = said.curvature.times_root_back(task.rows[:, :, :n_weights]).reshape(-1, n_weights)
        information += root.T @ root
    null = null_space(information)
    if coordinates.basis is None:
        return np.asarray((null**2).sum(axis=1) > _PART)
    missing = 1.0 - (coordinates.basis**2).sum(axis=1)
    return np.asarray(missing + ((coordinates.basis @ null) ** 2).sum(axis=1) > _PART)


def _log_normal(names: IdArray, signs: Float, distributions: Mapping[Any, Any]) -> Bool:
    """Return which features' weights are log-normal; what contradicts the signs is refused."""
    found = np.zeros(len(names), dtype=np.bool_)
    for name, kind in distributions.items():
        place = find_feature(name, names, "distributions")
        if kind not in DISTRIBUTIONS:
            raise ValueError(
                f"distributions says {kind!r} of {names[place]}: choose from "
                f"{listing(DISTRIBUTIONS)}."
            )
        if (kind == "normal") == (signs[place] != 0):
            raise ValueError(
                f"A normal weight may have either sign, but signs names {names[place]}: leave it "
                "out of signs, or out of distributions."
                if kind == "normal"
                else f"A {kind} weight has one sign: which one {names[place]} has is for you to "
                f"say, with signs={{{str(names[place])!r}: 1}} or -1. (One that is the same for "
                "everybody is in fixed, and has no distribution.)"
            )
        found[place] = kind == "lognormal"
    return found


def _in_coordinates(known: Float, coordinates: Design) -> Float:
    """Return what is known of features' signs for coordinates; nothing where these are mixed."""
    found = np.zeros(coordinates.size)
    if coordinates.basis is None:
        found[: coordinates.n_weights] = known
    return found


def has_chances(likelihood: Likelihood) -> bool:
    """Say whether labels are choices, or yes and no, which have chances that scores tell."""
    return isinstance(likelihood, LogisticLikelihood | ChoiceLikelihood)


def find_feature(name: Any, names: IdArray, parameter: str) -> int:
    """Return the position of a feature, given by its name or position."""
    found = np.flatnonzero(names == name)
    if found.size:
        return int(found[0])
    if isinstance(name, Integral) and 0 <= int(name) < len(names):
        return int(name)
    raise ValueError(
        f"{parameter} names {name!r}, but the features are {listing(names)}."
        f"{did_you_mean(name, names.tolist())}"
    )
