"""Mixed logits beside xlogit's: ``python -m benchmarks.choice_models --data FOLDER``.

Writes ``docs/development/choice-models.json``, its table in xlogit.md, and a picture. Every
specification is one that xlogit's examples publish, with the number of draws they use, and is
fitted by both: the same features, the same that vary, independent distributions. Log-likelihoods
are simulated by our importance sampler with many draws, at our estimates and at xlogit's, so that
they compare estimates rather than simulators; what xlogit says itself, with its own draws, stands
beside it. Every fit is kept in ``--cache`` as soon as it is there.
"""

import argparse
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy import ROOT
from benchmarks.tables import markdown, publish
from likeminds import Annotations, HierarchicalRanker
from likeminds._util.atomic_files import write_whole
from likeminds.choice_models.importance_sampling import Coefficients
from likeminds.choice_models.summary import LogLikelihood, simulate_likelihood
from likeminds.rankers.choice_reporting import _simulated

PAGE = ROOT / "docs" / "development" / "xlogit.md"
PICTURE = ROOT / "docs" / "choice-models.png"


@dataclass(frozen=True)
class Specification:
    """A model of choices as it was published.

    Attributes
    ----------
    name, published, draws
        Of the data, the log-likelihood, and the draws it was simulated with.
    left_out : tuple of str
        Features of the file that are no part of the model.
    fixed : tuple of str
        Those whose weights are the same for everybody.
    logs : dict
        The signs of those whose weights are log-normal; all others are normal.
    units : dict
        What features are divided by.
    method : str
        How xlogit climbs: as it does without being told, or by the other way that it has.
    estimates : dict
        Those published, by xlogit's names, where they are.
    """

    name: str
    published: float
    draws: int
    left_out: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    logs: Mapping[str, int] = field(default_factory=dict)
    units: Mapping[str, float] = field(default_factory=dict)
    method: str = "BFGS"
    estimates: Mapping[str, float] = field(default_factory=dict)

    def read(self, folder: Path) -> Annotations | None:
        """Return the choices; None where the file is not there."""
        path = folder / f"{self.name}.npz"
        if not path.exists():
            return None
        with np.load(path) as data:
            return _swissmetro(data) if "table" in data.files else self._read(data)

    def _read(self, data: "np.lib.npyio.NpzFile") -> Annotations:
        names = [str(name) for name in data["features"]]
        kept = [k for k, name in enumerate(names) if name not in self.left_out]
        X = data["X"][data["item"]][:, kept].astype(np.float64)
        return Annotations(
            data["user"],
            None,
            data["label"],
            X / [self.units.get(names[k], 1.0) for k in kept],
            choice_sets=data["group"],
            feature_names=[names[k] for k in kept],
        )

    def ranker(self, covariance: str, draws: int) -> HierarchicalRanker:
        """Return ours; where covariance is full, all weights vary."""
        return HierarchicalRanker(
            covariance=covariance,
            fixed=list(self.fixed) if covariance == "diagonal" else None,
            signs=dict(self.logs) or None,
            distributions=dict.fromkeys(self.logs, "lognormal") or None,
            draws=draws,
        )


def _estimates(
    names: str, means: tuple[float, ...], deviations: tuple[float, ...], **fixed: float
) -> dict[str, float]:
    """Return estimates as xlogit calls them."""
    varying = names.split()
    spread = dict(zip([f"sd.{name}" for name in varying], deviations, strict=True))
    return dict(zip(varying, means, strict=True)) | spread | fixed


# As in the examples of xlogit's repository: the notebooks on mixed logit and on spaces of
# willingness to pay, its tests (fishing), and its benchmark (swissmetro).
SPECIFICATIONS = (
    Specification(
        "electricity",
        -3888.413,
        600,
        estimates=_estimates(
            "pf cl loc wk tod seas",
            (-0.9996286, -0.2355334, 2.2307891, 1.6251657, -9.6067367, -9.7892800),
            (0.2357813, 0.4025377, 1.9262893, 1.2192931, 2.3354462, 1.4200913),
        ),
    ),
    Specification(
        "yogurt",
        -1247.199,
        1000,
        ("alt_dannon",),
        ("price",),
        method="L-BFGS-B",
        estimates=_estimates(
            "feat alt_yoplait alt_hiland alt_weight",
            (1.0826681, 0.8921554, -5.5409249, -3.9445356),
            (1.0781550, 3.7818750, 2.8199068, 3.7870137),
            price=-0.4564785,
        ),
    ),
    Specification(
        "car100",
        -1302.683,
        100,
        ("gas",),
        ("hiperf", "medhiperf"),
        {"price": -1, "range": 1},
        {"price": 1e4},
        method="L-BFGS-B",
        estimates=_estimates(
            "price opcost range ev hybrid",
            (-0.7871346, -0.0110846, -0.6857957, -1.5574339, 0.6883966),
            (0.8666443, 0.0401550, 0.5527011, 0.9139887, 0.7099238),
            hiperf=0.1058410,
            medhiperf=0.5604997,
        ),
    ),
    Specification(
        "fishing",
        -1300.511,
        1000,
        ("income", "alt_beach", "alt_boat", "alt_charter", "alt_pier"),
    ),
    Specification(
        "swissmetro",
        -4359.218,
        1500,
        fixed=("asc_car", "asc_train", "cost"),
        method="L-BFGS-B",
        estimates=_estimates(
            "time",
            (-3.2289890,),
            (3.6485428,),
            asc_car=0.2831101,
            asc_train=-0.5722759,
            cost=-1.6601672,
        ),
    ),
)


