"""What reaches a terminal: text, as wide as there is room, in colour only if wanted."""

import io
import re

import numpy as np
import pytest
from rich.text import Text

import likeminds
from commands import run
from likeminds._util import console
from likeminds._util.console import SafeConsole
from likeminds._util.result_tables import rich_table
from likeminds._util.text_format import visible

HOSTILE = "ann\x1b[2J\x1b]0;owned\x07\x9b1m\r\u202eb"
SHOWN = r"ann\x1b[2J\x1b]0;owned\x07\x9b1m\r\u202eb"
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model whose people, items and features have names that speak to terminals."""
    folder = tmp_path_factory.mktemp("terminal")
    rng = np.random.default_rng(0)
    rows, features = 60, 3
    said = likeminds.Annotations(
        users=[f"{HOSTILE}{i % 3}" for i in range(rows)],
        items=[f"{HOSTILE}{i // 3}" for i in range(rows)],
        labels=rng.random(rows) > 0.5,
        features=rng.normal(size=(rows, features)),
        feature_names=[f"{HOSTILE}{i}" for i in range(features)],
    )
    likeminds.save(likeminds.HierarchicalRanker().fit(said), folder / "m.likeminds", with_data=True)
    return folder


class TestControlCharacters:
    def test_all_are_escaped_and_nothing_else(self):
        assert visible(HOSTILE) == SHOWN
        assert visible("naïve 你好 👍\n\t") == "naïve 你好 👍\n\t"
        assert visible("a\nb", keep="") == r"a\nb"
        assert visible("\ud800\u2028") == r"\ud800\u2028"

    @pytest.mark.parametrize(
        "words",
        [
            ["rank", "--top", "2"],
            ["rank", "--each-user"],
            ["rank", "--user", f"{HOSTILE}0"],
            ["rank", "--user", f"nobody{HOSTILE}"],
            ["rank", "--user", f"nobody{HOSTILE}", "--debug"],
            ["rank", "--features", f"{HOSTILE}.csv"],
            ["explain"],
            ["newcomer", "--ask", "2"],
            [f"--{HOSTILE}"],
        ],
        ids=" ".join,
    )
    def test_they_never_reach_the_terminal(self, folder, words):
        done = run(folder, *words, *([] if words[0][0] == "-" else ["m.likeminds"]))
        assert not UNSEEN.search(done.out + done.err)
        assert r"\x1b[2J" in done.out + done.err

    def test_csv_is_for_programs_unless_somebody_looks(self, folder):
        words = ("rank", "m.likeminds", "--top", "1", "--out", "-")
        assert HOSTILE.replace("\r", "") in run(folder, *words).out.replace("\r", "")
        assert not UNSEEN.search(run(folder, *words, terminal=True).out)

    def test_bars_take_names_for_text(self, monkeypatch):
        monkeypatch.setenv("TERM", "xterm")
        shown = io.StringIO()
        monkeypatch.setattr(
            console,
            "SafeConsole",
            lambda stderr: SafeConsole(file=shown, force_terminal=True, width=120),
        )
        with console.progress_bar(shown=True) as bar:
            bar.add_task(f"[/b]{HOSTILE}", total=1)
        assert f"[/b]{SHOWN[:12]}" in re.sub("\x1b\\[[0-9;]*m", "", shown.getvalue())


class TestWidth:
    @pytest.mark.parametrize("columns", ["0", "", "wide", "²", "9" * 30])
    def test_no_usable_width_is_an_unknown_one(self, folder, monkeypatch, columns):
        monkeypatch.delenv("COLUMNS", raising=False)
        expected = run(folder, "rank", "m.likeminds", "--top", "2")
        monkeypatch.setenv("COLUMNS", columns)
        assert run(folder, "rank", "m.likeminds", "--top", "2") == expected
        monkeypatch.setenv("COLUMNS", columns)
        assert "Usage" in run(folder, "rank", "--help").out

    @pytest.mark.parametrize("width", [1, 5, 10, 20, 80])
    def test_nothing_is_lost_in_a_narrow_terminal(self, width):
        rows = [{"rank": 1, "item": "a-long-name", "score": 0.125}, {"rank": 2, "item": "b"}]
        rows[1]["score"] = None
        screen = SafeConsole(file=io.StringIO(), width=width)
        screen.print(rich_table("Best", rows))
        lines = screen.file.getvalue().splitlines()
        assert max(map(len, lines)) <= width
        text = "".join(line.strip() for line in lines)
        for cell in ("1", "a-long-name", "0.125", "2", "b", "-"):
            assert cell in text

    @pytest.mark.parametrize("width", [40, 80, 100])
    def test_columns_that_do_not_fit_continue_below(self, width):
        names = [f"feature{k}" for k in range(12)]
        rows = [
            {"feature": row} | {name: -0.001 * k for k, name in enumerate(names)} for row in "ab"
        ]
        screen = SafeConsole(file=io.StringIO(), width=width)
        screen.print(rich_table("Correlations", rows, digits=None))
        lines = screen.file.getvalue().splitlines()
        assert max(map(len, lines)) <= width
        words = screen.file.getvalue().split()
        assert all(words.count(name) == 1 for name in names)
        assert words.count("-0.011") == words.count("-0.001") == 2
        assert words.count("a") == words.count("feature") > 1

    @pytest.mark.parametrize("width", range(40, 110, 3))
    def test_headers_of_several_words_leave_numbers_whole(self, width):
        names = ["mean", "error", "robust error", "z", "p", "sd", "sd robust error", "like more"]
        rows = [{"feature": "alt: TRAIN"} | dict.fromkeys(names, -1.234e-05)]
        screen = SafeConsole(file=io.StringIO(), width=width)
        screen.print(rich_table("Part-worths", rows, digits=None))
        assert screen.file.getvalue().split().count("-1.23e-05") == len(names)


class TestColour:
    def test_no_color_writes_text_only(self, folder, monkeypatch):
        monkeypatch.setenv("TERM", "xterm-256color")
        coloured = run(folder, "rank", "m.likeminds", "--user", "x", terminal=True)
        assert "\x1b[" in coloured.err
        monkeypatch.setenv("NO_COLOR", "1")
        for words in (["--user", "x"], ["--top", "1"]):
            done = run(folder, "rank", "m.likeminds", *words, terminal=True)
            assert not UNSEEN.search(done.out + done.err)

    def test_a_screen_without_it_shows_bold(self, monkeypatch):
        monkeypatch.delenv("NO_COLOR", raising=False)
        screen = SafeConsole(file=io.StringIO(), force_terminal=True, color_system="standard")
        screen.print(Text("x", style="bold"))
        assert screen.file.getvalue() == "\x1b[1mx\x1b[0m\n"
