"""Mixed logits beside xlogit's: ``python -m benchmarks.choice_models --data FOLDER``.

Writes the measured part of ``docs/choice-models.md`` and its picture. Every specification is
fitted by both: the same features, the same that vary, independent normal distributions. Log-
likelihoods are simulated by our importance sampler with many draws, at our estimates and at
xlogit's, so that they compare estimates rather than simulators; what xlogit says itself, with its
own draws, stands beside it.
"""

import argparse
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.accuracy import ROOT
from likeminds import Annotations, HierarchicalRanker
from likeminds.choice_models.simulating import Coefficients

PAGE = ROOT / "docs" / "choice-models.md"
BEGIN, END = "<!-- measured -->", "<!-- end of what was measured -->"


@dataclass(frozen=True)
class Specification:
    """Choices, which weights are the same for everybody or have a sign, and what was published."""

    name: str
    choices: Annotations
    fixed: tuple[str, ...]
    published: float
    note: str
    signs: Mapping[str, int] = field(default_factory=dict)


def specifications(folder: Path) -> Iterator[Specification]:
    """Yield the data sets that are there."""
    chosen = {
        "electricity": ([], -3888.413, "xlogit's documentation, 600 draws"),
        "yogurt": (["alt_hiland"], -1247.199, "xlogit"),
        "car100": (["gas"], -1302.683, "xlogit, with three log-normal weights: another model"),
    }
    for name, (left_out, value, note) in chosen.items():
        path = folder / f"{name}.npz"
        if path.exists():
            yield Specification(name, _read(np.load(path), left_out), (), value, note)
        if path.exists() and name == "car100":
            # xlogit's weights with a sign are log-normal, ours censored normal.
            signs = {"price": -1, "opcost": -1, "range": 1}
            choices = _read(np.load(path), left_out)
            yield Specification("car100, with signs", choices, (), value, "xlogit", signs)
    path = folder / "swissmetro.npz"
    if path.exists():
        choices = _swissmetro(np.load(path))
        fixed = ("asc_car", "asc_train", "cost")
        note = "xlogit, 1,500 draws; only travel time varies"
        yield Specification("swissmetro", choices, fixed, -4359.218, note)


def _read(data: "np.lib.npyio.NpzFile", left_out: list[str]) -> Annotations:
    """Return choices as they are; one dummy of each set of categories is left out."""
    kept = [k for k, name in enumerate(data["features"]) if name not in left_out]
    X = data["X"][data["item"]][:, kept].astype(np.float64)
    # xlogit takes features as they are: numbers by the ten thousand overflow.
    X /= 10.0 ** np.floor(np.log10(np.abs(X).max(axis=0)))
    return Annotations(
        data["user"],
        None,
        data["label"],
        X,
        groups=data["group"],
        feature_names=[str(data["features"][k]) for k in kept],
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
        groups=which[available],
        feature_names=["asc_car", "asc_train", "cost", "time"],
    )


@dataclass(frozen=True)
class Fit:
    """A fit: its log-likelihood with the simulation's error, and the seconds it took."""

    value: float
    error: float
    seconds: float
    own: float | None = None


def _ours(spec: Specification, draws: int, exact: int, covariance: str) -> Fit:
    start = time.process_time()
    fixed = list(spec.fixed) if covariance == "diagonal" else None
    signs = dict(spec.signs) or None
    ranker = HierarchicalRanker(covariance=covariance, fixed=fixed, signs=signs, draws=draws)
    ranker.fit(spec.choices)
    seconds = time.process_time() - start
    found = ranker.log_likelihood(draws=exact, random_state=1)
    return Fit(found.value, found.error, seconds)


def _default(spec: Specification, exact: int) -> Fit:
    start = time.process_time()
    ranker = HierarchicalRanker().fit(spec.choices)
    seconds = time.process_time() - start
    found = ranker.log_likelihood(draws=exact, random_state=1)
    return Fit(found.value, found.error, seconds)


def _theirs(spec: Specification, draws: int, exact: int) -> Fit:
    """Fit with xlogit; the likelihood of its estimates is simulated by ours."""
    X, y, ids, alts, panels, available = _rectangle(spec.choices)
    names = list(spec.choices.feature_names)
    varying = {
        name: "ln" if name in spec.signs else "n" for name in names if name not in spec.fixed
    }
    X = X * np.array([spec.signs.get(name, 1) for name in names])
    model = import_module("xlogit").MixedLogit()
    start = time.process_time()
    model.fit(
        X=X,
        y=y,
        varnames=names,
        ids=ids,
        alts=alts,
        panels=panels,
        avail=available,
        randvars=varying,
        n_draws=draws,
        optim_method="L-BFGS-B",  # its own method stops halfway on Swissmetro
        verbose=0,
    )
    seconds = time.process_time() - start
    if spec.signs:  # another distribution than ours: there is only what xlogit says itself
        return Fit(float("nan"), float("nan"), seconds, float(model.loglikelihood))
    said = dict(zip(model.coeff_names, model.coeff_, strict=True))
    ranker = HierarchicalRanker(covariance="diagonal", fixed=list(spec.fixed) or None)
    ranker.fit(spec.choices)
    scale = dict(zip(names, ranker.scale_, strict=True))
    setting = ranker._simulated(None)[0]
    at = Coefficients(
        np.array([said[name] * scale[name] for name in varying]),
        np.diag([(said[f"sd.{name}"] * scale[name]) ** 2 for name in varying]),
        np.array([said[name] * scale[name] for name in spec.fixed]),
    )
    ranker.crowd_ = replace(ranker.crowd_, prior=setting.prior(at))
    found = ranker.log_likelihood(draws=exact, random_state=1)
    return Fit(found.value, found.error, seconds, float(model.loglikelihood))


