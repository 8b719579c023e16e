"""How long shared items take: ``python -m benchmarks.shared_speed --data FOLDER``.

Films as people rate them (``movies.npz`` in FOLDER; simulated without it) and a million labels of
10,000 people on 10,000 items, each fitted in a process of its own, so that its memory is known;
beside each a matrix factorisation with two factors and no tuning. And one pass over people with
effects of items, beside one without. Writes docs/development/shared-speed.json and its table in
item-effects.md, if all of it is asked for. ``--tiny`` tries all of it at a size that says nothing.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared_crowds import read_crowds_of
from benchmarks.tables import DOCS, markdown, publish
from likeminds import Annotations, HierarchicalRanker
from likeminds.baselines import Factorisation
from likeminds.mixed_model.design import Design, labels_of_rows
from likeminds.mixed_model.gaussian_prior import ItemPosteriors
from likeminds.mixed_model.item_effects.item_responses import ItemEffects
from likeminds.mixed_model.likelihoods import LogisticLikelihood
from likeminds.mixed_model.losses import LogisticLoss
from likeminds.mixed_model.marginal_likelihood import MarginalLikelihood, PriorModel
from likeminds.mixed_model.optimisers import first_model
from likeminds.mixed_model.responses import LabelResponses
from likeminds.paper.experiments.timing import in_turns

# What is fitted: people, items, labels and features.
SIZES = {"films": (671, 9_066, 100_004, 20), "million": (10_000, 10_000, 1_000_000, 0)}
_METHODS = {"HierarchicalRanker": HierarchicalRanker, "Factorisation(2)": Factorisation}


def make_crowd(n_users: int, n_items: int, n_labels: int, n_features: int) -> Annotations:
    """Draw a crowd with two tastes, in which some items are judged far more often than others."""
    rng = np.random.default_rng(0)
    often = 1.0 / (10.0 + np.arange(n_items))
    often /= often.sum()
    each = n_labels // n_users
    user = np.repeat(np.arange(n_users), each)
    item = np.concatenate(
        [rng.choice(n_items, each, replace=False, p=often) for _ in range(n_users)]
    )
    X = rng.normal(size=(n_items, n_features))
    eta = rng.normal(size=n_items)[item] + 0.5 * rng.normal(size=n_users)[user]
    for _ in range(2):
        eta += rng.normal(size=n_users)[user] * rng.normal(size=n_items)[item]
    eta += np.einsum("nd,nd->n", X[item], 0.2 * rng.normal(size=(n_users, n_features))[user])
    label = rng.random(len(user)) < 1.0 / (1.0 + np.exp(-eta))
    ids = {"features": X, "item_ids": np.arange(n_items)} if n_features else {}
    return Annotations(user, item, label, **ids)


def crowd_called(name: str, data: Path | None, *, tiny: bool) -> Annotations:
    """Return a crowd, of real films where there are any."""
    path = None if data is None else data / "movies.npz"
    if name == "films" and path is not None and not tiny:
        return next(read_crowds_of(path)).said
    n_users, n_items, n_labels, n_features = SIZES[name]
    if tiny:
        return make_crowd(40, 30, 400, min(n_features, 3))
    return make_crowd(n_users, n_items, n_labels, n_features)


def measure(said: Annotations, method: str) -> dict[str, Any]:
    """Fit once; return seconds, those of processors, and the largest memory of this process."""
    began, busy = time.perf_counter(), time.process_time()
    _METHODS[method]().fit(said)
    return {
        "seconds": time.perf_counter() - began,
        "processors": time.process_time() - busy,
        "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20),
        "size": [said.n_users, said.n_items, len(said), said.n_features],
    }


def passes(said: Annotations) -> tuple[float, float]:
    """Return the seconds of one pass over people without effects of items, and with them."""
    weight = labels_of_rows(said)
    coordinates = Design.of_table(said.features, weight, standardize=True, intercept=True)
    n_weights = coordinates.n_weights
    first = first_model(coordinates.size, n_weights, LogisticLikelihood())
    wider = replace(first, prior=replace(first.prior, residual=1.2 * first.prior.residual))
    plain = LabelResponses.of_annotations(said, coordinates)
    rows = LogisticLoss().responses(said, coordinates, items=True)
    crossed = ItemEffects.of(rows, ItemPosteriors.unknown(said.item_ids))
    works = {}
    for name, responses in {"plain": plain, "crossed": crossed}.items():
        objective = MarginalLikelihood(responses, n_weights, first, first.prior.residual)
        # As in learning, blocks are made, and everybody's mode is that of another prior.
        works[name] = partial(_visit_both, objective, first, wider)
    taken = in_turns(works, repeats=5)
    return taken["plain"] / 2, taken["crossed"] / 2


def _visit_both(objective: MarginalLikelihood, one: PriorModel, other: PriorModel) -> None:
    for model in (one, other):
        objective.e_step(model)


def as_table(found: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Return what was measured, as a table."""
    rows = []
    for name in filter(SIZES.__contains__, found):
        for method, told in found[name].items():
            size = ", ".join(f"{number:,}" for number in told["size"])
            rows.append([name, size, method, f"{told['processors']:.1f}", f"{told['gib']:.2f}"])
    head = ["crowd", "users, items, labels, features", "method", "processor seconds", "GiB"]
    return markdown(head, rows)


def in_own_process(arguments: list[str]) -> dict[str, Any]:
    """Return what `measure` tells in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.shared_speed", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with movies.npz")
    parser.add_argument("--only", nargs="+", choices=[*SIZES, "passes"], default=[*SIZES, "passes"])
    parser.add_argument("--methods", nargs="+", choices=[*_METHODS], default=[*_METHODS])
    parser.add_argument("--tiny", action="store_true", help="just try it")
    parser.add_argument("--alone", action="store_true", help="fit here, and print figures")
    options = parser.parse_args(None if arguments is None else list(arguments))
    asked = [name for name in options.only if name in SIZES]
    if options.alone:
        said = crowd_called(asked[0], options.data, tiny=options.tiny)
        print(json.dumps(measure(said, options.methods[0])))
        return
    passed = ["--tiny"] * options.tiny
    passed += [] if options.data is None else ["--data", str(options.data)]
    found: dict[str, Any] = {
        name: {
            method: in_own_process(["--alone", "--only", name, "--methods", method, *passed])
            for method in options.methods
        }
        for name in asked
    }
    print(as_table(found))
    if "passes" in options.only:
        plain, crossed = passes(crowd_called("films", options.data, tiny=options.tiny))
        found["passes"] = {"without": plain, "with": crossed, "ratio": crossed / plain}
        print(f"\nOne pass with effects of items takes {crossed / plain:.2f} times as long.")
    if len(found) > len(SIZES) and not options.tiny:
        page = DOCS / "development" / "item-effects.md"
        publish("development/shared-speed", found, page, as_table(found))


if __name__ == "__main__":
    main()
