"""A PostgreSQL server for the tests: thrown away afterwards, on loopback, in its own folder."""

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Who runs the server where the tests are run by root, whom it refuses.
_SERVANTS = ("postgres", "nobody")


class NoServerError(Exception):
    """Why there is no server."""


@contextmanager
def server() -> Iterator[str]:
    """Start a server and give its address, with a password that nobody else knows."""
    programs, servant = _programs(), _servant()
    folder = Path(tempfile.mkdtemp(prefix="likeminds-postgres-"))
    password, port = secrets.token_hex(8), _free_port()
    try:
        (folder / "password").write_text(password)
        if servant:
            for path in (folder, folder / "password"):
                shutil.chown(path, servant)
        data = folder / "data"
        secret = f"--pwfile={folder / 'password'}"
        _run(
            servant, programs / "initdb", "-D", data, "-U", "tester", "-A", "scram-sha-256", secret
        )
        options = f"-h 127.0.0.1 -p {port} -k {folder} -c fsync=off"
        log = folder / "log"
        _run(servant, programs / "pg_ctl", "-D", data, "-l", log, "-o", options, "-w", "start")
        try:
            yield f"postgresql://tester:{password}@127.0.0.1:{port}/postgres"
        finally:
            _run(servant, programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    on_path = shutil.which("pg_ctl")
    found = [Path(on_path).parent] if on_path else []
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in found:
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    raise NoServerError("there is no PostgreSQL server on this machine (.ci/postgres installs it)")


def _servant() -> str:
    """Return as whom to run the server: nobody else, unless we are root."""
    if os.name != "posix":
        raise NoServerError("the server is started on POSIX systems only")
    if os.geteuid() != 0:
        return ""
    import pwd

    known = {entry.pw_name for entry in pwd.getpwall()}
    for name in _SERVANTS:
        if name in known and shutil.which("setpriv"):
            return name
    raise NoServerError("root may not run PostgreSQL, and there is no other user or no setpriv")


def _run(servant: str, *command: object) -> None:
    words = [str(word) for word in command]
    if servant:
        groups = ["--clear-groups"]
        words = ["setpriv", "--reuid", servant, "--regid", _group(servant), *groups, *words]
    # Not captured by a pipe: the server would hold it open.
    with tempfile.TemporaryFile("w+") as said:
        done = subprocess.run(words, stdout=said, stderr=said, cwd="/", check=False)
        if done.returncode:
            said.seek(0)
            raise NoServerError(f"PostgreSQL did not start: {said.read().strip()[-500:]}")


def _group(servant: str) -> str:
    import grp
    import pwd

    return grp.getgrgid(pwd.getpwnam(servant).pw_gid).gr_name


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
