"""Settings of a service."""

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from likeminds._util.atomic_files import FileVersion
from likeminds.storage.models import main_file


@dataclass(frozen=True)
class Settings:
    """The settings of a worker.

    The service only reads ``model``, and writes its database, refitted model and items to the
    folder ``state``. With ``visitors``, callers without a key see facts and label items.
    ``refresh_every`` is in seconds; 0 never refits. ``rate`` limits a caller's requests per second
    to a worker, ``burst`` those at once; a rate of 0 means no limit. ``local`` means that the
    service listens on loopback: only then does it accept requests without keys.
    """

    model: str
    state: str
    database: str
    pictures: str | None = None
    visitors: bool = False
    refresh_every: float = 60.0
    rate: float = 50.0
    burst: float = 200.0
    most_bytes: int = 1 << 20
    most_batch: int = 1000
    seconds: float = 10.0
    origins: tuple[str, ...] = ()
    title: str = "likeminds"
    local: bool = True

    @property
    def refreshed(self) -> Path:
        """The file of the current model, refitted with all stored labels."""
        # Each version of the model has its own file, so a refit of a replaced model is not served.
        version = FileVersion.of(main_file(Path(self.model)).stat())
        name = "-".join(f"{part:x}" for part in (version.modified, version.inode, version.size))
        return Path(self.state) / f"refreshed-{name}.likeminds"

    @property
    def items(self) -> Path:
        """The folder of items and texts that the model lacks."""
        return Path(self.state) / "items"


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address, which only this machine reaches.

    Examples
    --------
    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0")]
    [True, True, True, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
