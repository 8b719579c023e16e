"""The loss of grades, and its calibration: ``python -m benchmarks.grade_losses --data FOLDER``.

Writes docs/development/grade-losses.json and its table in docs/development/item-effects.md. FOLDER
holds files as for `benchmarks.grades`. Of some users, 30 % of the grades are held out.

The choice of ``loss="auto"`` is compared with the choice among all losses in fits with item
factors. The log loss of `predict_grades` is compared with the lowest one for any slope of scores
and any scale of their variances, both fitted to the held-out grades themselves.
"""

import argparse
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.grades import read_graded
from benchmarks.tables import DOCS, markdown, publish
from likeminds import Annotations, HierarchicalRanker, split_within_users
from likeminds.metrics.paired import over_users
from likeminds.mixed_model.likelihoods import VARIANCE_SCALES
from likeminds.rankers import loss_selection
from likeminds.rankers.loss_selection import CANDIDATES
from likeminds.rankers.probabilities import prediction_rows
from likeminds.rankers.training_data import TrainingData

USERS = {"offensive": 262, "oasis": 150, "jokes": 300}
_SLOPES = np.linspace(0.5, 1.6, 23)


def thorough_choice(ranker: HierarchicalRanker, data: TrainingData) -> str:
    """Return the loss that is chosen among all in fits with item factors, in both folds."""
    halves = loss_selection.halves_of(data)
    folds = [loss_selection._try(ranker, CANDIDATES, *one) for one in (halves, halves[::-1])]
    by_user = {name: np.concatenate([fold[name] for fold in folds]) for name in CANDIDATES}
    best = max(CANDIDATES, key=lambda name: np.nanmean(by_user[name]))
    lead = over_users(by_user[best] - by_user[CANDIDATES[0]])
    return best if lead.low > 0.0 else CANDIDATES[0]


def measure(said: Annotations, seed: int) -> dict[str, Any]:
    """Return both choices of the loss, processor seconds, and log losses of held-out grades."""
    train, test = split_within_users(said, 0.3, random_state=seed, stratify=False)
    data, ranker = TrainingData.of(train), HierarchicalRanker(unknown="consensus")
    begin = time.process_time()
    chosen, _ = loss_selection.choose_grade_loss(ranker, data)
    middle = time.process_time()
    ranker.set_params(loss=chosen).fit(train)
    end = time.process_time()
    posterior, rows, places, positions = prediction_rows(ranker, test, None)
    eta, variance = posterior.linear_predictor(rows, places)
    use, added = ranker.grading_.scale_use(positions)
    codes = ranker.grading_.scale.codes(test.grades)

    def loss(slope: float, scale: float) -> float:
        grading = replace(ranker.grading_, slope=slope * ranker.grading_.slope)
        chances = grading.chances(eta + added, scale * variance, use)
        return float(-np.log(np.maximum(chances[np.arange(len(codes)), codes], 1e-12)).mean())

    return {
        "chosen": chosen,
        "thorough": thorough_choice(ranker.set_params(loss="auto"), data),
        "seconds of the choice": middle - begin,
        "seconds of the fit": end - middle,
        "log loss": loss(1.0, 1.0),
        "lowest": min(loss(slope, scale) for slope in _SLOPES for scale in VARIANCE_SCALES[::4]),
    }


def as_table(found: dict[str, Any]) -> str:
    """Return a row for each data set, with means over splits."""
    head = ["data", "users", "loss", "among all, with factors", "seconds of the choice"]
    head += ["seconds of the fit", "log loss", "lowest"]
    rows = []
    for name, one in found["rows"].items():
        names = [", ".join(run[key] for run in one["runs"]) for key in ("chosen", "thorough")]
        means = {
            key: np.mean([run[key] for run in one["runs"]])
            for key in ("seconds of the choice", "seconds of the fit", "log loss", "lowest")
        }
        numbers = [f"{means[key]:.{1 if 'seconds' in key else 4}f}" for key in means]
        rows.append([name, str(one["users"]), *names, *numbers])
    return markdown(head, rows)


def measured(folder: Path, seeds: range, users: dict[str, int]) -> dict[str, Any]:
    """Return the results of every file, by split."""
    rows = {}
    for name, most in users.items():
        said = read_graded(folder / f"{name}.npz").graded
        some = np.random.default_rng(0).permutation(said.n_users)[:most]
        said = said[np.isin(said.user_codes, some)]
        with warnings.catch_warnings(action="ignore"):
            runs = [measure(said, seed) for seed in seeds]
        rows[name] = {"users": len(some), "runs": runs}
        print(name, runs, flush=True)
    return {"rows": rows}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args(arguments)
    found = measured(given.data, range(300, 300 + given.seeds), USERS)
    print(as_table(found))
    page = DOCS / "development" / "item-effects.md"
    publish("development/grade-losses", found, page, as_table(found))


if __name__ == "__main__":
    main()
