"""Frozen quantities: files, the machine they were written on, and what has moved since."""

import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from threadpoolctl import threadpool_info

FOLDER = Path(__file__).parents[2] / "tests" / "golden"
# The largest move that counts as none: with the same BLAS on the same kind of processor, and else.
SAME, ELSEWHERE = 1e-9, 1e-6


@dataclass(frozen=True)
class Move:
    """A quantity that moved by more than is allowed.

    Attributes
    ----------
    quantity : str
        What moved.
    by : float
        The largest difference, as a share of the largest frozen number or of 1, whichever is
        larger. Infinite where shapes or words differ.
    text : str
        What to print.
    """

    quantity: str
    by: float
    text: str


def machine() -> dict[str, Any]:
    """Return what the last digits depend on: processor, versions and BLAS."""
    libraries = {
        " ".join(str(found.get(key)) for key in ("internal_api", "version", "architecture"))
        for found in threadpool_info()
        if found["user_api"] == "blas"
    }
    return {
        "processor": platform.machine(),
        "system": platform.system(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "blas": sorted(libraries),
        "simd": np.show_config(mode="dicts")["SIMD Extensions"]["found"],
    }


def write(name: str, found: dict[str, np.ndarray], folder: Path = FOLDER) -> None:
    """Freeze the quantities of a crowd: a line for each, so differences can be read."""
    parts = {"machine": machine()} | {what: value.tolist() for what, value in found.items()}
    lines = [f"{json.dumps(what)}: {json.dumps(value)}" for what, value in parts.items()]
    (folder / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read(name: str, folder: Path = FOLDER) -> tuple[dict[str, np.ndarray], float]:
    """Return the frozen quantities of a crowd, and how far they may move on this machine."""
    path = folder / f"{name}.json"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: write it by python -m tools.golden --write.")
    parts = json.loads(path.read_text(encoding="utf-8"))
    allowed = SAME if parts.pop("machine") == machine() else ELSEWHERE
    return {what: np.asarray(value) for what, value in parts.items()}, allowed


def moves(
    before: dict[str, np.ndarray], after: dict[str, np.ndarray], allowed: float
) -> list[Move]:
    """Return what moved by more than is allowed, the largest move first."""
    found = [_move(what, before.get(what), after.get(what)) for what in before | after]
    return sorted((m for m in found if not m.by <= allowed), key=lambda m: -m.by)


def _move(what: str, before: np.ndarray | None, after: np.ndarray | None) -> Move:
    if before is None or after is None:
        return Move(what, np.inf, f"{what}: {'new' if before is None else 'gone'}")
    if before.shape != after.shape:
        return Move(what, np.inf, f"{what}: shape {before.shape} -> {after.shape}")
    if before.dtype.kind == "U":
        apart = np.flatnonzero(before != after)
        words = ", ".join(f"{before[k]} -> {after[k]}" for k in apart[:5])
        where = f"{len(apart)} of {before.size} differ: {words}"
        return Move(what, np.inf if len(apart) else 0.0, f"{what}: {where}")
    if not before.size:
        return Move(what, 0.0, what)
    old, new = before.astype(np.float64).ravel(), after.astype(np.float64).ravel()
    apart = np.abs(new - old)
    apart[np.isnan(old) & np.isnan(new)] = 0.0
    apart[np.isnan(apart)] = np.inf
    worst = int(apart.argmax())
    by = float(apart[worst] / max(1.0, np.nanmax(np.abs(old), initial=0.0)))
    return Move(what, by, f"{what}: by {by:.1e}, largest {old[worst]:.9g} -> {new[worst]:.9g}")
