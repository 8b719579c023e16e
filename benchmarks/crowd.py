"""Many people with few labels each: time and memory."""

from statistics import mean

from benchmarks.results import Result, at_most
from likeminds import Statistics, ThreeLevelRanker, make_schools
from likeminds.paper.experiments.timing import seconds

N_LABELS = 50


def run(quick: bool, *, n_users: int = 100_000, memory_goal: float = 4.0) -> Result:
    """Fit all users once; the command adds the peak memory of the process."""
    n_users, n_items, n_features = (300, 200, 64) if quick else (n_users, 10_000, 64)
    crowd = make_schools(n_users, N_LABELS, n_items, n_features, random_state=0).annotations
    statistics = seconds(lambda: Statistics.from_annotations(crowd))
    ranker = ThreeLevelRanker()
    whole = seconds(lambda: ranker.fit(crowd))
    return Result(
        title=f"A crowd of {n_users:,}",
        compares=f"{n_users:,} people x {N_LABELS} labels x {n_features} features on {n_items:,} "
        "shared items, with the default ThreeLevelRanker: one fit, in seconds.",
        tables=[
            {
                "columns": ["what", "value"],
                "rows": [
                    ["fit, seconds", whole],
                    ["of which statistics, seconds", statistics],
                    ["labels per second", n_users * N_LABELS / whole],
                    ["Newton steps on all users", ranker.n_iter_],
                    ["converged", "yes" if ranker.converged_ else "no"],
                    ["labels that are positive", float(mean(crowd.labels[:10_000].tolist()))],
                ],
            }
        ],
        goals=[at_most("peak memory, GiB", memory_goal, None, judge=not quick)],
        notes=["Peak memory is that of the whole process, making the data included."],
        series={"seconds": whole, "n_users": n_users},
    )


def run_million(quick: bool) -> Result:
    """Fit a million people: asked for by name, as it takes long."""
    return run(quick, n_users=1_000_000, memory_goal=16.0)
