"""How a service is set up."""

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from likeminds._util.atomic_files import FileVersion
from likeminds.storage.folders import main_file


@dataclass(frozen=True)
class Settings:
    """All that a worker needs to know.

    Attributes
    ----------
    model : str
        The file of the model; it is only read.
    state : str
        The folder for what the service makes: its database, the refreshed model, its items.
    database : str
        The address of the database.
    pictures : str, optional
        The folder with pictures of the items.
    visitors : bool
        Whether visitors without a key may see the crowd and teach the model their own taste.
    refresh_every : float
        Seconds between two looks for labels to fold into the model; 0 never looks.
    rate, burst : float
        Requests a second that a caller may make to a worker, and at once; 0 is no limit.
    most_bytes, most_batch : int
        The largest body, and the largest batch.
    seconds : float
        How long a request may take.
    origins : tuple of str
        Other sites whose pages may call the service.
    title : str
        What the page is called.
    local : bool
        Whether it is bound to loopback: only then it answers without keys.
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
        """The file of the current model with all stored labels folded in."""
        return self.refreshed_from(FileVersion.of(main_file(Path(self.model)).stat()))

    def refreshed_from(self, version: FileVersion) -> Path:
        """Return the refreshed file of one version of the model; another version has another.

        So a refresh that began with a model that was replaced meanwhile is never served.
        """
        name = "-".join(f"{part:x}" for part in (version.modified, version.inode, version.size))
        return Path(self.state) / f"refreshed-{name}.likeminds"

    @property
    def items(self) -> Path:
        """The folder with items and texts that are not in the model."""
        return Path(self.state) / "items"


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine alone.

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
