"""Everyday commands on a crowd as large as a well-known set of films: seconds of a processor.

``python -m benchmarks.everyday`` simulates 671 people who give 100,004 labels to 9,066 films with
genres, of which few are judged by many, fits a model in a temporary folder (or takes that of
``--folder``), and prints what each command costs: seconds of processor time of the whole program.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

N_PEOPLE, N_ITEMS, N_LABELS, N_GENRES = 671, 9_066, 100_004, 19
COMMANDS = {
    "explain --user": ("explain", "--user", "p7"),
    "explain --user --item": ("explain", "--user", "p7", "--item", "film 3"),
    "explain --item": ("explain", "--item", "film 3"),
    "explain --school": ("explain", "--school", "1"),
    "explain": ("explain",),
    "rank --unseen": ("rank", "--user", "p7", "--unseen"),
    "similar --user": ("similar", "--user", "p7"),
    "similar --item": ("similar", "--item", "film 3"),
}


def write_films(folder: Path, seed: int = 0) -> None:
    """Write ratings.csv and films.csv: people and films differ in how many labels they have."""
    rng = np.random.default_rng(seed)
    genres = (rng.random((N_ITEMS, N_GENRES)) < 0.12).astype(int)
    fame = 1.0 / np.arange(1, N_ITEMS + 1) ** 0.8
    fame /= fame.sum()
    counts = np.maximum(20, rng.lognormal(4.3, 1.1, N_PEOPLE))
    counts = np.minimum(np.floor(counts * N_LABELS / counts.sum()).astype(int) + 1, N_ITEMS // 3)
    camps = rng.normal(0, 0.7, (3, N_GENRES))[rng.integers(3, size=N_PEOPLE)]
    taste = camps + rng.normal(0, 0.2, (N_PEOPLE, N_GENRES)) + rng.normal(0, 0.4, N_GENRES)
    liked, hidden = rng.normal(0, 0.8, N_ITEMS), rng.normal(size=(N_ITEMS, 2))
    own = rng.normal(0, 0.5, (N_PEOPLE, 2))
    rows = []
    for i, n in enumerate(counts):
        films = rng.choice(N_ITEMS, n, replace=False, p=fame)
        odds = genres[films] @ taste[i] + liked[films] + hidden[films] @ own[i] + rng.normal(0, 0.5)
        said = rng.random(n) < 1 / (1 + np.exp(-odds))
        rows += [f"p{i},film {j},{int(y)}" for j, y in zip(films, said, strict=True)]
    kept = rng.permutation(len(rows))[:N_LABELS]
    (folder / "ratings.csv").write_text(
        "person,item,label\n" + "\n".join(rows[k] for k in kept) + "\n", encoding="utf-8"
    )
    head = ",".join(["item", *(f"genre {g}" for g in range(N_GENRES))])
    lines = [f"film {j}," + ",".join(map(str, genres[j])) for j in range(N_ITEMS)]
    (folder / "films.csv").write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")


# Programs that were installed are compiled once, and not at every start.
_AS_INSTALLED = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}


def cpu_seconds(*words: str, folder: Path) -> float:
    """Run a command of the program in a folder; return what it cost."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", "from likeminds.cli import main; main()", *words],
        cwd=folder,
        env=_AS_INSTALLED,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the crowd and its model are kept")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "films.likeminds").exists():
            write_films(folder)
            tables = ("-a", "ratings.csv", "-f", "films.csv")
            cost = cpu_seconds("fit", *tables, "--out", "films.likeminds", folder=folder)
            print(f"{'fit':<28}{cost:8.2f} s")
        for words in COMMANDS.values():  # compiles what was not
            cpu_seconds(*words, "films.likeminds", folder=folder)
        for name, words in COMMANDS.items():
            cost = cpu_seconds(*words, "films.likeminds", folder=folder)
            print(f"{name:<28}{cost:8.2f} s", flush=True)


if __name__ == "__main__":
    main()