def _rectangle(choices: Annotations) -> tuple[np.ndarray, ...]:
    """Return rows with as many alternatives in every set; those that fill up are not available."""
    sizes = np.bincount(choices.group_codes)
    order = np.argsort(choices.group_codes, kind="stable")
    n_sets, most = len(sizes), sizes.max()
    place = np.concatenate([np.arange(size) for size in sizes])
    at = choices.group_codes[order] * most + place
    X = np.zeros((n_sets * most, choices.n_features))
    y, available = np.zeros(n_sets * most), np.zeros(n_sets * most)
    X[at], y[at], available[at] = choices.X[order], choices.labels[order], 1
    panels = np.zeros(n_sets, dtype=np.intp)
    panels[choices.group_codes] = choices.user_codes
    ids = np.repeat(np.arange(n_sets), most)
    return X, y, ids, np.tile(np.arange(most), n_sets), np.repeat(panels, most), available


def _row(spec: Specification, fits: dict[str, Fit]) -> str:
    def shown(name: str) -> str:
        fit = fits.get(name)
        return "-" if fit is None or np.isnan(fit.value) else f"{fit.value:.1f} ± {fit.error:.1f}"

    def took(name: str) -> str:
        fit, theirs = fits.get(name), fits.get("xlogit")
        if fit is None:
            return "-"
        ratio = (
            "" if theirs is None or name == "xlogit" else f" ({fit.seconds / theirs.seconds:.2f}x)"
        )
        return f"{fit.seconds:.1f}{ratio}"

    theirs = fits.get("xlogit")
    own = "-" if theirs is None or theirs.own is None else f"{theirs.own:.1f}"
    cells = [
        spec.name,
        f"{spec.choices.n_people:,}, {int(spec.choices.labels.sum()):,}",
        f"{spec.published:.1f}",
        own,
        *(shown(name) for name in ("xlogit", "diagonal", "full", "default")),
        *(took(name) for name in ("xlogit", "diagonal", "full", "default")),
    ]
    return "| " + " | ".join(cells) + " |"


HEAD = [
    "| data | people, choices | published | xlogit, by itself | xlogit | ours, same model | ours, "
    "full covariance | ours, default | xlogit's seconds | ours | full | default |",
    "|---" * 12 + "|",
]


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
    axes.set_xlabel("log-likelihood above the published one, in nats")
    axes.set_title("The same model is met; correlations are what pays")
    axes.margins(x=0.1, y=0.15)
    axes.legend(loc="upper left")
    figure.savefig(PAGE.with_suffix(".png"), dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with NAME.npz files")
    parser.add_argument("--draws", type=int, default=200, help="of our fits, for each person")
    parser.add_argument("--their-draws", type=int, default=600, help="of xlogit's")
    parser.add_argument("--exact", type=int, default=5000, help="draws for log-likelihoods")
    parser.add_argument("--only", nargs="*", help="data sets; default: all")
    chosen = parser.parse_args()
    lines, found, published = [], {}, {}
    for spec in specifications(chosen.data):
        if chosen.only and spec.name not in chosen.only:
            continue
        fits = {
            "diagonal": _ours(spec, chosen.draws, chosen.exact, "diagonal"),
            "full": _ours(spec, chosen.draws, chosen.exact, "full"),
        }
        if not spec.signs:
            fits["default"] = _default(spec, chosen.exact)
        if find_spec("xlogit") is not None:
            fits["xlogit"] = _theirs(spec, chosen.their_draws, chosen.exact)
        found[spec.name], published[spec.name] = fits, spec.published
        lines.append(_row(spec, fits))
        print(lines[-1], flush=True)
    if chosen.only:
        return
    made = (
        f"Made by `python -m benchmarks.choice_models --data FOLDER --draws {chosen.draws} "
        f"--their-draws {chosen.their_draws} --exact {chosen.exact}`, one thread. Seconds are "
        "those of the processor."
    )
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    measured = "\n".join(["", made, "", *HEAD, *lines, ""])
    PAGE.write_text(before + BEGIN + measured + END + rest.split(END)[1], encoding="utf-8")
    _draw(found, published)


if __name__ == "__main__":
    main()
