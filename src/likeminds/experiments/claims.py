"""The paper's claims, held against the results: each verdict is computed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Facts = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Verdict:
    """A claim, the paper's figure, ours, and what follows."""

    claim: str
    paper: str
    measured: str
    verdict: str
    part: str


def judged(facts: Facts) -> list[Verdict]:
    """Return a verdict on every claim that the results speak of."""
    return []


def lead(facts: Facts, verdicts: Sequence[Verdict]) -> str:
    """Return the paragraph that a busy person can stop after."""
    return ""
