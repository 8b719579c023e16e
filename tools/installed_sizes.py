"""Measure what likeminds and its extras take on disk: python -m tools.installed_sizes.

Adds up the installed files of each package with those of the packages that it needs, bytecode left
out. Writes docs/installed-sizes.json, in megabytes, which docs/install.md and the README quote
(``python -m tools.quoted_numbers``). Extras that are not installed are left out.
"""

import json
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PAGE = Path(__file__).parents[1] / "docs" / "installed-sizes.json"
LARGEST = 5


def needed(name: str, extra: str = "", known: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return the names of a package and of all packages that it needs, except known ones."""
    found = known | {canonicalize_name(name)}
    for requirement in _requirements(name, extra):
        found = needed(requirement.name, "", found) if _is_new(requirement, found) else found
        for more in requirement.extras:
            found = needed(requirement.name, more, found)
    return found


def _is_new(requirement: Requirement, found: frozenset[str]) -> bool:
    return canonicalize_name(requirement.name) not in found


def _requirements(name: str, extra: str) -> Iterator[Requirement]:
    for text in distribution(name).requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        of_extra = marker is not None and "extra" in str(marker)
        if of_extra == bool(extra) and (marker is None or marker.evaluate({"extra": extra})):
            yield requirement


def megabytes(name: str) -> float:
    """Return the size of a package's files on disk, bytecode left out."""
    found = (distribution(name).locate_file(file) for file in distribution(name).files or ())
    paths = {Path(str(path)) for path in found}
    return (
        sum(path.stat().st_size for path in paths if path.suffix != ".pyc" and path.is_file()) / 1e6
    )


def measure() -> dict[str, dict[str, float]]:
    """Return the sizes of the base installation, of its largest packages, and of the extras."""
    base = needed("likeminds")
    each = {name: megabytes(name) for name in base}
    largest = sorted(each, key=each.__getitem__, reverse=True)[:LARGEST]
    extras = {}
    for extra in distribution("likeminds").metadata.get_all("Provides-Extra") or ():
        try:
            more = needed("likeminds", extra, base) - base
        except PackageNotFoundError as error:
            print(f"{extra} is left out: {error.name} is not installed")
            continue
        extras[extra] = sum(map(megabytes, more))
    return {
        "base": {"all": sum(each.values())},
        "largest": {name: each[name] for name in largest},
        "extras": extras,
    }


if __name__ == "__main__":
    sizes = measure()
    PAGE.write_text(json.dumps(sizes, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(sizes, indent=1))
