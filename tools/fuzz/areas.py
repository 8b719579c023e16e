"""More kinds of hostile input: folders, exports, pictures, reports, raw HTTP, partitions."""

import json
import os
import re
import shutil
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from pyarrow import parquet
from tools.fuzz import corpus
from tools.fuzz.verdicts import Tally, run
from tools.fuzz.workshop import SECONDS, Workshop

import likeminds
from likeminds.data.connectors import read_export
from likeminds.features import read_image

# What a program may raise about an input, always with a reason.
_REFUSALS = (ValueError, OSError)


def judge(tally: Tally, kind: str, drawn: Any, work: Callable[[], str]) -> None:
    """Count an input: refused with a reason, or accepted unless ``work`` returns what is wrong."""
    try:
        wrong = work()
    except _REFUSALS as error:
        tally.add(kind, "refused" if str(error) else "wrong", f"{drawn}: no reason")
    except Exception as error:
        tally.add(kind, "wrong", f"{drawn}: {type(error).__name__}: {error}")
    else:
        tally.add(kind, "wrong" if wrong else "accepted", f"{drawn}: {wrong}")


# A part of a folder is the first of these, or it differs from the others in one way.
_ODDITIES = (
    *("none", "none", "text ids", "categories", "a gap", "NaN", "other columns", "more columns"),
    *("no rows", "cut", "empty file", "text file", "a folder", "a pipe", "a link to nowhere"),
    *("an odd id", "an odd number", "an odd label", "lists"),
)


@st.composite
def folders(draw: Any) -> tuple[str, Any, Any, int]:
    """Draw what is wrong with one part of a folder of labels."""
    oddity = draw(st.sampled_from(_ODDITIES))
    return oddity, draw(corpus.names), draw(corpus.numbers), draw(st.integers(1, 3))


