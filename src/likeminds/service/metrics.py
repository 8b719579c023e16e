"""What operators see: metrics as Prometheus reads them, and a line of JSON for each request."""

import json
import logging
import os
import sys
import threading
import time
from collections import defaultdict
from typing import Any

logger = logging.getLogger("likeminds.service")

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counters, gauges and one histogram, of this worker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, dict[Labels, float]] = defaultdict(lambda: defaultdict(float))
        self._gauges: dict[str, float] = {}
        self._times: dict[Labels, list[float]] = {}

    def count(self, name: str, **labels: str) -> None:
        """Add one to a counter."""
        with self._lock:
            self._counts[name][tuple(sorted(labels.items()))] += 1

    def set(self, name: str, value: float) -> None:
        """Set a gauge."""
        with self._lock:
            self._gauges[name] = value

    def time(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request, and how long it took."""
        self.count("likeminds_requests_total", route=route, method=method, status=str(status))
        with self._lock:
            times = self._times.setdefault((("route", route),), [0.0] * (len(_BUCKETS) + 2))
            for place, limit in enumerate(_BUCKETS):
                times[place] += seconds <= limit
            times[-2] += 1
            times[-1] += seconds

    def text(self) -> str:
        """Return everything in the text format of Prometheus."""
        with self._lock:
            lines = []
            gauges = self._gauges | {"likeminds_resident_bytes": float(resident())}
            for name, value in gauges.items():
                lines += [f"# TYPE {name} gauge", f"{name}{_shown(())} {value:.12g}"]
            for name, counts in self._counts.items():
                lines.append(f"# TYPE {name} counter")
                lines += [f"{name}{_shown(labels)} {value:g}" for labels, value in counts.items()]
            name = "likeminds_request_seconds"
            lines.append(f"# TYPE {name} histogram")
            for labels, times in self._times.items():
                limits = [*map(str, _BUCKETS), "+Inf"]
                lines += [
                    f"{name}_bucket{_shown((*labels, ('le', limit)))} {value:g}"
                    for limit, value in zip(limits, times, strict=False)
                ]
                lines.append(f"{name}_count{_shown(labels)} {times[-2]:g}")
                lines.append(f"{name}_sum{_shown(labels)} {times[-1]:g}")
        return "\n".join(lines) + "\n"


def _shown(labels: Labels) -> str:
    inner = ",".join(
        f'{name}="{_escaped(value)}"' for name, value in (*labels, ("worker", str(os.getpid())))
    )
    return f"{{{inner}}}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resident() -> int:
    """Return how many bytes of memory this process holds, as far as the system tells."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


class JsonLines(logging.Formatter):
    """One line of JSON for each record: what happened, and numbers; never who, never a secret."""

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


def log(event: str, level: int = logging.INFO, **facts: Any) -> None:
    """Write a line to the log."""
    logger.log(level, event, extra={"facts": facts})


def start_logging() -> None:
    """Send the service's log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
