"""Compare fits with the frozen ones, and print what moved: python -m tools.golden [NAME ...].

With ``--write``, freeze them anew; only crowds that moved are written, unless they are named. The
exit status is 1 if a crowd moved and nothing was written.
"""

import argparse
import sys
import time
from pathlib import Path

from tools.golden.crowds import CROWDS, quantities
from tools.golden.frozen import FOLDER, moves, read, write


def main(arguments: list[str] | None = None) -> int:
    """Fit crowds, print what moved, and freeze them if asked to."""
    parser = argparse.ArgumentParser(prog="python -m tools.golden", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="just these crowds")
    parser.add_argument("--write", action="store_true", help="freeze what moved, or what is named")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the files are")
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.names if name not in CROWDS]
    if unknown:
        parser.error(f"there is no crowd {', '.join(unknown)}; choose from {', '.join(CROWDS)}")
    moved = 0
    for name in asked.names or CROWDS:
        begun = time.process_time()
        found = quantities(name)
        seconds = time.process_time() - begun
        is_there = (asked.folder / f"{name}.json").is_file()
        before, allowed = read(name, asked.folder) if is_there else ({}, 0.0)
        apart = moves(before, found, allowed)
        moved += bool(apart)
        told = f"moved, {len(apart)} of {len(found)} quantities" if apart else "as it was"
        told = told if is_there else "new"
        print(f"{name}: {told} (to {allowed:g}; {seconds:.1f} processor seconds)")
        for move in apart if is_there else []:
            print(f"    {move.text}")
        if asked.write and (apart or asked.names):
            write(name, found, asked.folder)
            print("    written")
    return 1 if moved and not asked.write else 0


if __name__ == "__main__":
    sys.exit(main())
