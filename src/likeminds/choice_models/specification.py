"""Fixed weights, known signs, distributions of weights, and the number of draws."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np

from likeminds._util.array_types import Bool, Float, IdArray, Index
from likeminds._util.checks import did_you_mean, listing
from likeminds.choice_models.importance_sampling import SimulationProblem
from likeminds.data.alternatives import null_space
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.extensions.sign_constraints import LogNormalPrior, moment_matched
from likeminds.mixed_model.likelihoods import ChoiceLikelihood, Likelihood, LogisticLikelihood
from likeminds.mixed_model.responses import Responses, data_of
from likeminds.mixed_model.user_posteriors import FittedPrior

# The default number of draws per user, if the specification needs simulation.
_DRAWS = 200
# A feature is unidentified if its squared loading on unidentified directions exceeds this.
_PART = 1e-6
# Distributions of a weight over users.
DISTRIBUTIONS = ("normal", "censored", "lognormal")


@dataclass(frozen=True)
class Specification:
    """The caller's specification of weights.

    ``signs`` is 1 or -1 for features whose weights have this sign or are zero, else 0. ``logs`` is
    1 or -1 for log-normal weights of this sign, else 0. If ``n_draws`` is 0, nothing is simulated.
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
        fixed: Iterable[str | int] | None = None,
        signs: Mapping[str | int, int] | None = None,
        distributions: Mapping[str | int, str] | None = None,
        draws: int | str = "auto",
    ) -> "Specification":
        """Validate parameters that refer to features by names or positions."""
        fixed = () if fixed is None else fixed
        which = np.array([find_feature(name, names, "fixed") for name in fixed], dtype=np.intp)
        sign_of = np.zeros(len(names))
        for name, sign in (signs or {}).items():
            if sign not in (1, -1):
                raise ValueError(f"The sign of {name} must be 1 or -1, but signs has {sign!r}.")
            sign_of[find_feature(name, names, "signs")] = sign
        both = np.flatnonzero(sign_of[which])
        if both.size:
            raise ValueError(
                f"{listing(names[which[both]])} cannot be both in fixed and in signs. Leave out "
                "one: labels decide the sign of a fixed weight."
            )
        is_log = _log_normal(names, sign_of, distributions or {})
        needs_draws = bool(which.size or sign_of.any())
        n_draws = (_DRAWS if needs_draws else 0) if isinstance(draws, str) else int(draws)
        if needs_draws and not n_draws:
            raise ValueError(
                'draws cannot be 0, because fixed and signs need simulation. Leave it at "auto".'
            )
        return cls(np.unique(which), sign_of * ~is_log, sign_of * is_log, n_draws, names)

    def refuse_unidentified(
        self, responses: Responses, likelihood: Likelihood, design: Design
    ) -> None:
        """Raise ValueError for features whose weights the labels do not identify.

        Collinear features are allowed if the specification names no feature. Their weights are then
        the shortest with the same utilities.
        """
        named = self.fixed.size or self.signs.any() or self.logs.any()
        if design.basis is not None and not named:
            return
        unknown = self.names[unidentified(responses, likelihood, design)]
        if len(unknown):
            raise ValueError(unidentified_sentence(unknown))

    def problem(
        self, responses: Responses, likelihood: Likelihood, design: Design, shifts: Float | None
    ) -> SimulationProblem:
        """Return the problem of simulation for these responses."""
        if not has_probabilities(likelihood):
            raise ValueError(
                "Simulation (draws, fixed, signs, tables of part-worths) needs choices or yes-no "
                'labels, and loss="choice" or "logistic". Grades and loss="auc" are not supported.'
            )
        varies = np.setdiff1d(np.arange(design.size), self.fixed)
        if not varies.size:
            raise ValueError(
                "fixed names all features. Leave out at least one that users differ in."
            )
        if shifts is not None and self.logs.any():
            raise ValueError(
                "Log-normal weights cannot depend on covariates of users. Leave out "
                'user_features=, or distributions="lognormal".'
            )
        signs, logs = self._coordinates(design)[:, varies]
        return SimulationProblem(
            responses, likelihood, varies, self.fixed, design.n_weights, signs, logs, shifts
        )

    def constrain(self, prior: FittedPrior) -> FittedPrior:
        """Add signs and log-normal weights to a prior estimated by simulation."""
        signs, logs = self._coordinates(prior.design)
        if signs.any():
            prior = replace(prior, signs=signs)
        if not logs.any() or prior.inflated is None:
            return prior
        return replace(
            prior,
            prior=moment_matched(prior.prior, logs),
            inflated=moment_matched(prior.inflated, logs),
            log_normal=LogNormalPrior(logs, prior.prior, prior.inflated),
        )

    def _coordinates(self, design: Design) -> Float:
        """Return signs and logs by coordinate, (2, size); zeros if coordinates mix features."""
        found = np.zeros((2, design.size))
        if design.basis is None:
            found[:, : design.n_weights] = self.signs, self.logs
        return found


def unidentified(responses: Responses, likelihood: Likelihood, design: Design) -> Bool:
    """Return whether the labels fail to identify each feature's weight, shape (d,).

    These are features in the null space of the information: constant or collinear among items shown
    together.
    """
    n_weights = design.n_weights
    information = np.zeros((n_weights, n_weights))
    for data in responses.map(data_of, None):
        derivatives = likelihood.at(np.zeros(data.rows.shape[:2]), data)
        root = derivatives.curvature.times_root_back(data.rows[:, :, :n_weights]).reshape(
            -1, n_weights
        )
        information += root.T @ root
    null = null_space(information)
    if design.basis is None:
        return np.asarray((null**2).sum(axis=1) > _PART)
    missing = 1.0 - (design.basis**2).sum(axis=1)
    return np.asarray(missing + ((design.basis @ null) ** 2).sum(axis=1) > _PART)


def unidentified_sentence(names: IdArray) -> str:
    """Return the message about unidentified weights."""
    return (
        f"The labels do not identify the weights of {listing(names)}: these features are "
        "constant or collinear (dummies of all categories add up to one) among items shown "
        "together. Leave out one of each such set."
    )


def _log_normal(names: IdArray, signs: Float, distributions: Mapping[str | int, str]) -> Bool:
    """Return whether each weight is log-normal; raise ValueError if signs contradict it."""
    found = np.zeros(len(names), dtype=np.bool_)
    for name, kind in distributions.items():
        place = find_feature(name, names, "distributions")
        if kind not in DISTRIBUTIONS:
            raise ValueError(
                f"The distribution of {names[place]} must be one of {listing(DISTRIBUTIONS)}, but "
                f"is {kind!r}."
            )
        if (kind == "normal") == (signs[place] != 0):
            raise ValueError(
                f"A normal weight may have either sign, but signs names {names[place]}. Leave it "
                "out of signs or distributions."
                if kind == "normal"
                else f"A {kind} weight has one sign. Pass signs={{{str(names[place])!r}: 1}} or "
                "-1. Weights in fixed cannot have a distribution."
            )
        found[place] = kind == "lognormal"
    return found


def has_probabilities(likelihood: Likelihood) -> bool:
    """Return whether scores determine probabilities of choices, or of yes and no."""
    return isinstance(likelihood, LogisticLikelihood | ChoiceLikelihood)


def find_feature(name: Hashable, names: IdArray, parameter: str) -> int:
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