def _swissmetro(data: "np.lib.npyio.NpzFile") -> Annotations:
    """Return the usual specification: constants, cost and time, in hundredths."""
    table = dict(zip(data["columns"].tolist(), data["table"].astype(np.float64).T, strict=True))
    n, free = len(table["CHOICE"]), table["GA"] == 1
    rows = []
    for code, mode in enumerate(("TRAIN", "SM", "CAR"), start=1):
        cost = np.where(free & (mode != "CAR"), 0.0, table[f"{mode}_CO"]) / 100
        constants = np.tile([mode == "CAR", mode == "TRAIN"], (n, 1))
        X = np.column_stack([constants, cost, table[f"{mode}_TT"] / 100])
        rows.append((X, table["CHOICE"] == code, table[f"{mode}_AV"] == 1))
    X, label, available = (np.concatenate(each) for each in zip(*rows, strict=True))
    which = np.tile(np.arange(n), 3)
    return Annotations(
        table["ID"][which[available]].astype(np.intp),
        None,
        label[available],
        X[available],
        choice_sets=which[available],
        feature_names=["asc_car", "asc_train", "cost", "time"],
    )


@dataclass(frozen=True)
class Fit:
    """A fit: its log-likelihood with the simulation's error, and the seconds it took."""

    value: float
    error: float
    seconds: float
    own: float | None = None


def _ours(spec: Specification, choices: Annotations, draws: int, exact: int, kind: str) -> Fit:
    start = time.process_time()
    ranker = HierarchicalRanker() if kind == "default" else spec.ranker(kind, draws)
    ranker.fit(choices)
    seconds = time.process_time() - start
    found = ranker.log_likelihood(draws=exact, random_state=1)
    return Fit(found.value, found.error, seconds)


def _theirs(spec: Specification, choices: Annotations, exact: int) -> Fit:
    """Fit with xlogit; the likelihood of its estimates is simulated by ours."""
    X, y, ids, alts, panels, available = rectangle(choices)
    names = list(choices.feature_names)
    varying = [name for name in names if name not in spec.fixed]
    model = import_module("xlogit").MixedLogit()
    start = time.process_time()
    model.fit(
        X=X * np.array([spec.logs.get(name, 1) for name in names]),
        y=y,
        varnames=names,
        ids=ids,
        alts=alts,
        panels=panels,
        avail=available,
        randvars={name: "ln" if name in spec.logs else "n" for name in varying},
        n_draws=spec.draws,
        optim_method=spec.method,
        verbose=0,
    )
    seconds = time.process_time() - start
    said = dict(zip(model.coeff_names, model.coeff_, strict=True))
    found = _simulate(spec, choices, said, exact)
    return Fit(found.value, found.error, seconds, float(model.loglikelihood))


def _published(spec: Specification, choices: Annotations, exact: int) -> Fit:
    """Return the log-likelihood of the estimates that were published, by our simulator."""
    found = _simulate(spec, choices, spec.estimates, exact)
    return Fit(found.value, found.error, 0.0)


def _simulate(
    spec: Specification, choices: Annotations, said: Mapping[str, float], exact: int
) -> LogLikelihood:
    """Return the log-likelihood of estimates that xlogit has made."""
    ranker = spec.ranker("diagonal", 20).fit(choices)
    names = list(ranker.feature_names_)
    unit = dict(zip(names, ranker.scale_, strict=True))
    varying = [name for name in names if name not in spec.fixed]
    mean, deviation = [], []
    for name in varying:
        is_log = name in spec.logs
        mean.append(said[name] + np.log(unit[name]) if is_log else said[name] * unit[name])
        deviation.append(said[f"sd.{name}"] * (1.0 if is_log else unit[name]))
    fixed = [said[name] * unit[name] for name in names if name in spec.fixed]
    at = Coefficients(np.array(mean), np.diag(np.square(deviation)), np.array(fixed))
    return simulate_likelihood(replace(_simulated(ranker, None), at=at), exact, seed=1)


def rectangle(choices: Annotations) -> tuple[np.ndarray, ...]:
    """Return rows with as many alternatives in every set; those that fill up are not available."""
    sizes = np.bincount(choices.choice_set_codes)
    order = np.argsort(choices.choice_set_codes, kind="stable")
    n_sets, most = len(sizes), sizes.max()
    place = np.concatenate([np.arange(size) for size in sizes])
    at = choices.choice_set_codes[order] * most + place
    X = np.zeros((n_sets * most, choices.n_features))
    y, available = np.zeros(n_sets * most), np.zeros(n_sets * most)
    X[at], y[at], available[at] = choices.X[order], choices.labels[order], 1
    panels = np.zeros(n_sets, dtype=np.intp)
    panels[choices.choice_set_codes] = choices.user_codes
    ids = np.repeat(np.arange(n_sets), most)
    return X, y, ids, np.tile(np.arange(most), n_sets), np.repeat(panels, most), available


