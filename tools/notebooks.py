"""Make notebooks of scripts and run them: python -m tools.notebooks SCRIPTS FOLDER.

Scripts are in the percent format (`# %%` begins a cell, `# %% [markdown]` one of text). A cell that
fails ends the run; what is written has its results inside.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import jupytext
from nbclient import NotebookClient
from traitlets.config import Config


def make(script: Path, folder: Path, seconds: int = 120) -> Path:
    """Run a script as a notebook, and return where it was written."""
    notebook = jupytext.read(script, fmt="py:percent")
    notebook.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    with TemporaryDirectory() as sockets:  # files instead of ports: no other user can connect
        sockets_only = {"transport": "ipc", "ip": str(Path(sockets) / "kernel")}
        client = NotebookClient(
            notebook,
            timeout=seconds,
            resources={"metadata": {"path": folder}},
            config=Config({"KernelManager": sockets_only}),
        )
        client.execute()
    target = folder / f"{script.stem}.ipynb"
    jupytext.write(notebook, target)
    return target


def main(scripts: Path, folder: Path) -> int:
    """Make a notebook of every script."""
    folder.mkdir(parents=True, exist_ok=True)
    found = sorted(scripts.glob("*.py"))
    for script in found:
        print(make(script, folder))
    return 0 if found else 1


if __name__ == "__main__":
    raise SystemExit(main(*map(Path, sys.argv[1:3])))
