"""Models on disk: opening one of a million people, against opening its file at all."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.results import Result, at_most
from likeminds import ThreeLevelRanker, load, make_schools, read_card, save
from likeminds.paper.experiments.timing import in_turns, seconds

N_FEATURES = 20
# What a fit sets for each person.
_BY_PERSON = ("coef_", "group_", "personal_", "raw_group_", "raw_personal_")


def run(quick: bool) -> Result:
    """Save a large model; open it in turns with the file alone; then ask it something."""
    n_users = 2000 if quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crowd.likeminds"
        saved = seconds(partial(save, _many_people(n_users), path))
        size = path.stat().st_size / 1e9
        person, items = _id(n_users // 2), np.eye(N_FEATURES)
        times = in_turns(
            {"load": lambda: load(path), "card": lambda: read_card(path), "file": _floor(path)},
            3 if quick else 11,
        )
        model = load(path)
        first = seconds(lambda: model.decision_function(items, [person] * N_FEATURES))
        again = seconds(lambda: model.decision_function(items, [person] * N_FEATURES))
        newcomer = seconds(lambda: load(path).newcomer(items, np.arange(N_FEATURES) % 2 == 0))
        checked = seconds(lambda: load(path, verify=True))
    ratio = times["load"] / times["file"]
    return Result(
        title=f"Opening the model of {n_users:,} people",
        compares=f"A ThreeLevelRanker with {n_users:,} people (ids are texts) and {N_FEATURES} "
        "features. The floor is to open the file, read its header and map the rest into memory.",
        tables=[
            {
                "columns": ["what", "seconds"],
                "rows": [
                    ["floor: open the file, read the header, map it", times["file"]],
                    ["load", times["load"]],
                    ["read_card", times["card"]],
                    ["a newcomer to a model just opened", newcomer],
                    ["first scores for a user: read, check and index all people", first],
                    ["scores after that", again],
                    ["load(verify=True): check the whole file", checked],
                    [f"save ({size:.2g} GB)", saved],
                ],
            }
        ],
        goals=[
            at_most("seconds to open it", 1.0, times["load"], judge=not quick),
            at_most("load, times the floor", 10, ratio, judge=not quick),
        ],
        notes=[
            "The file was written just before, so it is in the system's cache.",
            "The first request for a user includes the checksum of all weights, and reading the "
            "ids.",
        ],
        series={"load": times["load"], "ratio": ratio, "n_users": n_users},
    )


def _many_people(n_users: int) -> Any:
    """Return a ranker as if it had been fitted to as many people."""
    few = make_schools(200, 20, 400, N_FEATURES, random_state=0).annotations
    ranker = ThreeLevelRanker().fit(few)
    rows = np.arange(n_users) % len(few.user_ids)
    for name in _BY_PERSON:
        setattr(ranker, name, getattr(ranker, name)[rows])
    ranker.users_ = np.array([_id(number) for number in range(n_users)], dtype=object)
    return ranker


def _id(number: int) -> str:
    return f"person-{number:07d}"


def _floor(path: Path) -> Callable[[], Any]:
    def work() -> Any:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            file.read(length)
        return np.memmap(path, mode="r", offset=8 + length)

    return work
