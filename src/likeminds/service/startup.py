"""Start the service: in one process, or in several workers that share a port."""

from contextlib import closing
from functools import partial
from socket import socket

from likeminds._util.lazy_imports import require
from likeminds.service.metrics import start_logging
from likeminds.service.settings import Settings, is_loopback
from likeminds.service.store import open_store
from likeminds.service.workers import Workers


def require_keys(host: str, database: str, *, visitors: bool) -> None:
    """Refuse to serve other machines without keys."""
    if is_loopback(host) or visitors:
        return
    with closing(open_store(database)) as store:
        if store.api_keys():
            return
    raise ValueError(
        f"Without keys, the service answers to this machine alone, not on {host}: make one "
        "with likeminds keys MODEL --add read, or let visitors in with --visitors."
    )


def listen(host: str, port: int) -> socket:
    """Return a socket on an address; for port 0, the system chooses a free one."""
    uvicorn = require("uvicorn", "The service", "serve")
    listening: socket = uvicorn.Config("", host=host, port=port, log_level="warning").bind_socket()
    return listening


def run(settings: Settings, listening: socket, workers: int) -> None:
    """Serve on a socket until a signal ends it."""
    start_logging()
    if workers == 1:
        serve_on(settings, listening)
    else:
        Workers(partial(serve_on, settings), listening, workers).run()


def serve_on(settings: Settings, listening: socket) -> None:
    """Serve on a socket, in this process."""
    uvicorn = require("uvicorn", "The service", "serve")
    from likeminds.service.app import make_app  # noqa: PLC0415 - keys need no FastAPI

    start_logging()
    config = uvicorn.Config(
        make_app(settings),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
        limit_concurrency=1000,
    )
    uvicorn.Server(config).run([listening])
