"""Shared numerical constants, and Newton's method for a batch of small problems."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from likeminds._util.array_types import Bool, Float

T = TypeVar("T")


# The share of a direction that counts as known, at least: without it, a step that divides by the
# information would be out of proportion.
LEAST_KNOWN = 1e-3
# Variances grow or shrink by at most exp(2) in a step of scoring.
LONGEST_LOG_STEP = 2.0
# Steps that do not lower J are shortened by this factor, and given up when they are this short.
SHORTER, SHORTEST = 0.4, 1e-3
# Variances less than this share of the largest are rounding.
LEAST_SHARE = 1e-10
# Curvatures and squares less than this are rounding.
ROUNDING = 1e-12
# The gain at which Newton's method stops, in units of log-likelihood; steps are limited.
EXACT = 1e-9
NEWTON_STEPS = 100


def damped_step(
    state: Float, step: Float, at: Callable[[Float], tuple[T, Float]], moves: Bool, scale: Float
) -> tuple[T, Float]:
    """Halve the steps of users whose objective rises; return the last evaluation and its gains.

    ``at`` evaluates a state and returns each user's gain; rises below rounding, relative to
    ``scale``, do not count. Users who do not move keep their state.
    """
    share = moves.astype(np.float64)
    for _ in range(40):
        new, gain = at(state + share[:, None] * step)
        rises = gain < -1e-9 * scale
        if not rises.any():
            break
        share = np.where(rises, 0.5 * share, share)
    return new, gain


def damped_newton(
    state: Float,
    at: Callable[[Float], tuple[T, Float | None]],
    step_of: Callable[[T], Float],
    *,
    longest: float = np.inf,
    enough: float = EXACT,
    n_steps: int = NEWTON_STEPS,
) -> T:
    """Solve a batch of problems, (n, k), each with steps of its own length; return the last ``at``.

    ``at`` evaluates a state: what ``step_of`` makes steps of, and objectives, which do not rise.
    If only slopes are known, there are none: steps are then cut to ``longest``, and ``enough``
    is about their length.
    """
    found, value = at(state)
    moves = np.ones(len(state), dtype=np.bool_)
    for _ in range(n_steps):
        step = step_of(found)
        length = np.abs(step).max(axis=1)
        step = step / np.maximum(length / longest, 1.0)[:, None]
        scale = np.ones(len(state)) if value is None else 1.0 + np.abs(value)

        def tried(
            new: Float, before: Float | None = value, length: Float = length
        ) -> tuple[tuple[T, Float, Float | None], Float]:
            found, objective = at(new)
            gain = length if before is None or objective is None else before - objective
            return (found, new, objective), gain

        (found, state, value), gain = damped_step(state, step, tried, moves, scale)
        moves &= gain > enough
        if not moves.any():
            break
    return found
