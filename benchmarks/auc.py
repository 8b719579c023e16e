"""Everybody's AUC at once, over a loop of scikit-learn's."""

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.results import Result, at_least
from likeminds import auc_by_user
from likeminds.paper.experiments.timing import in_turns

SORTED, LOOP = "rows sorted by person", "loop of roc_auc_score"


def run(quick: bool) -> Result:
    """Time all people here, and some of them in the loop."""
    n_users, n_rows, n_looped = (500, 20, 50) if quick else (100_000, 50, 2_000)
    rng = np.random.default_rng(0)
    labels = rng.random((n_users, n_rows)) < 0.3
    labels[:, 0], labels[:, 1] = True, False
    scores = labels + rng.normal(size=labels.shape)
    users = np.repeat(np.arange(n_users), n_rows)
    shuffled = rng.permutation(users.size)
    flat = labels.ravel(), scores.ravel(), users
    mixed = tuple(column[shuffled] for column in flat)

    def loop() -> list[float]:
        pairs = zip(labels[:n_looped], scores[:n_looped], strict=True)
        return [roc_auc_score(y, s) for y, s in pairs]

    works = {
        SORTED: lambda: auc_by_user(*flat),
        "rows in any order": lambda: auc_by_user(*mixed),
    }
    times = in_turns(works | {LOOP: loop}, 1 if quick else 5)
    times[LOOP] *= n_users / n_looped
    apart = float(np.abs(auc_by_user(*flat).values[:n_looped] - loop()).max())
    note = (
        f"The loop is timed on {n_looped:,} people whose rows are sliced already, and multiplied "
        f"to {n_users:,}. The two differ by at most {apart:.1e}."
    )
    size = f"{n_users:,} people with {n_rows} rows"
    return _result(size, times, note, apart, judge=not quick)


def _result(size: str, times: dict[str, float], note: str, apart: float, *, judge: bool) -> Result:
    lead = {name: times[LOOP] / value for name, value in times.items()}
    return Result(
        title="AUC of all users",
        compares=f"The AUC of each of {size}, against a loop of scikit-learn's roc_auc_score.",
        tables=[
            {
                "columns": ["how", "seconds", "times faster than the loop"],
                "rows": [[name, times[name], lead[name]] for name in times],
            }
        ],
        goals=[at_least(f"faster than the loop ({SORTED})", 100, lead[SORTED], judge=judge)],
        notes=[note],
        series={"lead": lead, "apart": apart},
    )
