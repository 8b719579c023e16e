"""Results that are kept: what was computed once is not computed again."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likeminds._util.atomic_files import write_whole
from likeminds._version import __version__
from likeminds.comparing.runs import digest_of, work_on


@dataclass(frozen=True)
class Job:
    """A function of a module, and its arguments: plain numbers, texts and tuples of them.

    Its result can be written as JSON.
    """

    name: str
    function: Callable[..., Any]
    arguments: Mapping[str, Any]

    @property
    def fingerprint(self) -> str:
        """Hash of the function's name, its arguments and the version of the library."""
        where = f"{self.function.__module__}.{self.function.__qualname__}"
        return digest_of(where, dict(self.arguments), __version__)


@dataclass(frozen=True)
class ResultStore:
    """A folder of results, one small file each, and how the work is divided.

    Attributes
    ----------
    folder : Path
        Where the files are.
    n_jobs : int or None
        How many jobs run at the same time.
    finished : callable
        Called with the name of each job or fit that is done.
    """

    folder: Path
    n_jobs: int | None = None
    finished: Callable[[str], None] = lambda _: None

    @property
    def cells(self) -> Path:
        """Where `compare` keeps its fits."""
        return self.folder / "fits"

    @property
    def features(self) -> Path:
        """Where features of pictures are kept."""
        return self.folder / "features"

    def one(self, job: Job) -> Any:
        """Return the result of one job, which nothing else runs beside: for clocks."""
        return self._keep_all([job], n_jobs=None)[0]

    def all(self, jobs: Sequence[Job]) -> list[Any]:
        """Return the results of jobs, in their order."""
        return self._keep_all(jobs, self.n_jobs)

    def _keep_all(self, jobs: Sequence[Job], n_jobs: int | None) -> list[Any]:
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = [self.folder / f"{job.name}-{job.fingerprint[:16]}.json" for job in jobs]
        found = {number: _read(path) for number, path in enumerate(paths)}
        calls = [
            (_work, (number, jobs[number], paths[number]))
            for number, result in found.items()
            if result is None
        ]
        found |= dict(work_on(calls, n_jobs, lambda done: self.finished(jobs[done[0]].name)))
        return [result["result"] for _, result in sorted(found.items()) if result is not None]


def _work(number: int, job: Job, path: Path) -> tuple[int, dict[str, Any]]:
    result = json.dumps({"job": job.name, "result": job.function(**job.arguments)})
    write_whole(path, result.encode())
    return number, json.loads(result)  # as it will be when it is read


def _read(path: Path) -> dict[str, Any] | None:
    try:
        kept = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None  # never computed, or not written by us: computed again
    return kept if isinstance(kept, dict) and "result" in kept else None
