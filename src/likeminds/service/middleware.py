"""The outermost layer: rate limits, security headers, time limits, and the request log."""

import asyncio
import logging
import re
import secrets
import threading
import time
from collections import OrderedDict

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from likeminds.service.app_state import AppState
from likeminds.service.errors import answer
from likeminds.service.metrics import log, logger
from likeminds.service.settings import is_loopback
from likeminds.service.store import hashed

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
# Health checks are frequent and have no key.
_UNLIMITED = ("/health", "/ready")
# The number of buckets kept in memory; the least recently used one is dropped first.
_REMEMBERED = 10_000


class RateLimit:
    """A token bucket for each caller: ``burst`` requests at once, refilled at ``rate`` a second.

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
        """Return the seconds that the caller must wait; if zero, count the request."""
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

    def __init__(self, app: ASGIApp, state: AppState) -> None:
        self.app, self.state, self.settings = app, state, state.settings
        self.limit = RateLimit(self.settings.rate, self.settings.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        record = _RequestRecord(scope, send)
        try:
            refused = self._refused(scope, record)
            if refused is not None:
                await refused(scope, receive, record.send)
            else:
                await self._in_time(scope, receive, record)
        except Exception as error:
            # Messages may contain users' data: log the class and the line only.
            facts = {"id": record.id, "where": _where(error)}
            logger.error("failed", extra={"facts": facts}, exc_info=True)
            if not record.status:
                response = answer(500, "Internal error: see the log of the service.", record.id)
                await response(scope, receive, record.send)
        finally:
            self._log(scope, record)

    def _refused(self, scope: Scope, record: "_RequestRecord") -> JSONResponse | None:
        """Return the error that answers a refused request; None for an admitted one."""
        headers, settings = record.headers, self.settings
        host = headers.get("host", "")
        name = host if host.endswith("]") else host.rsplit(":", 1)[0]
        if self.state.is_open and not is_loopback(name):
            # Another site's host name may resolve to this machine (DNS rebinding).
            detail = "Without API keys, the service accepts local requests only."
            return answer(403, detail, record.id)
        origin = headers.get("origin")
        writes = scope["method"] not in {"GET", "HEAD", "OPTIONS"}
        if writes and origin not in {None, *settings.origins, f"http://{host}", f"https://{host}"}:
            return answer(403, "Pages of other sites may not write to this service.", record.id)
        size = headers.get("content-length", "0")
        if not size.isdigit() or int(size) > settings.most_bytes:
            return answer(413, f"A body may have at most {settings.most_bytes:,} bytes.", record.id)
        is_limited = scope["path"] not in _UNLIMITED
        if is_limited and (wait := self.limit.wait_for(self._caller(scope, headers))):
            detail = "Too many requests: wait, then try again."
            return answer(429, detail, record.id, retry_after=int(wait) + 1)
        return None

    def _caller(self, scope: Scope, headers: Headers) -> str:
        """Return the caller for rate limits: a valid key, else the address."""
        key = hashed(headers.get("authorization", "").removeprefix("Bearer ").strip())
        if key in self.state.keys:
            return key
        client = scope.get("client")
        return str(client[0]) if client else "unknown"

    async def _in_time(self, scope: Scope, receive: Receive, record: "_RequestRecord") -> None:
        """Run the request; after the time limit, answer with an error."""
        left = self.settings.most_bytes

        async def limited() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                most = self.settings.most_bytes
                raise HTTPException(413, f"A body may have at most {most:,} bytes.")
            return message

        work = asyncio.ensure_future(self.app(scope, limited, record.send))
        done, _ = await asyncio.wait({work}, timeout=self.settings.seconds)
        if done:
            await work
            return
        if not record.status:
            detail = f"The request took longer than {self.settings.seconds:g} seconds."
            await answer(504, detail, record.id)(scope, receive, record.send)
        record.is_over = True
        work.add_done_callback(lambda task: task.cancelled() or task.exception())

    def _log(self, scope: Scope, record: "_RequestRecord") -> None:
        seconds, status = time.perf_counter() - record.started, record.status
        method = scope["method"]
        route = getattr(scope.get("route"), "path_format", None)
        route = route or ("page" if status < 400 else "none")
        self.state.metrics.time(route, method, status, seconds)
        level = logging.INFO if status < 500 else logging.ERROR
        facts = {"method": method, "route": route, "status": status, "ms": round(1000 * seconds, 2)}
        log("request", level, id=record.id, **facts)


class _RequestRecord:
    """One request: its id, and the status of its answer."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.started = time.perf_counter()
        self.headers = Headers(scope=scope)
        given = self.headers.get("x-request-id", "")
        self.id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        scope["request_id"] = self.id
        self.status = 0
        self.is_over = False
        self._send = send
        self._is_api = scope["path"].startswith("/v1/")

    async def send(self, message: Message) -> None:
        """Send a part of the answer, with the headers of all answers."""
        if self.is_over:
            return
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message["headers"], *_HEADERS, (b"x-request-id", self.id.encode())]
            if self._is_api and not any(name == b"cache-control" for name, _ in headers):
                headers.append((b"cache-control", b"no-store"))
            message = {**message, "headers": headers}
        await self._send(message)


def _where(error: BaseException) -> str:
    """Return the module and line that raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}"
