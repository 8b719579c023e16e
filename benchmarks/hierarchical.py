"""The ranker with nothing to tune: its time compared with baselines, and how it grows."""

from functools import partial
from importlib.util import find_spec

from benchmarks.peers import mixed_logit
from benchmarks.results import Result, at_least, at_most
from likeminds import (
    Annotations,
    HierarchicalRanker,
    ThreeLevelRankerCV,
    load_electricity,
    make_schools,
)
from likeminds import split_within_users as split
from likeminds.paper.experiments.timing import in_turns

OURS, TUNED, GPBOOST = "HierarchicalRanker", "ThreeLevelRankerCV", "GPBoost"
N_LABELS = 50


def run(quick: bool) -> Result:
    """Time the methods in turns on the bundled data, then a crowd and one ten times as large."""
    crowd = load_electricity()
    if quick:
        crowd = crowd.of_users(crowd.user_ids[:10])
    train, test = split(crowd, test_size=0.3, random_state=0)
    works = {
        OURS: lambda: HierarchicalRanker().fit(train),
        TUNED: lambda: ThreeLevelRankerCV().fit(train),
    }
    if not quick and find_spec("gpboost") is not None:
        works[GPBOOST] = partial(mixed_logit, train, test)
    times = in_turns(works, 1 if quick else 5)
    faster = {name: times[name] / times[OURS] for name in times}
    n_users, n_items, n_features = (20, 60, 16) if quick else (2000, 10_000, 16)
    growth = in_turns(
        {
            many: partial(_two_groups().fit, _crowd(many, n_items, n_features))
            for many in (n_users, 10 * n_users)
        },
        1 if quick else 2,
    )
    more_people = growth[10 * n_users] / growth[n_users]
    return Result(
        title="HierarchicalRanker",
        compares="Seconds to fit the bundled data (70 % of each user's choice sets). Then "
        f"{n_users:,} people and ten times as many, {N_LABELS} labels and {n_features} features "
        "each, with two groups; items are known by their features alone.",
        tables=[
            {
                "columns": ["method", "seconds", "times ours"],
                "rows": [[name, times[name], faster[name]] for name in times],
            },
            {
                "columns": ["people", "seconds"],
                "rows": [[many, growth[many]] for many in growth],
            },
        ],
        goals=[
            at_least("faster than GPBoost", 20, faster.get(GPBOOST), judge=not quick),
            at_least("faster than ThreeLevelRankerCV", 1, faster[TUNED], judge=not quick),
            at_most("people x10: hierarchical fit", 11, more_people, judge=not quick),
        ],
        notes=["GPBoost's time includes its scores of the held-out rows, a small part of it."],
        series={"faster": faster, "more_people": more_people},
    )


def _two_groups() -> HierarchicalRanker:
    return HierarchicalRanker(n_groups=2, item_effects=False)


def _crowd(n_users: int, n_items: int, n_features: int) -> Annotations:
    n_labels = min(N_LABELS, n_items)
    return make_schools(n_users, n_labels, n_items, n_features, random_state=0).annotations
