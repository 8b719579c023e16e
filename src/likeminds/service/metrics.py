"""Prometheus metrics, and a log with a line of JSON for each request."""

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

logger = logging.getLogger("likeminds.service")

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_MEANINGS = {
    "likeminds_requests_total": "Requests, by route, method and status.",
    "likeminds_request_seconds": "Seconds of requests, by route.",
    "likeminds_labels_total": "Requests that stored labels.",
    "likeminds_refreshes_total": "Refits with the stored labels, by result.",
    "likeminds_swaps_total": "Models swapped in.",
    "likeminds_swaps_refused_total": "Model files that could not be read.",
    "likeminds_database_up": "1 if the database answers, else 0.",
    "likeminds_model_users": "Users of the model.",
    "likeminds_model_items": "Items that are ranked.",
    "likeminds_model_read_seconds": "Seconds to read the model.",
    "likeminds_resident_bytes": "Memory of the worker.",
}


class Metrics:
    """Counters, gauges and a histogram of this worker, in their own registry."""

    def __init__(self) -> None:
        import prometheus_client  # noqa: PLC0415 - `likeminds keys` needs no extra

        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._client = prometheus_client
        self._registry = prometheus_client.CollectorRegistry()
        self._metrics: dict[str, Any] = {}
        self._lock = threading.Lock()

    def count(self, name: str, **labels: str) -> None:
        """Add one to a counter."""
        self._labelled(self._client.Counter, name, **labels).inc()

    def set(self, name: str, value: float) -> None:
        """Set a gauge."""
        self._labelled(self._client.Gauge, name).set(value)

    def time(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request and its duration."""
        self.count("likeminds_requests_total", route=route, method=method, status=str(status))
        kind = partial(self._client.Histogram, buckets=_BUCKETS)
        self._labelled(kind, "likeminds_request_seconds", route=route).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        self.set("likeminds_resident_bytes", resident())
        return self._client.generate_latest(self._registry)

    def _labelled(self, kind: Callable[..., object], name: str, **labels: str) -> Any:
        """Return a metric of this worker; the first use registers it."""
        with self._lock:
            if name not in self._metrics:
                names = [*labels, "worker"]
                self._metrics[name] = kind(name, _MEANINGS[name], names, registry=self._registry)
        return self._metrics[name].labels(**labels, worker=str(os.getpid()))


def resident() -> int:
    """Return the resident memory of this process in bytes; 0 if the system lacks it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


class JsonLines(logging.Formatter):
    """One line of JSON for each record: an event and its numbers, without users or secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "worker": os.getpid(),
        }
        line |= getattr(record, "facts", {})
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        return json.dumps(line)


def log(event: str, level: int = logging.INFO, **facts: object) -> None:
    """Write a line to the log."""
    logger.log(level, event, extra={"facts": facts})


def start_logging() -> None:
    """Send the service's log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
