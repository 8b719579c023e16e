"""``likeminds doctor``: what this machine has, and whether the library works on it."""

from typing import Any

import typer

from likeminds._version import __version__
from likeminds.cli._command import command
from likeminds.cli._output import Output

# What each extra brings: the package that is imported, and what for.
_EXTRAS = {
    "images": ("pillow", "reading pictures"),
    "plots": ("matplotlib", "pictures and reports"),
    "onnx": ("onnxruntime", "features of deep networks"),
    "duckdb": ("duckdb", "reading DuckDB databases"),
    "postgres": ("psycopg", "reading from PostgreSQL"),
    "serve": ("fastapi", "serving a model over HTTP"),
}
_NEEDED = ("numpy", "scipy", "scikit-learn", "pyarrow", "narwhals", "safetensors", "typer", "rich")
# A simulated crowd is learned this well, or something is wrong.
_LEAST_AUC = 0.75


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    command(app, panel="Check", examples=["likeminds doctor"])(doctor)


def doctor(talk: Output) -> None:
    """Show versions, threads, memory and extras, and check that a small fit comes out right."""
    from likeminds._util.text_format import counted
    from likeminds.cli._tables import rich_table

    found = {
        "likeminds": __version__,
        **_machine(),
        "threads": _threads(),
        "packages": {name: _version(name) for name in _NEEDED},
        "extras": {extra: _version(package) for extra, (package, _) in _EXTRAS.items()},
        "self_check": _self_check(),
    }
    talk.result(found)
    machine = {name: value for name, value in found.items() if isinstance(value, str | int | float)}
    machine |= {pool["library"]: counted(pool["threads"], "thread") for pool in found["threads"]}
    machine |= found["packages"]
    talk.tell(rich_table("This machine", [{"what": k, "is": v} for k, v in machine.items()]))
    extras = [
        {"extra": extra, "for": purpose, "is": found["extras"][extra] or _missing(extra)}
        for extra, (_, purpose) in _EXTRAS.items()
    ]
    talk.tell(rich_table("Extras", extras))
    check = found["self_check"]
    verdict = "all is well" if check["passed"] else "SOMETHING IS WRONG"
    talk.tell(
        f"Self-check: AUC {check['auc']:.3f} on a simulated crowd in {check['seconds']:.2f} s, "
        f"saved and read again: {verdict}."
    )
    if not check["passed"]:
        raise typer.Exit(1)


def _machine() -> dict[str, Any]:
    import os
    import platform

    from joblib import cpu_count

    found: dict[str, Any] = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": cpu_count(),
    }
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        found["memory"] = f"{memory / 1e9:.1f} GB"
    return found


def _threads() -> list[dict[str, Any]]:
    """Return the thread pools of BLAS and OpenMP."""
    import numpy as np  # noqa: F401 - brings its pool
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
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _missing(extra: str) -> str:
    return f"missing: pip install 'likeminds[{extra}]'"


def _self_check() -> dict[str, Any]:
    """Learn a crowd whose truth is known, write the model, and read it again."""
    import tempfile
    import time
    from pathlib import Path

    import numpy as np

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
