"""The kinds of hostile input: command lines, model files, tables, and those of `areas`."""

import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from tools.fuzz import areas, corpus
from tools.fuzz.verdicts import Tally, run
from tools.fuzz.workshop import Workshop, all_scores, write_csv

import likeminds

Kind = Callable[[Workshop, Tally, Any], None]

_COMMANDS = {
    "rank": ["model.likeminds", "--top", "2"],
    "explain": ["model.likeminds"],
    "newcomer": ["model.likeminds", "--annotations", "few.csv", "--ask", "1"],
    "evaluate": ["model.likeminds", "--annotations", "labels.csv"],
    "update": [
        "model.likeminds",
        "--annotations",
        "labels.csv",
        "--out",
        "new.likeminds",
    ],
    "fit": ["--annotations", "labels.csv", "--features", "features.csv", "--out", "new.likeminds"],
    "data": ["electricity", "--out", "power"],
    "simulate": ["--out", "made", "--n-users", "6"],
    "doctor": [],
}
_OPTIONS = (
    *("--annotations", "--features", "--images", "--out", "--user"),
    *("--item-column", "--label-column", "--attribute", "--choice-set-column", "--weight-column"),
    *("--positive", "--threshold"),
    *(
        "--ranker",
        "--loss",
        "--holdout",
        "--folds",
        "--jobs",
        "--seed",
        "--top",
        "--ask",
        "--school",
    ),
    *("--like", "--not", "--title", "--schools", "--json", "--quiet", "--each-user", "--no-data"),
)
_FLAGS = {"--json", "--quiet", "--each-user", "--no-data"}
_FILES = ("labels.csv", "features.csv", "few.csv", "empty.csv", "latin.csv", "model.likeminds")
# Rankers other than these take their time, and numbers of jobs start processes.
_SLOW = {"--jobs", "--ranker"}


@st.composite
def command_lines(draw: Any) -> tuple[str, list[str], str]:
    """Draw a command with some of its options replaced, dropped or doubled."""
    verb = draw(st.sampled_from(sorted(_COMMANDS)))
    words = list(_COMMANDS[verb])
    values = st.one_of(corpus.words, st.sampled_from(_FILES))
    for _ in range(draw(st.integers(0, 3))):
        if words and draw(st.booleans()):
            words[draw(st.integers(0, len(words) - 1))] = draw(values)
        else:
            option = draw(st.sampled_from(_OPTIONS))
            value = draw(values)
            if option in _SLOW:
                value = draw(st.sampled_from(["", "0", "x", "Popularity", "\x1b[2J"]))
            words += [option] if option in _FLAGS else [option, value]
    return verb, words, draw(st.sampled_from(["", "person,item,label\np1,i1,1\n", "\x00", "a,b\n"]))


def try_command_line(workshop: Workshop, tally: Tally, drawn: tuple[str, list[str], str]) -> None:
    """Run a command; only `update` and `fit` may change the model, and only as a whole."""
    verb, words, stdin = drawn
    ended = run(workshop.folder, [verb, *words], stdin)
    now = (workshop.folder / "model.likeminds").read_bytes()
    more = ""
    if now != workshop.content and (ended.code or verb not in {"update", "fit"}):
        more = "the model was changed"
    workshop.mend()
    tally.add_command("command lines", [verb, *words], ended, more)


@st.composite
def damages(draw: Any) -> tuple[str, Any, Any]:
    """Draw what happens to a model file."""
    kind = draw(st.sampled_from(["flip", "cut", "insert", "length", "header", "value"]))
    share = draw(st.floats(0, 1, exclude_max=True))
    deep = "[" * 5000
    values = [None, 0, -1, 1e400, "x", [], {}, deep, 2**63, True, "../x", "\x1b[2J"]
    return kind, share, draw(st.sampled_from(values) if kind == "value" else st.integers(0, 255))


