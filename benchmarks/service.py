"""The service: against the bare product, against a bare endpoint, and how workers share memory."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.results import Result, at_most
from likeminds import Annotations, HierarchicalRanker, save
from likeminds.paper.experiments.timing import blas_threads, in_turns, seconds
from likeminds.rankers.ranking import best_of
from likeminds.service.catalogue import ItemCatalogue
from likeminds.service.scoring import AttributeScorer
from likeminds.service.settings import Settings
from likeminds.service.store import open_store

N_FEATURES = 64
_CLIENTS = 2


def run(quick: bool) -> Result:
    """Measure rankings in this process, then services in processes of their own."""
    n_items, n_few, n_shared = (5_000, 500, 2_000) if quick else (1_000_000, 10_000, 400_000)
    top = _top_ten(n_items, 3 if quick else 21)
    newcomer, busy, disk = _newcomer(n_few, 5 if quick else 60)
    with tempfile.TemporaryDirectory() as folder:
        load, shared = _services(Path(folder), n_few, n_shared, 30 if quick else 1500)
    ratio = top["service"] / top["numpy"]
    return Result(
        title="The service",
        compares=f"Top 10 of {n_items:,} items x {N_FEATURES} features, in single precision, "
        f"against `X @ w` and `argpartition` with as many threads ({blas_threads()}); a newcomer's "
        f"label, stored on disk, to the ranking of {n_few:,} items; requests over loopback against "
        "a FastAPI endpoint that returns a constant of the same size; two workers on one model of "
        f"{n_shared:,} items. The clients run on the same cores.",
        tables=[
            {
                "columns": ["what", "ms, median"],
                "rows": [
                    ["NumPy: product and partition", 1e3 * top["numpy"]],
                    ["top 10 as the service finds them", 1e3 * top["service"]],
                    ["a newcomer's label to the new ranking", 1e3 * newcomer],
                    ["of that, storing the label on the disk", 1e3 * disk],
                    ["time of the processor", 1e3 * busy],
                ],
            },
            load,
            shared,
        ],
        goals=[
            at_most("top 10, times NumPy", 1.5, ratio, judge=not quick),
            at_most("newcomer's label to ranking, ms", 10, 1e3 * newcomer, judge=not quick),
        ],
        notes=[],
        series={},
    )


def _scorer(n_items: int) -> AttributeScorer:
    """Return a scorer of many items, by a ranker taught by a small crowd."""
    rng = np.random.default_rng(0)
    ids = np.array([f"item-{n:07d}" for n in range(n_items)], dtype=object)
    features = rng.standard_normal((n_items, N_FEATURES), dtype=np.float32)
    return AttributeScorer("", _ranker(ids, features), ItemCatalogue(ids, features))


def _ranker(ids: Any, features: Any) -> HierarchicalRanker:
    rng = np.random.default_rng(1)
    n_users, each = 40, 30
    items = rng.integers(0, min(len(ids), 400), n_users * each)
    users = np.repeat([f"person-{n:02d}" for n in range(n_users)], each)
    weights = rng.standard_normal(N_FEATURES) / 8
    labels = features[items] @ weights + rng.logistic(size=len(items)) > 0
    said = Annotations(users, ids[items], labels, features, item_ids=ids, features_per="item")
    return HierarchicalRanker(n_groups=2, item_effects=False).fit(said)


def _top_ten(n_items: int, repeats: int) -> dict[str, float]:
    scorer = _scorer(n_items)
    profile = scorer.known(3)
    table, weights = scorer.catalogue.features, profile.weights.astype(np.float32)

    def bare() -> Any:
        scores = table @ weights
        found = np.argpartition(-scores, 9)[:10]
        return found[np.argsort(-scores[found])]

    def served() -> Any:
        return best_of(scorer.scores(profile), 10)

    assert bare().tolist() == served().tolist()
    return in_turns({"numpy": bare, "service": served}, repeats)


def _newcomer(n_items: int, repeats: int) -> tuple[float, float, float]:
    """Return the median times from a label to the ranking: all, the processor's, the disk's."""
    scorer = _scorer(n_items)
    scorer.warm()
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{folder}/service.db")
        store.add_user("zoe", "")
        times, busy, disk = [], [], []
        for turn in range(repeats):
            label = [("", scorer.catalogue.names[turn], turn % 2 == 0)]

            def answer(label: Any = label) -> None:
                disk.append(seconds(lambda: store.put_labels("zoe", label)))
                said = {one.item: one.label for one in store.labels_of("zoe")}
                profile = scorer.new_user(said)
                shown = best_of(scorer.scores(profile), 10)
                scorer.errors(profile, shown)

            start = time.process_time()
            times.append(seconds(answer))
            busy.append(time.process_time() - start)
        store.close()
    return median(times), median(busy), median(disk)


def _services(
    folder: Path, n_few: int, n_shared: int, n_requests: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    rows = []
    settings = _settings(folder / "few", n_few)
    body = {"user": "person-03", "limit": 10, "intervals": "scores"}
    with _serving(settings, 1) as (port, process):
        size = len(_ask(_connect(port), "POST", "/v1/rank", body))
        rows.append(["rank 10, known person", *_load(port, process, "/v1/rank", body, n_requests)])
        view = "/v1/users/zoe/view"
        _ask(_connect(port), "POST", "/v1/newcomers", {"user": "zoe"})
        labels = {"labels": [{"item": f"item-{n:07d}", "label": n % 2 == 0} for n in range(8)]}
        path = "/v1/users/zoe/labels"
        rows.append(["store 8 labels", *_load(port, process, path, labels, n_requests // 3)])
        rows.append(["ranking, profile, next", *_load(port, process, view, None, n_requests // 3)])
    with _bare(size) as (port, process):
        bare = _load(port, process, "/", None, n_requests)
    table = [["bare FastAPI endpoint", *bare, 1.0, 1.0]]
    table += [[*row, row[1] / bare[0], bare[2] / row[3]] for row in rows]
    columns = ["request", "p50, ms", "p99, ms", "requests/s/core", "p50 ratio", "cost ratio"]
    shared = _shared(_settings(folder / "shared", n_shared))
    return {"columns": columns, "rows": table}, shared


def _settings(folder: Path, n_items: int) -> Settings:
    folder.mkdir()
    scorer = _scorer(n_items)
    path = save(scorer.ranker, folder / "model.likeminds", with_data=True)
    state = folder / "state"
    state.mkdir()
    database = f"sqlite:///{state}/service.db"
    return Settings(str(path), str(state), database, refresh_every=0.0, rate=0.0, seconds=60.0)


_SERVE = (
    "import json, sys; from likeminds.service.startup import listen, run; "
    "from likeminds.service.settings import Settings; given = json.loads(sys.stdin.read()); "
    "listening = listen('127.0.0.1', int(sys.argv[1])); "
    "run(Settings(**given | {'origins': ()}), listening, int(sys.argv[2]))"
)
_CONSTANT = (
    "import sys, uvicorn; from fastapi import FastAPI; app = FastAPI(); "
    "text = 'x' * int(sys.stdin.read()); app.get('/')(lambda: text); "
    "uvicorn.run(app, port=int(sys.argv[1]), log_level='warning', access_log=False)"
)


@contextmanager
def _serving(settings: Settings, workers: int) -> Iterator[tuple[int, int]]:
    with _process(_SERVE, json.dumps(asdict(settings)), "/ready", workers) as found:
        yield found


@contextmanager
def _bare(size: int) -> Iterator[tuple[int, int]]:
    with _process(_CONSTANT, str(size), "/", 1) as found:
        yield found


@contextmanager
def _process(script: str, given: str, ready: str, workers: int) -> Iterator[tuple[int, int]]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(port), str(workers)],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(given.encode())
    process.stdin.close()
    try:
        _wait(port, ready, process)
        yield port, process.pid
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait(port: int, path: str, process: Any) -> None:
    while process.poll() is None:
        with suppress(OSError, RuntimeError):
            _ask(_connect(port), "GET", path, None)
            return
        time.sleep(0.1)
    raise RuntimeError(f"the service ended with code {process.returncode}")


def _connect(port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port, timeout=60)


def _ask(connection: http.client.HTTPConnection, method: str, path: str, body: Any) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    connection.request(method, path, data, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    if answer.status >= 400:
        raise RuntimeError(f"{path}: {answer.status} {content[:200]!r}")
    return content


def _load(port: int, process: int, path: str, body: Any, n_requests: int) -> list[float]:
    """Return p50 and p99 in ms, and requests a second for each core the server used."""
    times: list[float] = []

    def visit() -> None:
        connection = _connect(port)
        method = "GET" if body is None else "POST"
        for _ in range(max(n_requests // _CLIENTS, 5)):
            start = time.perf_counter()
            _ask(connection, method, path, body)
            times.append(time.perf_counter() - start)

    before = _cpu(process)
    visitors = [threading.Thread(target=visit) for _ in range(_CLIENTS)]
    for one in visitors:
        one.start()
    for one in visitors:
        one.join()
    used = max(_cpu(process) - before, 1e-2)
    low, high = np.quantile(times, [0.5, 0.99])
    return [1e3 * float(low), 1e3 * float(high), len(times) / used]


def _cpu(process: int) -> float:
    """Return the seconds of processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _shared(settings: Settings) -> dict[str, Any]:
    """Return the memory of two workers on one mapped model, and how soon they agree on another."""
    size = Path(settings.model).stat().st_size
    with _serving(settings, 2) as (port, _):
        workers: set[int] = set()
        while len(workers) < 2:
            workers.add(_worker(port))
        for _ in range(6):
            _ask(_connect(port), "POST", "/v1/rank", {"user": "person-03", "limit": 10})
        rows = [
            [f"worker {n}", *(_memory(worker, name) for name in ("Rss", "Pss", "Private_Dirty"))]
            for n, worker in enumerate(sorted(workers), start=1)
        ]
    rows.append(["the model's file", size / 1e6, size / 1e6, 0.0])
    columns = ["memory", "resident, MB", "its share (PSS), MB", "its own, MB"]
    return {"columns": columns, "rows": rows}


def _worker(port: int) -> int:
    connection = _connect(port)
    text = _ask(connection, "GET", "/metrics", None).decode()
    connection.close()
    return int(text.partition('worker="')[2].partition('"')[0])


def _memory(process: int, name: str) -> float:
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1e3
    return 0.0
