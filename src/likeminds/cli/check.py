"""``likeminds reproduce`` and ``doctor``: the paper's results, and a check of the installation."""

import os
import platform
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import typer

from likeminds._util.lazy_imports import np
from likeminds._util.text_format import counted
from likeminds._version import __version__
from likeminds.cli._options import SETTINGS, Seed, option
from likeminds.cli._output import Output
from likeminds.cli.main import SignalledError, command

# The package of each extra, and its purpose.
_EXTRAS = {
    "onnx": ("onnxruntime", "features of deep networks"),
    "duckdb": ("duckdb", "reading DuckDB databases"),
    "postgres": ("psycopg", "reading from PostgreSQL"),
    "serve": ("fastapi", "serving a model over HTTP"),
    "dask": ("distributed", "fits on a cluster"),
}
_NEEDED = (
    *("numpy", "scipy", "scikit-learn", "pyarrow", "narwhals", "safetensors", "matplotlib"),
    *("pillow", "typer", "rich"),
)
# The self-check passes above this AUC on simulated labels.
_LEAST_AUC = 0.75


@command("Check", "likeminds reproduce fig3 --scale tiny --jobs 1 --out reproduced")
def reproduce(
    output: Output,
    *,
    what: str = typer.Argument(
        help="table1, table2, table3, fig3, fig4, fig5, drawings (Figures 1 and 2), ablation, "
        "or all.",
        default="all",
    ),
    scale: str = option(
        "quick (minutes), paper (15 repeats, hours), or tiny (a test run).", default="quick"
    ),
    out: Path = option("The folder of the report.", "--out", "-o", default=Path("reproduced")),
    shoes: Path | None = option("A folder with the original Shoes data.", default=None),
    sun: Path | None = option("A folder with the original SUN data.", default=None),
    data: list[Path] | None = option(
        "A further data set for Table 3 (.csv, .parquet, .npz); may be repeated.", default=None
    ),
    tuned: str | None = option(
        "Repeats of Tables 1 and 3 that tune penalties: first, or every (the default at the "
        "paper's scale).",
        panel=SETTINGS,
        default=None,
    ),
    repeats: int | None = option(
        "Repeats of Tables 1 and 3, at least 2; by default, those of the scale.",
        panel=SETTINGS,
        default=None,
    ),
    jobs: int | None = option(
        "Number of parallel fits; by default, one per core.", panel=SETTINGS, default=None
    ),
    seed: Seed = 0,
) -> None:
    """Reproduce the tables and figures of the paper, and check its claims.

    Finished parts are stored in the folder, so the same command resumes an interrupted run.
    """
    from likeminds._util.console import SafeConsole
    from likeminds.paper.experiments.command import reproduce as run

    options: dict[str, Any] = {"shoes": shoes, "sun": sun, "data": data or (), "jobs": jobs}
    console = SafeConsole(stderr=True, quiet=output.quiet)
    options |= {
        "tuned": tuned,
        "repeats": repeats,
        "seed": seed,
        "progress": not output.quiet and sys.stderr.isatty(),
        "console": console,
    }
    try:
        pages = run(what, scale, out, **options)
    except (KeyboardInterrupt, SignalledError):
        output.note(f"finished parts are stored in {out}: run the same command to resume.")
        raise
    output.json({"pages": [str(page) for page in pages], "folder": str(out)})
    output.show(f"Written: {', '.join(map(str, pages))}")
    output.hint(f"Open {pages[-1]} in a browser; machine-readable results are in {out}.")


@command("Check", "likeminds doctor")
def doctor(output: Output) -> None:
    """Show versions, threads, memory and extras, and run a small fit as a self-check."""
    machine, threads, check = _machine(), _threads(), _self_check()
    packages = {name: _version(name) for name in _NEEDED}
    extras = {extra: _version(package) for extra, (package, _) in _EXTRAS.items()}
    found = machine | {"threads": threads, "packages": packages, "extras": extras}
    output.json(found | {"self_check": check})
    machine |= {pool["library"]: counted(pool["threads"], "thread") for pool in threads}
    rows = [{"component": name, "found": value} for name, value in (machine | packages).items()]
    output.table("This machine", rows)
    rows = [
        {
            "extra": extra,
            "purpose": purpose,
            "found": extras[extra] or f"missing: pip install 'likeminds[{extra}]'",
        }
        for extra, (_, purpose) in _EXTRAS.items()
    ]
    output.table("Extras", rows)
    output.show(
        f"Self-check: AUC {check['auc']:.3f} on simulated labels in {check['seconds']:.2f} s, "
        f"saved and read again: {'passed' if check['passed'] else 'FAILED'}."
    )
    if not check["passed"]:
        raise typer.Exit(1)


def _machine() -> dict[str, Any]:
    from joblib import cpu_count

    found: dict[str, Any] = {
        "likeminds": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": cpu_count(),
    }
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        found["memory"] = f"{memory / 1e9:.1f} GB"
    return found


def _threads() -> list[dict[str, Any]]:
    """Return the thread pools of BLAS and OpenMP."""
    import sklearn.utils  # noqa: F401
    from threadpoolctl import threadpool_info

    pools = [
        {
            "library": f"{pool['internal_api']} {pool['version'] or ''}".strip(),
            "threads": pool["num_threads"],
        }
        for pool in threadpool_info()
    ]
    return [pool for k, pool in enumerate(pools) if pool not in pools[:k]]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _self_check() -> dict[str, Any]:
    """Fit simulated labels, write the model, and read it again."""
    from likeminds import HierarchicalRanker, load, make_schools, save, split_within_users

    started = time.perf_counter()
    crowd = make_schools(30, 40, 100, 8, 2, contested=0.5, random_state=0).annotations
    train, test = split_within_users(crowd, 0.3, 0)
    ranker = HierarchicalRanker().fit(train)
    auc = ranker.score(test)
    with tempfile.TemporaryDirectory() as folder:
        again = load(save(ranker, Path(folder) / "check.likeminds"))
        same = np.array_equal(again.decision_function(test), ranker.decision_function(test))
    passed = bool(auc > _LEAST_AUC and same)
    return {"passed": passed, "auc": auc, "seconds": time.perf_counter() - started}
