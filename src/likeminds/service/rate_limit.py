"""How often a caller may call."""

import threading
import time
from collections import OrderedDict

# Callers that are remembered; the one that was quiet longest is forgotten first.
_REMEMBERED = 10_000


class RateLimit:
    """A bucket for each caller: so many requests at once, refilled at so many a second.

    Examples
    --------
    >>> limit = RateLimit(rate=1.0, burst=2.0)
    >>> [limit.wait_for("ann", now) for now in (0.0, 0.0, 0.0, 1.0)]
    [0.0, 0.0, 1.0, 0.0]
    """

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, max(burst, 1.0)
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_for(self, caller: str, now: float | None = None) -> float:
        """Return how many seconds the caller has to wait; zero counts the request."""
        if not self.rate:
            return 0.0
        now = time.monotonic() if now is None else now
        with self._lock:
            left, then = self._buckets.pop(caller, (self.burst, now))
            left = min(self.burst, left + (now - then) * self.rate)
            wait = 0.0 if left >= 1.0 else (1.0 - left) / self.rate
            self._buckets[caller] = (left if wait else left - 1.0, now)
            if len(self._buckets) > _REMEMBERED:
                self._buckets.popitem(last=False)
        return wait
