"""A service in a process of its own, as it is run."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import asdict


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def start(settings, port, workers=1):
    """Start a service, and return its process once it answers."""
    script = (
        "import json, sys; from likeminds.service.startup import listen, run; "
        "from likeminds.service.settings import Settings; given = json.loads(sys.stdin.read()); "
        "listening = listen('127.0.0.1', int(sys.argv[1])); "
        "run(Settings(**given | {'origins': ()}), listening, int(sys.argv[2]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(port), str(workers)],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    process.stdin.write(json.dumps(asdict(settings)).encode())
    process.stdin.close()
    wait_for(f"http://127.0.0.1:{port}/ready", process)
    return process


def wait_for(address, process, seconds=90.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the service ended with code {process.returncode}")
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"{address} does not answer")


def stop(process, number=signal.SIGTERM):
    """End a service and its workers."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
    process.wait(30)


@contextmanager
def running(settings, workers=1):
    port = free_port()
    process = start(settings, port, workers)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        stop(process)


@contextmanager
def running_here(settings):
    """Run a service in a thread of this process, which costs no imports."""
    import uvicorn

    from likeminds.service.app import make_app

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(make_app(settings, watching=False), log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        while not server.started:  # before that, connections are refused
            assert thread.is_alive(), "the service has not started"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
