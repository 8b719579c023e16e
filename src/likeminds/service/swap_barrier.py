"""Workers of one machine, which swap to another model together."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from likeminds._util.atomic_files import write_whole


class SwapBarrier:
    """What each worker is ready to serve, as files in a folder that they share.

    Parameters
    ----------
    folder : Path
        Where; it is made.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._own = folder / f"{os.getpid()}-{secrets.token_hex(4)}"

    def announce(self, generation: str) -> None:
        """Say which generation of the model this worker is ready to serve."""
        with suppress(OSError):  # a full disk must not keep a worker from swapping
            write_whole(self._own, generation.encode())

    def leave(self) -> None:
        """Be no worker any more."""
        with suppress(OSError):
            self._own.unlink()

    def are_ready(self, generation: str) -> bool:
        """Say whether all other workers that are alive are ready to serve a generation."""
        for file in self._folder.glob("*-*"):
            if file == self._own:
                continue
            if not _is_alive(file.name.partition("-")[0]):
                with suppress(OSError):
                    file.unlink()
                continue
            with suppress(OSError):
                if file.read_text() != generation:
                    return False
        return True


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError):
        return False
    except OSError:  # of somebody else
        return True
    return True
