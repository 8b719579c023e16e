"""``likeminds reproduce``: run the chosen parts, and write the report."""

import json
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from rich.console import Console

from likeminds._util.atomic_files import make_folder, write_whole
from likeminds._util.checks import listing
from likeminds._util.console import SafeConsole, in_words, report_progress
from likeminds._version import __version__
from likeminds.comparing.runs import ResultStore
from likeminds.paper.experiments.claims import judge_claims, lead
from likeminds.paper.experiments.report_page import ReportPart, markdown_table, phrase, write_report
from likeminds.paper.experiments.setting import (
    PARTS,
    SCALES,
    TUNED,
    ExperimentScale,
    ExperimentSetting,
)
from likeminds.paper.experiments.timing import blas_threads, n_cores

EVERYTHING = "all"
# The parts that are not made by ``run`` of the module of their name.
_MADE_BY = {"fig5": ("table3", "run_figure")}
# The parts whose repeats can be chosen: intervals over repeats need two.
_REPEATED, _LEAST_REPEATS = ("table1", "table3"), 2
# The progress of a part that takes longer than expected, as a share of it.
_LATE = 0.9
_VERDICTS = (
    "Each verdict is computed from the results in this report. “Holds in part”: for some "
    "attributes, numbers of labels or parameters only, or by less than claimed. “Cannot be told”: "
    "the 95 % intervals allow both."
)
_PACKAGES = ("numpy", "scipy", "scikit-learn", "pyarrow", "matplotlib")


def reproduce(
    what: str = EVERYTHING,
    scale: str = "quick",
    out: str | Path = "reproduced",
    *,
    shoes: str | Path | None = None,
    sun: str | Path | None = None,
    data: Sequence[str | Path] = (),
    tuned: Literal["first", "every"] | None = None,
    repeats: int | None = None,
    jobs: int | None = None,
    seed: int = 0,
    progress: bool = True,
    console: Console | None = None,
) -> list[Path]:
    """Rebuild the paper's tables and figures, and write a report.

    Finished results are stored in ``out``, so an interrupted run can be resumed.

    Parameters
    ----------
    what : str
        "table1", "table2", "table3", "fig3", "fig4", "fig5", "drawings" (Figures 1 and 2),
        "ablation", or "all".
    scale : {"quick", "paper", "tiny"}
        Sizes for a run of minutes, those of the paper, or sizes for tests.
    out : path
        The folder of the report, created if missing.
    shoes, sun : path, optional
        Folders with the original data (see `likeminds.load_shoes`).
    data : sequence of paths, optional
        Further data sets for Table 3: tables (.csv, .parquet) or .npz.
    tuned : {"first", "every"}, optional
        The repeats of Tables 1 and 3 that choose penalties. "first": the others keep those of the
        first. "every": each chooses its own, inside its training rows; the default at the paper's
        scale.
    repeats : int, optional
        The number of repeats of Tables 1 and 3, at least 2; by default that of the scale.
    jobs : int, optional
        The number of fits at the same time; by default one for each core.
    seed : int
        The seed of data, splits and folds.
    progress : bool
        Show a progress bar.
    console : Console, optional
        The console for messages.

    Returns
    -------
    list of Path
        The report in Markdown and HTML. Its folder also has the pictures (PNG and SVG) and
        ``report.json``, with all results, commit, date, versions and seed.
    """
    chosen = _chosen(what, scale, jobs)
    sizes = _with_options(SCALES[scale], tuned, repeats)
    _refuse_missing({"--shoes": shoes, "--sun": sun}, data)
    folder = make_folder(out, "the report")
    remaining = _RemainingTime(chosen, sizes)
    screen = SafeConsole(stderr=True) if console is None else console
    screen.print(_expected(chosen, sizes))
    with report_progress(progress, "% of the work", 100, console=screen) as report:
        shown = 0

        def finished(name: str) -> None:
            nonlocal shown
            share = remaining.share()
            shown = max(shown, int(100 * share))
            report(shown, f"{remaining.part}: {name}", share)

        setting = ExperimentSetting(
            sizes,
            ResultStore(folder / "kept", n_cores() if jobs is None else jobs, finished),
            seed,
            None if shoes is None else Path(shoes),
            None if sun is None else Path(sun),
            tuple(map(Path, data)),
        )
        parts = _run(chosen, setting, remaining, screen)
    facts = {part.key: part.facts for part in parts}
    name = "report" if what == EVERYTHING else what
    results = folder / f"{name}.json"
    made = fingerprint(setting) if remaining.computed else _as_before(fingerprint(setting), results)
    write_whole(results, json.dumps(facts | {"made": made}, indent=1).encode())
    verdicts = judge_claims(facts)
    if verdicts:
        titles = {part.key: part.title.split(":")[0] for part in parts}
        rows = [
            (v.claim, v.paper, v.measured, f"**{v.verdict}**", titles[v.part]) for v in verdicts
        ]
        table = markdown_table(["claim", "the paper", "measured", "verdict", "evidence"], rows)
        parts.insert(0, ReportPart("", "What holds, what does not", "", [table, _VERDICTS]))
    machine = _machine_table(what, remaining, setting, made)
    parts.append(ReportPart("", "How it was made", "", [machine]))
    heading = f"The paper, rebuilt (scale: {setting.scale.name})"
    first = f"{phrase('difference', sizes)} {lead(verdicts)}"
    return write_report(folder, name, heading, first, parts)


def _chosen(what: str, scale: str, jobs: int | None) -> list[str]:
    if what != EVERYTHING and what not in PARTS:
        raise ValueError(f"There is no part {what!r}; there are {', '.join(PARTS)}, {EVERYTHING}.")
    if scale not in SCALES:
        raise ValueError(f"There is no scale {scale!r}; there are {', '.join(SCALES)}.")
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs must be at least 1, but is {jobs}.")
    return list(PARTS) if what == EVERYTHING else [what]


