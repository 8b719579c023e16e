"""What every request passes: limits, headers, its id, its time, its line in the log."""

import asyncio
import logging
import re
import secrets
import threading
import time
from collections import OrderedDict
from typing import Any

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from likeminds.service.app_state import AppState
from likeminds.service.errors import answer
from likeminds.service.keys import hashed
from likeminds.service.metrics import log, logger
from likeminds.service.settings import is_loopback

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
# Health checks come often, and from those who have no key.
_UNLIMITED = ("/health", "/ready")
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


class Middleware:
    """The outermost layer of the service."""

    def __init__(self, app: ASGIApp, holder: AppState) -> None:
        self.app, self.holder = app, holder
        self.settings, self.metrics = holder.settings, holder.metrics
        self.limit = RateLimit(self.settings.rate, self.settings.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        visit = _RequestRecord(scope, send)
        try:
            refused = self._refused(scope, visit)
            if refused is not None:
                await refused(scope, receive, visit.send)
            else:
                await self._in_time(scope, receive, visit)
        except Exception as error:
            # Its words may hold what people said: the log has the kind and the place only.
            where = _where(error)
            logger.error("failed", extra={"facts": {"id": visit.id, "where": where}}, exc_info=True)
            if not visit.status:
                said = answer(500, "This should not happen; the log says more.", visit.id)
                await said(scope, receive, visit.send)
        finally:
            self._note(scope, visit)

    def _refused(self, scope: Scope, visit: "_RequestRecord") -> Any:
        """Return the answer to a request that is not let in."""
        headers = visit.headers
        host = headers.get("host", "")
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        if self.holder.is_open and not is_loopback(name):
            # A page elsewhere may have made its own name lead to this machine.
            return answer(403, "Without keys, the service answers to this machine alone.", visit.id)
        if scope["method"] not in {"GET", "HEAD", "OPTIONS"} and self._is_foreign(headers, host):
            return answer(403, "Pages of other sites may not write here.", visit.id)
        size = headers.get("content-length", "0")
        if not size.isdigit() or int(size) > self.settings.most_bytes:
            return answer(
                413, f"A body may have {self.settings.most_bytes:,} bytes at most.", visit.id
            )
        if scope["path"] not in _UNLIMITED:
            wait = self.limit.wait_for(self._caller(scope, headers))
            if wait:
                return answer(
                    429, "Too many requests: wait a little.", visit.id, retry_after=int(wait) + 1
                )
        return None

    def _caller(self, scope: Scope, headers: dict[str, str]) -> str:
        """Return whose limit counts: that of a valid key, else that of the address."""
        key = hashed(headers.get("authorization", "").removeprefix("Bearer ").strip())
        if key in self.holder.keys:
            return key
        client = scope.get("client")
        return str(client[0]) if client else "somebody"

    def _is_foreign(self, headers: dict[str, str], host: str) -> bool:
        origin = headers.get("origin")
        if origin is None or origin in self.settings.origins:
            return False
        return origin.partition("://")[2] != host

    async def _in_time(self, scope: Scope, receive: Receive, visit: "_RequestRecord") -> None:
        """Run the request; answer in time even if what it started takes longer."""
        limited = _Limited(receive, self.settings.most_bytes)
        work = asyncio.ensure_future(self.app(scope, limited, visit.send))
        done, _ = await asyncio.wait({work}, timeout=self.settings.seconds)
        if done:
            await work
            return
        if not visit.status:
            said = answer(
                504, f"This took longer than {self.settings.seconds:g} seconds.", visit.id
            )
            await said(scope, receive, visit.send)
        visit.is_over = True
        work.add_done_callback(lambda task: task.cancelled() or task.exception())

    def _note(self, scope: Scope, visit: "_RequestRecord") -> None:
        seconds = time.perf_counter() - visit.started
        route = getattr(scope.get("route"), "path_format", None) or (
            "page" if visit.status < 400 else "none"
        )
        self.metrics.time(route, scope["method"], visit.status, seconds)
        level = logging.INFO if visit.status < 500 else logging.ERROR
        log(
            "request",
            level,
            id=visit.id,
            method=scope["method"],
            route=route,
            status=visit.status,
            ms=round(1000 * seconds, 2),
        )


class _RequestRecord:
    """One request: its id, and what was answered."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.started = time.perf_counter()
        self.headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        given = self.headers.get("x-request-id", "")
        self.id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        scope["request_id"] = self.id
        self.status = 0
        self.is_over = False
        self._send = send
        self._is_api = scope["path"].startswith("/v1/")

    async def send(self, message: Message) -> None:
        """Send a part of the answer, with the headers that all answers have."""
        if self.is_over:
            return
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message["headers"], *_HEADERS, (b"x-request-id", self.id.encode())]
            if self._is_api and not any(name == b"cache-control" for name, _ in headers):
                headers.append((b"cache-control", b"no-store"))
            message = {**message, "headers": headers}
        await self._send(message)


class _Limited:
    """A body that may not be longer than it said, or than is allowed."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive, self._left = receive, most

    async def __call__(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise HTTPException(413, "The body is longer than it may be.")
        return message


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}"
