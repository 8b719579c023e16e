"""Draw the badges of the README from pyproject.toml, into docs/badges: python -m tools.badges.

They are files, so nothing is fetched and nothing is claimed that the project does not say.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
# The mean width of a letter of 11 pixels, and the room at both ends of a field.
_LETTER, _ROOM = 6.4, 10


def badges() -> dict[str, str]:
    """Return the drawing of each badge, by its name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    kinds = project["classifiers"]
    versions = [kind.rsplit(" ", 1)[1] for kind in kinds if re.search(r"Python :: \d\.\d+$", kind)]
    facts = {"licence": project["license"], "python": " | ".join(versions)}
    if "Typing :: Typed" in kinds:
        facts["types"] = "mypy strict"
    return {name: _drawing(name, value) for name, value in facts.items()}


def _drawing(name: str, value: str) -> str:
    left, right = (round(_LETTER * len(text) + 2 * _ROOM) for text in (name, value))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20"
role="img" aria-label="{name}: {value}">
<rect width="{left + right}" height="20" rx="3" fill="#0072B2"/>
<path d="M3 0h{left - 3}v20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="#444"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{left / 2}" y="14">{name}</text>
<text x="{left + right / 2}" y="14">{value}</text>
</g>
</svg>
"""


def main() -> None:
    """Write them."""
    for name, drawing in badges().items():
        path = ROOT / "docs" / "badges" / f"{name}.svg"
        path.parent.mkdir(exist_ok=True)
        path.write_text(drawing)
        print(path)


if __name__ == "__main__":
    main()