def _damaged(content: bytes, drawn: tuple[str, Any, Any]) -> bytes:
    kind, share, how = drawn
    place = int(share * len(content))
    (length,) = struct.unpack("<Q", content[:8])
    if kind == "flip":
        return content[:place] + bytes([content[place] ^ (1 << how % 8)]) + content[place + 1 :]
    if kind == "cut":
        return content[:place]
    if kind == "insert":
        return content[:place] + bytes([how]) * (1 + how) + content[place:]
    if kind == "length":
        return struct.pack("<Q", (length * how) if how % 2 else 2**63 + how) + content[8:]
    header = json.loads(content[8 : 8 + length])
    names = sorted(header)
    name = names[int(share * len(names))]
    if kind == "value":
        header[name] = how
    elif isinstance(header[name], dict):
        key = sorted(header[name])[how % len(header[name])]
        header[name][key] = str(header[name][key])[::-1]
    written = json.dumps(header).encode()
    return struct.pack("<Q", len(written)) + written + content[8 + length :]


def try_model(workshop: Workshop, tally: Tally, drawn: tuple[str, Any, Any]) -> None:
    """Load a damaged model: refused with a ValueError, or the same scores as before."""
    path = workshop.folder / "damaged.likeminds"
    path.write_bytes(_damaged(workshop.content, drawn))
    try:
        model = likeminds.load(path)
        same = np.array_equal(all_scores(model, workshop.items), workshop.scores)
    except (ValueError, OSError) as error:
        tally.add("model files", "refused" if str(error) else "wrong", f"{drawn}: no reason")
    except Exception as error:
        tally.add("model files", "wrong", f"{drawn}: {type(error).__name__}: {error}")
    else:
        tally.add("model files", "accepted" if same else "wrong", f"{drawn}: other scores")


@st.composite
def tables(draw: Any) -> tuple[list[str], list[str], list[list[Any]], Any]:
    """Draw people, names of features, rows of features and a label that is hostile."""
    users = draw(st.lists(corpus.names, min_size=2, max_size=4, unique=True))
    columns = draw(st.lists(corpus.names, min_size=2, max_size=3, unique=True))
    usual = [[draw(corpus.usual_numbers) for _ in columns] for _ in range(6)]
    for _ in range(draw(st.integers(0, 2))):
        usual[draw(st.integers(0, 5))][draw(st.integers(0, len(columns) - 1))] = draw(
            corpus.numbers
        )
    if draw(st.integers(0, 5)) == 5:
        usual = [[draw(corpus.numbers)] * len(columns)] * 6
    return users, columns, usual, draw(st.sampled_from([0, 1, 1, 1, "", "x", 7, float("nan")]))


def try_table(workshop: Workshop, tally: Tally, drawn: tuple[Any, Any, Any, Any]) -> None:
    """Fit a table and rank by it: as many people as there were, and scores that are numbers."""
    users, columns, rows, label = drawn
    said = [(p, f"i{i}", (k + i) % 2) for k, p in enumerate(users) for i in range(len(rows))]
    said[-1] = (*said[-1][:2], label)
    write_csv(workshop.folder / "hostile.csv", ["person", "item", "label"], said)
    features = [(f"i{i}", *row) for i, row in enumerate(rows)]
    write_csv(workshop.folder / "hostile-features.csv", ["item", *columns], features)
    words = ["fit", "--annotations", "hostile.csv", "--features", "hostile-features.csv"]
    ended = run(workshop.folder, [*words, "--out", "hostile.likeminds", "--jobs", "1"])
    more = ""
    if ended.code == 0:
        asked = ["rank", "hostile.likeminds", "--each-user", "--json"]
        ranked = run(workshop.folder, asked)
        more = _what_was_lost(users, ranked.out) if ranked.code == 0 else f"rank: {ranked.err}"
    tally.add_command("tables", [*words, repr(drawn)], ended, more)


def _what_was_lost(users: list[str], out: str) -> str:
    rankings = json.loads(out)["rankings"]
    if len({str(row["user"]) for row in rankings}) != len(users):
        return f"people became others: {users!r}"
    if any(row["score"] is None for row in rankings):
        return "scores that are not numbers"
    return ""


KINDS: dict[str, tuple[Any, Kind]] = {
    "command lines": (command_lines(), try_command_line),
    "model files": (damages(), try_model),
    "tables": (tables(), try_table),
    "folders": (areas.folders(), areas.try_folder),
    "connectors": (areas.exports(), areas.try_export),
    "pictures": (areas.pictures(), areas.try_picture),
    "reports": (areas.reports, areas.try_report),
    "raw HTTP": (areas.requests(), areas.try_request),
    "Dask": (areas.folders(), areas.try_partitions),
}
