"""The page: what is compared, tables, goals, and whether they are met."""

from pathlib import Path
from typing import Any

_VERDICT = {True: "met", False: "**missed**", None: "not judged"}


def write_page(results: dict[str, Any], path: Path, picture_problem: str | None) -> None:
    """Write the page from results alone: no number is typed by hand."""
    lines = ["# Benchmarks", "", *_introduction(results), ""]
    lines += [picture_problem or "![All benchmarks in one picture](benchmarks.png)", ""]
    lines += ["## Goals", "", *_goals_table(results), ""]
    for name, result in results.items():
        lines += _section(name, result)
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _introduction(results: dict[str, Any]) -> list[str]:
    lines = [
        "Written by `make bench`; one benchmark is run again with "
        "`python -m benchmarks --only NAME`. Times depend on the machine. Compare ratios of "
        "times that were measured in turns in one run: medians of several rounds.",
    ]
    if any(result["quick"] for result in results.values()):
        lines += ["", "**Sections marked quick have tiny sizes: their numbers mean nothing.**"]
    return lines


def _goals_table(results: dict[str, Any]) -> list[str]:
    rows = [
        [name, goal["what"], _wanted(goal), goal["measured"], _VERDICT[goal["met"]]]
        for name, result in results.items()
        for goal in result["goals"]
    ]
    return _table(["benchmark", "what", "goal", "measured", "verdict"], rows)


def _section(name: str, result: dict[str, Any]) -> list[str]:
    quick = " (quick)" if result["quick"] else ""
    lines = [f"## {result['title']} (`{name}`){quick}", "", result["compares"], ""]
    for table in result["tables"]:
        lines += [*_table(table["columns"], table["rows"]), ""]
    for goal in result["goals"]:
        lines.append(f"- Goal: {_sentence(goal)}")
    lines += [f"- {note}" for note in result["notes"]]
    lines.append(
        f"- {result['when']}, {result['cores']} cores, {result['blas_threads']} BLAS threads "
        f"(the library's solvers limit themselves to one), {_company(result.get('others_cores'))}, "
        f"Python {result['python']}, numpy {result['numpy']}: "
        f"{_number(result['seconds'])} s in all, peak memory {_number(result['peak_gib'])} GiB."
    )
    return [*lines, ""]


def _sentence(goal: dict[str, Any]) -> str:
    measured = "never reached" if goal["measured"] is None else _number(goal["measured"])
    return f"{goal['what']}: {_wanted(goal)}; measured {measured}: {_VERDICT[goal['met']]}."


def _company(cores: float | None) -> str:
    if cores is None:
        return "other programs not watched"
    return f"other programs on {max(cores, 0.0):.1f} cores meanwhile"


def _wanted(goal: dict[str, Any]) -> str:
    return f"{goal['direction']} {goal['bound']:g}"


def _table(columns: list[str], rows: list[list[Any]]) -> list[str]:
    lines = [columns, ["---"] * len(columns), *([_number(cell) for cell in row] for row in rows)]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _number(cell: Any) -> str:
    """Three digits are what a clock on a shared machine is good for."""
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int) or abs(cell) >= 1000:
        return f"{cell:,.0f}"
    return f"{cell:.3g}"