def _table(rows: slice) -> pa.Table:
    n = np.arange(60)[rows]
    return pa.table(
        {"user": n % 5, "item": n % 7, "label": (n // 5 + n) % 2, "x": n % 7 / 7, "y": (n % 3) / 3}
    )


def _with(table: pa.Table, name: str, values: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def _odd_table(drawn: tuple[str, Any, Any, int]) -> pa.Table:
    oddity, name, number, _ = drawn
    table = _table(slice(30, 60))
    user, x = table["user"].to_pylist(), table["x"].to_pylist()
    changed: dict[str, Callable[[], pa.Table]] = {
        "text ids": lambda: _with(table, "user", list(map(str, user))),
        "categories": lambda: _with(table, "user", pa.array(user).dictionary_encode()),
        "a gap": lambda: _with(table, "user", [None, *user[1:]]),
        "NaN": lambda: _with(table, "x", [float("nan"), *x[1:]]),
        "other columns": lambda: table.drop_columns(["x"]),
        "more columns": lambda: table.append_column("z", table["x"]),
        "no rows": lambda: table.slice(0, 0),
        "an odd id": lambda: _with(table, "user", [name, *map(str, user[1:])]),
        "an odd number": lambda: _with(table, "x", [float(number), *x[1:]]),
        "an odd label": lambda: _with(table, "label", [7, *table["label"].to_pylist()[1:]]),
        "lists": lambda: _with(table, "x", [[value] * 2 for value in x]),
    }
    return changed.get(oddity, lambda: table)()


def write_folder(folder: Path, drawn: tuple[str, Any, Any, int]) -> None:
    """Write a folder of labels; of odd ids, all parts have the type."""
    oddity, *_, place = drawn
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    first = _table(slice(0, 30))
    if oddity == "an odd id":
        first = _with(first, "user", list(map(str, first["user"].to_pylist())))
    parquet.write_table(first, folder / "part-1.parquet")
    # Before, after, or beside the part that is as it should be.
    odd = folder / ("part-0.parquet", "part-2.parquet", "deeper.parquet")[place - 1]
    if oddity == "a folder":
        odd.mkdir()
    elif oddity == "a pipe":
        os.mkfifo(odd)
    elif oddity == "a link to nowhere":
        odd.symlink_to("nowhere.parquet")
    elif oddity in {"empty file", "text file"}:
        odd.write_text("" if oddity == "empty file" else "user,item,label\n1,2,1\n")
    else:
        parquet.write_table(_odd_table(drawn), odd)
        if oddity == "cut":
            odd.write_bytes(odd.read_bytes()[:-9])


def _same_labels(found: Any, folder: Path) -> str:
    """Hold labels against those that are read in memory."""
    known = likeminds.Annotations.from_frame(
        pa.concat_tables(
            [parquet.ParquetFile(file).read() for file in sorted(folder.glob("*.parquet"))]
        ),
        label="label",
    )
    same = (
        len(found) == len(known)
        and [*map(str, found.user_ids)] == [*map(str, known.user_ids)]
        and int(found.labels.sum()) == int(known.labels.sum())
    )
    return "" if same else "other labels than in memory"


def try_folder(workshop: Workshop, tally: Tally, drawn: tuple[str, Any, Any, int]) -> None:
    """Read a folder of labels from disk: refused, or the labels that are read in memory."""
    folder = workshop.folder / "parts"
    write_folder(folder, drawn)

    def work() -> str:
        found = likeminds.AnnotationFolder(folder, memory_limit="64MiB", label="label")
        if sum(len(piece) for piece in found.batches()) != len(found):
            return "pieces that are not the whole"
        return _same_labels(found.annotations(), _files_alone(folder))

    judge(tally, "folders", drawn, work)


def _files_alone(folder: Path) -> Path:
    for path in folder.iterdir():
        if path.is_dir():
            path.rmdir()
    return folder


def try_partitions(workshop: Workshop, tally: Tally, drawn: tuple[str, Any, Any, int]) -> None:
    """Read a folder of labels on a Dask cluster: refused, or as many labels as there are."""
    from likeminds.cluster import Shards  # noqa: PLC0415 - Dask is an extra

    folder = workshop.folder / "partitions"
    write_folder(folder, drawn)

    def work() -> str:
        shards = Shards.from_folder(folder, workshop.cluster, label="label")
        n_labels = shards.counts.n_labels
        shards.release()
        files = sorted(_files_alone(folder).glob("*.parquet"))
        n_rows = sum(parquet.ParquetFile(file).metadata.num_rows for file in files)
        return "" if n_labels == n_rows else f"{n_labels} labels of {n_rows}"

    judge(tally, "Dask", drawn, work)


_EXPORTS: dict[str, Any] = {
    "label-studio": [
        {
            "id": 1,
            "data": {"text": "Oh."},
            "annotations": [
                {
                    "completed_by": 1,
                    "result": [
                        {"from_name": "mood", "type": "choices", "value": {"choices": ["glad"]}},
                        {"from_name": "best", "type": "pairwise", "value": {"selected": "left"}},
                    ],
                }
            ],
        }
    ],
    "argilla": [
        {
            "id": "a",
            "fields": {"text": "Oh."},
            "responses": {"mood": [{"user_id": "u", "value": "glad", "status": "submitted"}]},
        }
    ],
    "prodigy": [{"text": "Oh.", "answer": "accept", "_annotator_id": "u", "_input_hash": 1}],
    "lewidi": {"1": {"text": "Oh.", "annotators": "Ann1,Ann2", "annotations": "0,1"}},
    "preferences": [{"prompt": "Say.", "chosen": "Oh.", "rejected": "Ah.", "user": 1}],
    "crowd-kit": "task,worker,label\n1,u,glad\n2,u,sad\n",
    "polis": "comment-id,voter-id,vote,timestamp\n1,2,1,3\n2,2,-1,4\n",
    "sawtooth": "id,task,concept,brand,price,response\n1,1,1,2,5,1\n1,1,2,1,7,0\n1,1,3,0,0,0\n",
    "qualtrics": "ResponseId,Q1_1,Q1_2,Q1_3\nid,a,b,c\n{'ImportId': 'id'},{'ImportId': 'QID1_1'},"
    "{'ImportId': 'QID1_2'},{'ImportId': 'QID1_3'}\nR_1,1,2,\nR_2,,1,2\n",
}
_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), corpus.numbers, corpus.names),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(corpus.names, inner)),
    max_leaves=4,
)


