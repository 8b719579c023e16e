"""Kill fits, updates and saves at random moments, and see what is left; let updates meet.

python -m tools.kill_test [--kills 200] [--pairs 50] [--seed 0]

A *kill* starts a process that fits, updates or saves a model over an existing one. At a random
moment of this work, it sends SIGKILL, SIGTERM or SIGINT. Then the file must be, byte by byte, the
model before or the model of undisturbed work. After SIGTERM and SIGINT nothing else may be in its
folder. ``fit`` and ``update`` are those of the command line; ``save`` is a program that knows of no
signals, and saves over and over.

A *pair* is two ``likeminds update`` of the same model, started at the same time, each with labels
of its own. In the end the model must have all labels of all of them.

Figures are printed as JSON; the exit code is 1 if anything was lost or left behind.
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from likeminds import ThreeLevelRanker, load, make_schools, read_card, save
from likeminds.datasets.exports import write_simulation

MODEL = "crowd.likeminds"
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
LABELS = ("--annotations", "annotations.csv", "--features", "features.csv")
WORK = {
    "fit": ("fit", *LABELS, "--out", MODEL),
    "update": ("update", MODEL, *LABELS),
}
# All that takes long to import is there before the work begins, and the clock with it.
COMMAND = """
import sys
import likeminds.cli._labels, likeminds.rankers.registry, likeminds.storage.models
from likeminds.cli import main
print("ready", flush=True)
main(sys.argv[1:])
"""
SAVE = f"""
import sys
from likeminds import load, save
models = [load(path) for path in sys.argv[1:]]
print("ready", flush=True)
for number in range(20):
    save(models[number % 2], "{MODEL}", with_data=True)
"""


class Trial:
    """A folder with a model, and the work that goes on in it.

    Parameters
    ----------
    folder : Path
        Where the model and its data are; it is copied and left alone.
    kind : str
        "fit", "update" or "save".
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder, self.kind = folder, kind
        self.before = (folder / MODEL).read_bytes()
        with tempfile.TemporaryDirectory() as scratch:
            process = self._begin(self._copied(scratch))
            began = time.monotonic()
            process.communicate()
            if process.returncode != 0:
                raise RuntimeError(f"{kind} failed without being disturbed.")
            self.seconds = time.monotonic() - began
            self.names = {path.name for path in Path(scratch, "in").iterdir()}
            self.after = {Path(scratch, "in", MODEL).read_bytes(), *self._other_models()}

    def kill(self, how: signal.Signals, share: float) -> dict[str, Any]:
        """Kill it after a share of the time it takes, and say what was found then."""
        with tempfile.TemporaryDirectory() as scratch:
            folder = self._copied(scratch)
            process = self._begin(folder)
            time.sleep(share * self.seconds)
            done_before = process.poll() is not None
            process.send_signal(how)
            process.communicate()
            content = (folder / MODEL).read_bytes()
            left = sorted({path.name for path in folder.iterdir()} - self.names)
        state = "old" if content == self.before else "new" if content in self.after else "broken"
        missed = done_before or (process.returncode == 0)
        return {"state": state, "left": left, "in time": not missed, "code": process.returncode}

    def _copied(self, scratch: str) -> Path:
        return Path(shutil.copytree(self.folder, Path(scratch, "in")))

    def _begin(self, folder: Path) -> "subprocess.Popen[bytes]":
        code = SAVE if self.kind == "save" else COMMAND
        words = ("other.a", "other.b") if self.kind == "save" else WORK[self.kind]
        process = subprocess.Popen(
            [sys.executable, "-c", code, *words],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdout is not None
        process.stdout.readline()
        return process

    def _other_models(self) -> set[bytes]:
        if self.kind != "save":
            return set()
        return {(self.folder / name).read_bytes() for name in ("other.a", "other.b")}


def make_folder(folder: Path, n_users: int = 60) -> Path:
    """Write labels, features, and models that have learned from them."""
    crowd = make_schools(n_users, 20, 200, 20, 2, random_state=0)
    write_simulation(crowd, folder)
    for name, steps in ((MODEL, 1000), ("other.a", 1001), ("other.b", 1002)):
        ranker = ThreeLevelRanker(max_iter=steps).fit(crowd.annotations)
        save(ranker, folder / name, with_data=True)
    (folder / MODEL).unlink()
    fitted = [sys.executable, "-c", COMMAND, *WORK["fit"], "--loss", "auc"]
    subprocess.run(fitted, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder


def kills(folder: Path, n: int, rng: random.Random) -> dict[str, Any]:
    """Kill n processes, and count what was found."""
    trials = [Trial(folder, kind) for kind in ("fit", "update", "save")]
    found: Counter[str] = Counter()
    left: Counter[str] = Counter()
    wrong, too_late = [], 0
    while found.total() < n and too_late <= n:
        number = found.total()
        trial, how = trials[number % 3], SIGNALS[(number + number // 3) % 3]
        result = trial.kill(how, rng.random())
        if result["in time"]:
            found[f"{trial.kind}, {how.name}: {result['state']}"] += 1
            left[how.name] += bool(result["left"])
        else:
            too_late += 1
        if result["state"] == "broken" or (result["left"] and how != signal.SIGKILL):
            wrong.append({"work": trial.kind, "signal": how.name} | result)
    return {
        "kills": found.total(),
        "too late": too_late,
        "seconds of the work": {trial.kind: round(trial.seconds, 2) for trial in trials},
        "found": dict(sorted(found.items())),
        "left behind": dict(left),
        "wrong": wrong,
    }


def pairs(folder: Path, n: int) -> dict[str, Any]:
    """Let n pairs of updates meet, and count the labels."""
    expected = int(read_card(folder / MODEL)["labels"])
    header, *rows = (folder / "annotations.csv").read_text().splitlines()
    codes: Counter[int] = Counter()
    users = set()
    for number in range(n):
        both = []
        for one in "ab":
            person = f"new-{number}-{one}"
            lines = [f"{person},{row.split(',', 1)[1]}" for row in rows[number % 100 :][:7]]
            (folder / f"more-{one}.csv").write_text("\n".join([header, *lines]) + "\n")
            words = ["update", MODEL, "--annotations", f"more-{one}.csv"]
            call = [sys.executable, "-c", COMMAND, *words, *LABELS[2:]]
            both.append(subprocess.Popen(call, cwd=folder, stdout=subprocess.DEVNULL))
            users.add(person)
            expected += len(lines)
        codes.update(process.wait() for process in both)
    known = {str(person) for person in load(folder / MODEL).users_.tolist()}
    return {
        "pairs": n,
        "exit codes": {str(code): count for code, count in codes.items()},
        "labels": int(read_card(folder / MODEL)["labels"]),
        "labels expected": expected,
        "people lost": sorted(users - known),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both, and say whether anything was lost or left behind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    # What a shell starts in the background ignores Ctrl-C, and so would all that is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as scratch:
        folder = make_folder(Path(scratch, "crowd"))
        found = kills(folder, asked.kills, random.Random(asked.seed)) if asked.kills else {}
        found |= pairs(folder, asked.pairs) if asked.pairs else {}
    print(json.dumps(found, indent=1))
    lost = found.get("labels") != found.get("labels expected") or found.get("people lost")
    return 1 if lost or found.get("wrong") else 0


if __name__ == "__main__":
    raise SystemExit(main())
