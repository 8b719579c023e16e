"""Try hostile inputs for a while, and count: python -m tools.fuzz --seconds 60 --seed 0."""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from tools.fuzz.kinds import KINDS
from tools.fuzz.verdicts import Tally
from tools.fuzz.workshop import Workshop

_AT_ONCE = 25
_LISTED = 20


def fuzz(seconds: float, first_seed: int, kinds: tuple[str, ...] = tuple(KINDS)) -> Tally:
    """Try inputs of each kind in turn until the time is over; the same seed draws the same.

    Parameters
    ----------
    seconds : float
        When to stop; the round that has begun is finished.
    first_seed : int
        Which inputs are drawn: the first round's seed, and one more for each round.
    kinds : tuple of str
        Which kinds. Each gets its share of the time that is left.
    """
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop.in_folder(Path(folder))
        number, end = first_seed, time.monotonic() + seconds
        with workshop.started:
            while time.monotonic() < end:
                for place, kind in enumerate(kinds):
                    share = (end - time.monotonic()) / (len(kinds) - place)
                    _round(workshop, tally, kind, number, time.monotonic() + share)
                number += 1
    return tally


def _round(workshop: Workshop, tally: Tally, kind: str, number: int, end: float) -> None:
    inputs, attempt = KINDS[kind]
    before = tally.tried

    @seed(number)
    @settings(
        max_examples=_AT_ONCE,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs)
    def each(drawn: Any) -> None:
        if time.monotonic() < end or tally.tried == before:  # one at least
            attempt(workshop, tally, drawn)

    each()


def main() -> None:
    """Read the options, try, and print the counts; what was wrong makes the exit code 1."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=tuple(KINDS), action="append")
    given_options = parser.parse_args()
    kinds = tuple(given_options.kind or KINDS)
    tally = fuzz(given_options.seconds, given_options.seed, kinds)
    print(tally)
    for told in tally.wrong[:_LISTED]:
        print(f"  {told}")
    sys.exit(1 if tally.wrong else 0)


if __name__ == "__main__":
    main()