@st.composite
def exports(draw: Any) -> tuple[str, str]:
    """Draw an export with one of its values replaced, or its text cut."""
    tool = draw(st.sampled_from(sorted(_EXPORTS)))
    whole = _EXPORTS[tool]
    if not isinstance(whole, str):
        broken = _replaced(draw, whole)
        lines = isinstance(broken, list) and tool in {"prodigy", "preferences"}
        whole = "\n".join(map(json.dumps, broken)) if lines else json.dumps(broken)
    elif draw(st.booleans()):
        cells = re.split(r"([,\n])", whole)
        cells[2 * draw(st.integers(0, len(cells) // 2 - 1))] = draw(corpus.names)
        whole = "".join(cells)
    return tool, whole[: draw(st.sampled_from([None, None, None, len(whole) // 2]))]


def _replaced(draw: Any, node: Any) -> Any:
    if not isinstance(node, dict | list) or not node or draw(st.integers(0, 5)) == 5:
        return draw(_JSON)
    copy = dict(node) if isinstance(node, dict) else list(node)
    keys = sorted(copy) if isinstance(copy, dict) else range(len(copy))
    key = draw(st.sampled_from(list(keys)))
    copy[key] = _replaced(draw, copy[key])
    return copy if isinstance(copy, dict) or draw(st.booleans()) else copy * 2


def try_export(workshop: Workshop, tally: Tally, drawn: tuple[str, str]) -> None:
    """Read a broken export: refused, or what is left is a table that says what was left out."""
    tool, text = drawn
    folder = workshop.folder / "export"
    folder.mkdir(exist_ok=True)
    name = {"crowd-kit": "labels.csv", "polis": "votes.csv"}.get(tool, "export.json")
    (folder / name).write_text(text, encoding="utf-8", errors="surrogatepass")

    def work() -> str:
        export = read_export(tool, folder if tool == "polis" else folder / name)
        whole = not export.labels or export.to_table().num_rows == len(export.labels)
        whole &= not export.choices or len(export.choice_annotations()) >= 2 * len(export.choices)
        return "" if whole and str(export) else "rows that are lost without a word"

    judge(tally, "connectors", drawn, work)


@st.composite
def pictures(draw: Any) -> tuple[str, str, float, bytes]:
    """Draw a format and what happens to a picture in it."""
    format_ = draw(st.sampled_from(["PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF"]))
    kind = draw(st.sampled_from(["flip", "flip", "cut", "insert", "huge", "other"]))
    return format_, kind, draw(st.floats(0, 1, exclude_max=True)), draw(st.binary(max_size=40))


def try_picture(workshop: Workshop, tally: Tally, drawn: tuple[str, str, float, bytes]) -> None:
    """Read a damaged picture: refused, or bytes of three colours."""
    from PIL import Image  # noqa: PLC0415 - an extra

    format_, kind, share, more = drawn
    path = workshop.folder / f"picture.{format_.lower()}"
    Image.fromarray(np.arange(768, dtype=np.uint8).reshape(16, 16, 3)).save(path, format_)
    content = bytearray(path.read_bytes())
    place = int(share * len(content))
    if kind == "flip":
        content[place] ^= 1 << len(more) % 8
    elif kind == "cut":
        del content[place:]
    elif kind == "insert":
        content[place:place] = more
    elif kind == "huge":  # sizes in headers
        content[place : place + 4] = b"\x7f\xff\xff\xff"
    else:
        content[:] = more
    path.write_bytes(content)

    def work() -> str:
        found = read_image(path)
        return "" if found.dtype == np.uint8 and found.shape[2] == 3 else f"{found.shape}"

    judge(tally, "pictures", drawn, work)


reports = st.tuples(corpus.names, corpus.names, corpus.names, corpus.names)
# What a page may not hold: scripts, handlers, anything from elsewhere.
_ACTIVE = re.compile(
    r"<(script|iframe|object|embed|link)\b|<[^>]+\s(on\w+|src|href)\s*=\s*[\"']?+(?!#|data:image/)",
    re.IGNORECASE,
)


def try_report(workshop: Workshop, tally: Tally, drawn: tuple[str, str, str, str]) -> None:
    """Write a report with hostile names: one page, with nothing in it that is active."""
    person, item, feature, title = drawn
    rng = np.random.default_rng(0)
    page = workshop.folder / "hostile.html"
    page.unlink(missing_ok=True)

    def work() -> str:
        said = likeminds.Annotations(
            users=[person if k % 4 == 0 else f"p{k % 4}" for k in range(32)],
            items=[item if k % 8 == 0 else f"i{k % 8}" for k in range(32)],
            labels=rng.random(32) < 0.5,
            features=rng.standard_normal((8, 2)),
            item_ids=[item, *(f"i{k}" for k in range(1, 8))],
            feature_names=[feature, "other feature"],
            features_per="item",
        )
        model = likeminds.HierarchicalRanker(item_effects=False).fit(said)
        likeminds.save(model, workshop.folder / "hostile.likeminds", with_data=True)
        words = ["report", "hostile.likeminds", "--out", page.name, "--no-diagnostics"]
        ended = run(workshop.folder, [*words, f"--title={title}"])
        if ended.code != 0:
            raise ValueError(ended.err)
        found = _ACTIVE.search(page.read_text(encoding="utf-8", errors="surrogatepass"))
        return f"something active: {found[0]}" if found else ""

    judge(tally, "reports", drawn, work)


_METHODS = ("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "FOO", "\x00", "")
_PATHS = (
    *("/v1/rank", "/v1/score", "/v1/explain", "/v1/users/p1/labels", "/v1/picture?item=../../x"),
    *("/v1/newcomers", "/health", "/ready", "/metrics", "/", "//", "/..%2f..%2fetc/passwd", "*"),
    *("/%00", "/\x7f", "/v1/item?item=%ff", "http://example.org/", "/v1/users/%2e%2e/data"),
    *("/" + "a" * 70_000, "/v1/items?limit=1e9", "/v1/items?limit=-1", "/page/../settings.py"),
)
_HEADERS = (
    *("Host: 127.0.0.1", "Host: example.org", "Host:", "Content-Length: -1", "Content-Length: 9"),
    *("Content-Length: 99999999999999999999", "Transfer-Encoding: chunked", "Expect: 100-continue"),
    *("Transfer-Encoding: chunked, identity", "Content-Type: application/json", "Content-Type: x"),
    *("Authorization: Bearer x", "Authorization: Bearer \xff", "Authorization: Basic Og==", "X"),
    *("Connection: close", "Upgrade: websocket", "Range: bytes=0-", "X-Request-ID: \x1b[2J"),
    *("Idempotency-Key: x", "Idempotency-Key: " + "k" * 5000, "X-A: " + "a" * 70_000, ": x"),
    *("X-Forwarded-For: ::1", "Cookie: a=b", "Origin: null", "Accept: */*;q=NaN", "Host: a\r\n b"),
)
_BODIES = (
    *("", "{}", "[]", "null", "{", '{"user": "p1"}', '{"user": ["p1"]}', "[" * 50_000),
    *('{"user": "p1", "top": 1e400}', '{"labels": [{"item": "i1", "label": true}]}', "\x00"),
    *(
        '{"user": "\\ud800"}',
        '{"top": 99999999999999999999}',
        "5\r\nhello\r\n0\r\n\r\n",
        "zz\r\n",
    ),
    "a" * 2_000_000,
)

# Seconds that an answer to bytes is waited for: half a request has none.
_PATIENCE = 0.3


@st.composite
def requests(draw: Any) -> bytes:
    """Draw bytes that are more or less a request."""
    if draw(st.integers(0, 9)) == 9:
        return bytes(draw(st.binary(max_size=200)))
    first = f"{draw(st.sampled_from(_METHODS))} {draw(st.sampled_from(_PATHS))} HTTP/1.1"
    lines = [first, "Host: 127.0.0.1", *draw(st.lists(st.sampled_from(_HEADERS), max_size=4))]
    body = draw(st.sampled_from(_BODIES))
    if draw(st.booleans()):
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    ending = draw(st.sampled_from(["\r\n", "\r\n", "\r\n", "\n", "\r"]))
    return (ending.join(lines) + 2 * ending + body).encode("latin-1", "replace")


def try_request(workshop: Workshop, tally: Tally, drawn: bytes) -> None:
    """Send bytes to the service: it answers below 500, or closes; and goes on answering."""
    status = _status(workshop.address, drawn, _PATIENCE)
    well = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    alive = _status(workshop.address, well, SECONDS)
    wrong = ""
    if status is not None and status >= 500 and status not in {501, 505}:
        wrong = f"answered {status}"
    if alive != 200:
        wrong = f"{wrong} and answers no more ({alive})"
    accepted = status is not None and status < 400
    verdict = "wrong" if wrong else "accepted" if accepted else "refused"
    tally.add("raw HTTP", verdict, f"{wrong}: {drawn[:200]!r}")


def _status(address: tuple[str, int], content: bytes, seconds: float) -> int | None:
    """Return the status of the answer; None without one, as where a body is awaited."""
    answer = b""
    with suppress(OSError), socket.create_connection(address, timeout=seconds) as wire:
        wire.sendall(content)
        while b"\r\n" not in answer and (more := wire.recv(4096)):
            answer += more
    found = re.match(rb"HTTP/1\.[01] (\d{3})", answer)
    return int(found[1]) if found else None
