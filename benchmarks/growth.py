"""How time grows with labels, people, features and groups."""

from functools import partial

from benchmarks.floor import MIDDLE, components_of
from benchmarks.results import Result, Table, at_most
from likeminds import Statistics, make_simulation
from likeminds.losses import SquaredAUC
from likeminds.paper.experiments.timing import in_turns
from likeminds.solvers import FastSolver

TOL = 1e-4
# people, labels of each, features, groups
FULL = {
    "base": (100, 500, 40, 5),
    "labels x10": (100, 5000, 40, 5),
    "people x10": (1000, 500, 40, 5),
    "features x4": (100, 500, 160, 5),
    "groups 1": (100, 500, 40, 1),
    "groups 20": (100, 500, 40, 20),
}
QUICK = {
    "base": (20, 50, 5, 2),
    "labels x10": (20, 500, 5, 2),
    "people x10": (200, 50, 5, 2),
    "features x4": (20, 50, 20, 2),
    "groups 1": (20, 50, 5, 1),
    "groups 20": (20, 50, 5, 4),
}
# "Must not grow" leaves this much to noise and to a different number of steps.
NOISE = 1.25


def run(quick: bool) -> Result:
    """Time statistics and solution at each size, in turns."""
    sizes = QUICK if quick else FULL
    works, steps = {}, {}
    for name, (n_users, n_labels, n_features, n_groups) in sizes.items():
        crowd = make_simulation(
            n_users, n_labels, n_features, n_positive=n_labels // 10, random_state=0
        ).annotations
        loss = SquaredAUC().of(Statistics.from_annotations(crowd, "dense"))
        solve = partial(FastSolver().solve, loss, components_of(MIDDLE, n_groups), tol=TOL)
        works[name, "statistics"] = partial(Statistics.from_annotations, crowd, "dense")
        works[name, "solve"] = solve
        steps[name] = solve().n_iter
    return _result(sizes, in_turns(works, 1 if quick else 5), steps, judge=not quick)


def _result(sizes: dict, times: dict, steps: dict[str, int], *, judge: bool) -> Result:
    parts = ("statistics", "solve")
    ratio = {(name, part): times[name, part] / times["base", part] for name, part in times}
    total = {name: sum(times[name, part] for part in parts) for name in sizes}
    more_people = total["people x10"] / total["base"]
    return Result(
        title="Growth",
        compares="Time over the time at the base size: with ten times the labels, ten times the "
        "people, four times the features, few groups and many groups.",
        tables=[_table(sizes, times, ratio, steps)],
        goals=[
            at_most("labels x10: solver", NOISE, ratio["labels x10", "solve"], judge=judge),
            at_most("labels x10: statistics", 11, ratio["labels x10", "statistics"], judge=judge),
            at_most("people x10: statistics and solver", 11, more_people, judge=judge),
        ],
        notes=[
            "The solver's time depends on how many steps a data set takes, too. A ratio up to "
            f"{NOISE} counts as not growing.",
            "No goal is set for features (a person's eigenvectors are cubic in them: 64 at four "
            "times the features) nor for groups.",
        ],
        series={
            "sizes": list(sizes),
            **{part: [ratio[name, part] for name in sizes] for part in parts},
        },
    )


def _table(sizes: dict, times: dict, ratio: dict, steps: dict[str, int]) -> Table:
    columns = ["size", "people", "labels each", "features", "groups", "statistics, s", "solve, s"]
    rows = []
    for name, size in sizes.items():
        keys = [(name, "statistics"), (name, "solve")]
        measured = [*(times[key] for key in keys), *(ratio[key] for key in keys)]
        rows.append([name, *size, *measured, steps[name]])
    return {"columns": [*columns, "statistics ratio", "solve ratio", "steps"], "rows": rows}