def table(found: dict[str, Any]) -> str:
    """Return log-likelihoods and processor seconds, a row for each specification."""
    specs = {spec.name: spec for spec in SPECIFICATIONS}
    return markdown(_HEAD, [_row(specs[name], one) for name, one in found.items()])


def _row(spec: Specification, found: dict[str, Any]) -> list[str]:
    fits = {kind: Fit(**fit) for kind, fit in found["fits"].items()}
    theirs = fits.get("xlogit")

    def shown(name: str) -> str:
        fit = fits.get(name)
        return "-" if fit is None or np.isnan(fit.value) else f"{fit.value:.1f} ± {fit.error:.1f}"

    def took(name: str) -> str:
        if name not in fits:
            return "-"
        seconds = fits[name].seconds
        is_ours = theirs is not None and name != "xlogit"
        return f"{seconds:.1f}" + (f" ({seconds / theirs.seconds:.2f}x)" if is_ours else "")

    return [
        spec.name,
        f"{found['users']:,}, {found['choices']:,}",
        f"{spec.published:.1f} ({spec.draws:,})",
        "-" if theirs is None or theirs.own is None else f"{theirs.own:.1f}",
        *(shown(name) for name in ("published", "xlogit", "diagonal", "full", "default")),
        *(took(name) for name in ("xlogit", "diagonal", "full", "default")),
    ]


_HEAD = ["data", "people, choices", "published (draws)", "xlogit, by itself"]
_HEAD += ["published estimates", "xlogit's", "ours, same model", "ours, full covariance"]
_HEAD += ["ours, default", "xlogit's seconds", "ours", "full", "default"]


def _draw(found: dict[str, dict[str, Fit]], published: dict[str, float]) -> None:
    """Draw how far each log-likelihood is from the published one."""
    pyplot = import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(figsize=(7, 0.9 + 0.8 * len(found)), layout="constrained")
    marks = {"xlogit": "s", "diagonal": "o", "full": "D"}
    words = {"xlogit": "xlogit", "diagonal": "ours, same model", "full": "ours, full covariance"}
    for kind, mark in marks.items():
        there = [name for name, fits in found.items() if kind in fits]
        places = [list(found).index(name) for name in there]
        gains = [found[name][kind].value - published[name] for name in there]
        axes.plot(gains, places, mark, label=words[kind], alpha=0.8)
    axes.axvline(0.0, color="0.6", linewidth=1)
    axes.set_yticks(range(len(found)), list(found))
    axes.invert_yaxis()
    axes.set_xscale("symlog", linthresh=10)
    axes.set_xlim(-30, 2000)
    axes.set_xlabel("difference from the published log-likelihood, nats")
    axes.set_title("The full covariance is more likely than all published models")
    axes.margins(x=0.1, y=0.15)
    axes.legend(loc="upper left")
    figure.savefig(PICTURE, dpi=150)


def _kept(spec: Specification, choices: Annotations, chosen: argparse.Namespace) -> dict[str, Fit]:
    """Return all fits to a data set, each kept in the cache as soon as it is there."""
    measures: dict[str, Callable[[], Fit]] = {
        kind: partial(_ours, spec, choices, chosen.draws, chosen.exact, kind)
        for kind in ("diagonal", "full", "default")
    }
    if spec.estimates:
        measures["published"] = partial(_published, spec, choices, chosen.exact)
    if find_spec("xlogit") is not None:
        measures["xlogit"] = partial(_theirs, spec, choices, chosen.exact)
    chosen.cache.mkdir(parents=True, exist_ok=True)
    fits = {}
    for kind, measure in measures.items():
        path = chosen.cache / f"{spec.name}--{kind}.json"
        if not path.is_file():
            write_whole(path, json.dumps(vars(measure())).encode())
        fits[kind] = Fit(**json.loads(path.read_text()))
    return fits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with NAME.npz files")
    parser.add_argument("--draws", type=int, default=200, help="of our fits, for each person")
    parser.add_argument("--exact", type=int, default=5000, help="draws for log-likelihoods")
    parser.add_argument("--cache", type=Path, default=ROOT / ".choice-models", help="results")
    parser.add_argument("--only", nargs="*", help="data sets; default: all")
    chosen = parser.parse_args()
    found: dict[str, Any] = {}
    fits, published = {}, {}
    for spec in SPECIFICATIONS:
        choices = spec.read(chosen.data)
        if choices is None or (chosen.only and spec.name not in chosen.only):
            continue
        fits[spec.name] = _kept(spec, choices, chosen)
        published[spec.name] = spec.published
        found[spec.name] = {
            "users": choices.n_users,
            "choices": int(choices.labels.sum()),
            "fits": {kind: vars(fit) for kind, fit in fits[spec.name].items()},
        }
        print(_row(spec, found[spec.name]), flush=True)
    if not chosen.only:
        publish("development/choice-models", found, PAGE, table(found))
        _draw(fits, published)


if __name__ == "__main__":
    main()
