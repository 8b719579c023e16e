"""Simulated people who look at shoes: schools of thought on each of seven attributes."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from likeminds._support.arrays import Bool, Float
from likeminds.datasets.sketch_shoes.traits import TRAITS

Int = NDArray[np.intp]
Opinion = dict[str, float]

# What everybody means by a word, and what it means for each school besides.
OPINIONS: dict[str, tuple[Opinion, dict[str, Opinion]]] = {
    "brown": (
        {"brown": 1.2},
        {
            "tan is brown": {"tan": 1.6, "light": 0.3},
            "dark only": {"tan": -1.0, "light": -1.1},
            "soles count": {"brown_sole": 1.6, "brown": -0.6},
        },
    ),
    "comfortable": (
        {"heel": -0.5, "roomy": 0.4},
        {
            "flat": {"heel": -0.9, "thin_heel": -0.6},
            "snug": {"laces": 0.7, "shaft": 0.6, "toe_open": -0.7, "side_open": -0.5},
            "airy": {"toe_open": 0.8, "side_open": 0.7, "back_open": 0.5, "shaft": -0.6},
        },
    ),
    "fashionable": (
        {"ornament": 0.3, "point": 0.3},
        {
            "high heels": {"heel": 1.0, "thin_heel": 0.8},
            "bold": {"pattern": 0.8, "vivid": 1.1, "platform": 0.3},
            "understated": {"pattern": -0.7, "vivid": -1.0, "heel": -0.5, "shaft": 0.5},
        },
    ),
    "formal": (
        {"pattern": -0.4, "vivid": -0.5, "toe_open": -0.3},
        {
            "evening": {"heel": 0.9, "thin_heel": 0.7, "shine": 0.6},
            "office": {"heel": -0.6, "light": -0.9, "laces": 0.5, "platform": -0.4},
            "covered": {"toe_open": -0.8, "side_open": -0.8, "shaft": 0.6},
        },
    ),
    "open": (
        {"side_open": 0.3},
        {
            "at the toe": {"toe_open": 1.6, "back_open": -1.0},
            "backless": {"back_open": 1.6, "toe_open": -1.0},
            "low cut": {"shaft": -1.2, "laces": -0.8, "toe_open": -0.3},
        },
    ),
    "ornate": (
        {"ornament": 0.4, "studs": 0.3},
        {
            "applied": {"ornament": 0.9, "toe_open": 0.6, "pattern": -0.4},
            "patterned": {"pattern": 1.0, "vivid": 0.9, "shine": -0.5},
            "glittering": {"shine": 1.2, "studs": 0.6, "vivid": -0.5},
        },
    ),
    "pointy": (
        {"point": 0.5},
        {
            "at the toe": {"point": 1.2, "thin_heel": -0.5},
            "at the heel": {"thin_heel": 1.3, "heel": 0.7, "point": -0.6},
            "slender": {"roomy": -0.9, "platform": -0.8, "heel": -0.4},
        },
    ),
}
ATTRIBUTES = tuple(OPINIONS)

# How much people stray from their school, and the shares of pictures they call positive.
_OWN = 0.12
_SHARES = (0.32, 0.58)


@dataclass(frozen=True, eq=False)
class Opinions:
    """What one attribute means to people: weights on standardised traits."""

    school: Int
    consensus: Float
    group: Float
    personal: Float

    @property
    def weights(self) -> Float:
        """Each person's weights: (n_people, n_traits)."""
        return self.consensus + self.group + self.personal


def make_crowd(rng: Generator, attribute: str, n_people: int, n_loners: int) -> Opinions:
    """Draw people's schools and weights; the last ``n_loners`` belong to no school."""
    shared, schools = OPINIONS[attribute]
    centres = np.array([_as_weights(opinion) for opinion in schools.values()])
    consensus = _as_weights(shared) + centres.mean(axis=0)
    centres -= centres.mean(axis=0)
    school = rng.permutation(np.arange(n_people) % len(centres))
    school[n_people - n_loners :] = -1
    group = np.where(school[:, np.newaxis] < 0, 0.0, centres[school])
    typical = np.linalg.norm(centres, axis=1).mean() / np.sqrt(len(TRAITS))
    spread = np.where(school < 0, typical, _OWN)[:, np.newaxis]
    personal = spread * rng.standard_normal((n_people, len(TRAITS)))
    return Opinions(school, consensus, group, personal)


def judge(
    rng: Generator, traits: Float, weights: Float, pictures_each: int, label_noise: float
) -> tuple[Int, Bool]:
    """Return the pictures each person sees, and the labels given: (n_people, pictures_each).

    Everybody calls positive what lies above a threshold of their own, a quantile of their
    scores of all pictures; then labels flip with the probability ``label_noise``.
    """
    shares = rng.uniform(*_SHARES, len(weights))
    seen = np.empty((len(weights), pictures_each), dtype=np.intp)
    labels = np.empty(seen.shape, dtype=np.bool_)
    for person, own in enumerate(weights):
        scores = traits @ own
        seen[person] = np.sort(rng.choice(len(traits), pictures_each, replace=False))
        labels[person] = scores[seen[person]] > np.quantile(scores, 1 - shares[person])
    flipped = labels ^ (rng.random(labels.shape) < label_noise)
    return seen, flipped


def _as_weights(opinion: Opinion) -> Float:
    return np.array([opinion.get(name, 0.0) for name in TRAITS])