def _with_options(
    scale: ExperimentScale, tuned: str | None, repeats: int | None
) -> ExperimentScale:
    """Return the sizes with other repeats of Tables 1 and 3, and the forecast of their times."""
    if tuned is not None:
        if tuned not in TUNED:
            raise ValueError(f"tuned must be {' or '.join(TUNED)}, but is {tuned!r}.")
        scale = replace(scale, tuned=TUNED[tuned])
    if repeats is not None:
        if repeats < _LEAST_REPEATS:
            raise ValueError(f"repeats must be at least {_LEAST_REPEATS}, but is {repeats}.")
        share = repeats / scale.repeats
        minutes = {k: m * share if k in _REPEATED else m for k, m in scale.minutes.items()}
        scale = replace(scale, repeats=repeats, minutes=minutes)
    return scale


def _refuse_missing(folders: Mapping[str, str | Path | None], data: Sequence[str | Path]) -> None:
    for option, folder in folders.items():
        if folder is not None and not Path(folder).is_dir():
            raise FileNotFoundError(f"There is no folder {folder}, which {option} names.")
    for path in data:
        if not Path(path).is_file():
            raise FileNotFoundError(f"There is no file {path}, which --data names.")


class _RemainingTime:
    """A forecast of the time left, by the minutes of each part and the pace of this machine."""

    def __init__(
        self,
        chosen: Sequence[str],
        scale: ExperimentScale,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._left = {key: 60 * scale.minutes.get(key, 0.1) for key in chosen}
        self._clock, self._start = clock, clock()
        self._expected = self._taken = 0.0
        self._computed = self.computed = False  # a fit of this part, a fit of any part
        self.part = ""
        self.seconds: dict[str, float] = {}

    @contextmanager
    def during(self, part: str) -> Iterator[None]:
        """Measure the time of a part."""
        self.part, self._computed, start = part, False, self._clock()
        self._start_of_part = start
        yield
        self.seconds[part] = self._clock() - start
        expected = self._left.pop(part)
        if self._computed:  # parts from the store take no time and are left out
            self._expected += expected
            self._taken += self.seconds[part]

    def seconds_left(self) -> float:
        """Return the time of the rest of this part and of the parts to come."""
        pace = self._taken / self._expected if self._expected else 1.0
        under_way = self._left.get(self.part, 0.0)
        if not under_way:
            return pace * sum(self._left.values())
        # A part that takes longer than expected shows a slower machine before it ends.
        passed = self._clock() - self._start_of_part
        pace = max(pace, (self._taken + passed) / (self._expected + under_way))
        return pace * sum(self._left.values()) - min(passed, _LATE * pace * under_way)

    def share(self) -> float:
        """Return the share of the run that is done, after a fit."""
        self._computed = self.computed = True
        done = self._clock() - self._start
        return done / (done + self.seconds_left())


def _run(
    chosen: Sequence[str], setting: ExperimentSetting, remaining: _RemainingTime, console: Console
) -> list[ReportPart]:
    parts: list[ReportPart] = []
    for key in chosen:
        module, function = _MADE_BY.get(key, (key, "run"))
        with remaining.during(key):
            made_by = getattr(import_module(f"likeminds.paper.experiments.{module}"), function)
            parts.append(made_by(setting))
        left = remaining.seconds_left()
        about = f" About {in_words(left)} left." if left else ""
        console.print(
            f"{key}: {remaining.seconds[key]:.0f} s.{about} {parts[-1].found}", soft_wrap=True
        )
    return parts


def _expected(chosen: Sequence[str], scale: ExperimentScale) -> str:
    total = sum(scale.minutes.get(key, 0.0) for key in chosen)
    forecast = f", about {in_words(60 * total)} on two cores if nothing is stored yet"
    return f"{listing(list(chosen))} at scale {scale.name}{forecast if total else ''}."


def fingerprint(setting: ExperimentSetting) -> dict[str, str]:
    """Return the origin of results: commit, date, versions, scale and seed."""
    return {
        "commit": _commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "likeminds": __version__,
        "Python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
        "scale": setting.scale.name,
        "seed": str(setting.seed),
    }


def _as_before(now: dict[str, str], results: Path) -> dict[str, str]:
    """Return the origin of the earlier report if all results are its own, else the present one."""
    try:
        before = dict(json.loads(results.read_bytes())["made"])
    except (OSError, ValueError, KeyError):
        return now
    if any(before.get(name) != now[name] for name in ("scale", "seed")):
        return now
    return before | {"written again": f"{now['date']}, commit {now['commit']}"}


def _commit() -> str:
    """Return the commit of the source, with "+ changes" if files differ, or "unknown"."""

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=source, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    source = Path(__file__).parent
    try:
        git(
            "ls-files", "--error-unmatch", Path(__file__).name
        )  # the package is part of the checkout
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "HEAD") + (" + changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _machine_table(
    what: str, remaining: _RemainingTime, setting: ExperimentSetting, made: Mapping[str, str]
) -> str:
    times = ", ".join(f"{key} {taken:.0f}" for key, taken in remaining.seconds.items())
    machine = (
        f"{platform.system()} {platform.machine()}, {n_cores()} cores, {blas_threads()} BLAS "
        f"threads, {setting.store.n_jobs} fits at a time"
    )
    rows = [
        ("command", f"`{setting.command(what)}`"),
        *made.items(),
        ("machine", machine),
        ("seconds of this run", f"{times} (results of an earlier run took none)"),
    ]
    return markdown_table(["", ""], rows)
