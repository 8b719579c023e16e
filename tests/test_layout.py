"""The map in CONTRIBUTING.md shows the folders there are, and nothing lies beside them."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "likeminds"
TESTS = ROOT / "tests"
LINE = re.compile(r"^    (\w[\w/]*)/ +(\S.*)$", re.MULTILINE)


def folders_in(top):
    """Return the path of every folder below one, as written in the map."""
    found = (path for path in top.rglob("*") if path.is_dir())
    return {
        path.relative_to(top).as_posix()
        for path in found
        if not any(part.startswith((".", "__")) for part in path.relative_to(top).parts)
    }


def on_the_map():
    return [folder for folder, _ in LINE.findall((ROOT / "CONTRIBUTING.md").read_text())]


def contracts():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def layers():
    """Return the folders of each layer, the highest first."""
    contract = contracts()[0]
    assert contract["containers"] == ["likeminds"]
    assert contract["exhaustive"]
    return [re.findall(r"\w+", layer) for layer in contract["layers"]]


def test_every_folder_has_one_line_on_the_map():
    lines = on_the_map()
    assert sorted(lines) == sorted(folders_in(PACKAGE))


def test_the_map_is_in_the_order_of_the_layers():
    depth = {name: row for row, names in enumerate(layers()) for name in names}
    rows = [depth[folder.split("/")[0]] for folder in on_the_map()]
    assert rows == sorted(rows)


def test_there_are_at_most_eight_layers():
    assert len(layers()) <= 8


def test_folders_of_one_layer_have_an_order():
    ordered = re.findall(r"\w+", " ".join(contracts()[1]["layers"]))
    assert ordered == [name for names in layers() if len(names) > 1 for name in names]


def test_nothing_lies_loose_at_the_top():
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "_version.py"}


def test_every_folder_of_tests_mirrors_one():
    mirrored = folders_in(PACKAGE) | {"benchmarks", "golden", "tools", "data/files"}
    assert folders_in(TESTS) <= mirrored


def test_every_folder_with_code_explains_itself():
    for folder in folders_in(PACKAGE):
        modules = list((PACKAGE / folder).glob("*.py"))
        if modules:
            assert (PACKAGE / folder / "__init__.py").read_text().startswith('"""'), folder


def test_tests_that_the_pages_name_are_there():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    named = re.findall(r"tests/[\w/]+\.py", "".join(page.read_text() for page in pages))
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
