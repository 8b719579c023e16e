"""A tuned fit over a single fit."""

from functools import partial

from benchmarks.results import Result, at_most
from likeminds import ThreeLevelRanker, ThreeLevelRankerCV, load_electricity
from likeminds.paper.experiments.timing import in_turns

# 2 x 5 x 5 x 2 = 100 candidates; no shrinkage exceeds a penalty, so all are admissible.
GRID = {
    "alpha_consensus": [1e-4, 1e-2],
    "alpha_group": [0.03, 0.1, 0.3, 1.0, 3.0],
    "group_shrinkage": [0.0, 0.003, 0.01, 0.02, 0.03],
    "n_groups": [1, 2],
}
HALVING = "tuned, halving (default)"
QUICK_GRID = {"alpha_group": [0.1, 1.0], "n_groups": [0, 1]}


def run(quick: bool) -> Result:
    """Time a fit, a tuned fit, and a tuned fit that drops no candidate early."""
    crowd = load_electricity()
    if quick:
        crowd = crowd.of_users(crowd.user_ids[:10])
    grid, n_folds = (QUICK_GRID, 3) if quick else (GRID, 5)
    tuned = partial(ThreeLevelRankerCV, grid, n_folds=n_folds)
    n_candidates = len(tuned().fit(crowd).cv_results_["params"])
    times = in_turns(
        {
            "single fit": lambda: ThreeLevelRanker().fit(crowd),
            HALVING: lambda: tuned().fit(crowd),
            "tuned, every candidate on every fold": lambda: tuned(halving=False).fit(crowd),
        },
        1 if quick else 5,
    )
    ratios = {name: value / times["single fit"] for name, value in times.items()}
    return Result(
        title="Tuning",
        compares=f"Choosing among {n_candidates} candidates by {n_folds}-fold cross-validation "
        "and fitting the best, over one fit with the default penalties, on the bundled data.",
        tables=[
            {
                "columns": ["fit", "seconds", "times a single fit"],
                "rows": [[name, times[name], ratios[name]] for name in times],
            }
        ],
        goals=[at_most("tuned fit (halving) over one fit", 30, ratios[HALVING], judge=not quick)],
        notes=[
            "With halving, most candidates are judged on one or two folds only. The last row "
            "has the time of the same search without halving, and no goal.",
            "Candidates are fitted to a looser tolerance than the single fit.",
        ],
        series={"ratios": ratios, "n_candidates": n_candidates},
    )
