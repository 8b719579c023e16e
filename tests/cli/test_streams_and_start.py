"""The command line as a whole: what it prints where, how it ends, what it costs to start."""

import json
import subprocess
import sys
import warnings

import pytest
from typer.main import get_command

import likeminds
from commands import run
from likeminds._util.console import program
from likeminds.cli import app
from likeminds.cli._output import _OPTIONS, Output, in_options, sentence


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "electricity.likeminds"
    done = run(path.parent, "demo", "--out", path.name)
    assert done.code == 0, done.err
    return path, done.out


@pytest.mark.seconds
def test_demo_tells_the_whole_story(story):
    path, text = story
    for ranker in (
        "consensus only",
        "one model per person",
        "ridge towards the consensus",
        "three levels",
        "learned prior",
    ):
        assert ranker in text
    assert "Preferences of the households" in text
    # What the file says of itself later is what was told.
    for line in str(likeminds.find_schools(likeminds.load(path))).splitlines():
        assert " ".join(line.split()) in " ".join(text.split())
    assert text.count("household-") == 3
    assert str(path.name) in text
    for what in (
        "Next:",
        "likeminds compare",
        "HierarchicalRanker",
        "likeminds explain",
    ):
        assert what in text


@pytest.mark.seconds
def test_agreed_items_of_the_demo_have_names(story):
    agreed = likeminds.find_schools(likeminds.load(story[0])).agreed
    assert all(str(one.item).startswith(("7ct", "9ct")) for one in agreed[:3])


def test_commands_are_proposed_as_this_one_was_called(tmp_path, monkeypatch):
    own = tmp_path / "bin" / "likeminds"
    own.parent.mkdir()
    own.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(own)])
    assert program() == "bin/likeminds"
    monkeypatch.setenv("PATH", str(own.parent))
    assert program() == "likeminds"


@pytest.mark.seconds
def test_demo_ranks_the_rankers_as_measured(story):
    figures = likeminds.read_card(story[0])["scores"]
    assert figures["consensus only"] < 0.75
    assert figures["one model per person"] > 0.82
    assert figures["three levels"] >= figures["ridge towards the consensus"]
    assert figures["learned prior"] >= figures["three levels"] - 0.005


@pytest.mark.seconds
def test_demo_saves_a_model_that_loads(story):
    assert likeminds.load(story[0]).coef_.shape == (361, 6)


def test_version_and_help(tmp_path):
    assert run(tmp_path, "--version").out.strip() == f"likeminds {likeminds.__version__}"
    done = run(tmp_path, "--help")
    assert done.code == 0
    for command in app.registered_commands:
        assert command.name in done.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rnk"], "No such command 'rnk'. Did you mean 'rank'? See likeminds --help."),
        (
            ["fit", "--out", "m"],
            "There are no labels: give --annotations, --comparisons, or --from.",
        ),
        (["rank"], "Missing argument 'model'. See likeminds rank --help."),
        (["rank", "none"], "There is no model at none."),
        (["compare"], "There are no labels: give --annotations.\n"),
        (["report", "m", "--out", "r.pdf"], "The report is an HTML page: end r.pdf in .html."),
        (["simulate", "--noise", "3", "--out", "d"], "--noise must be between 0 and 1"),
        (["demo", "--out", "no/m"], "There is no folder no to write the model in. Create it."),
        (["data", "shoes", "--out", "d"], "There is no bundled data called 'shoes'; there are "),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(words, message, tmp_path):
    done = run(tmp_path, *words)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith(f"Error: {message}")
    assert done.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


class TestHowItEnds:
    def answered(self, error, capsys, *, debug=False):
        def work():
            raise error

        output = Output(debug=debug)
        try:
            output.run(work)
        except RuntimeError as ended:  # typer's Exit
            return ended.exit_code, capsys.readouterr().err
        return 0, capsys.readouterr().err

    def test_failures_are_told_from_bad_input(self, capsys):
        assert self.answered(ValueError("Pass positive= to say."), capsys) == (
            2,
            "Error: Pass --positive to say.\n",
        )
        assert self.answered(KeyError("There is no school 7."), capsys)[0] == 2
        assert self.answered(ImportError("Drawing needs matplotlib."), capsys) == (
            1,
            "Error: Drawing needs matplotlib.\n",
        )
        assert self.answered(OSError("No space left on device"), capsys)[0] == 1
        assert self.answered(MemoryError(), capsys)[1] == (
            "Error: There is not enough memory: use fewer labels, or --memory.\n"
        )
        assert self.answered(KeyboardInterrupt(), capsys) == (130, "Error: Interrupted.\n")

    def test_what_nobody_foresaw_is_a_sentence_too(self, capsys):
        code, err = self.answered(ZeroDivisionError("division by zero"), capsys)
        assert code == 1
        assert err == (
            "Error: ZeroDivisionError: division by zero (a bug of likeminds; --debug shows where)\n"
        )

    def test_debug_shows_where(self, capsys):
        _, err = self.answered(ValueError("bad"), capsys, debug=True)
        assert "Traceback" in err
        assert "in work" in err

    def test_warnings_are_notes(self, capsys):
        Output().run(lambda: warnings.warn("few labels", UserWarning, stacklevel=1))
        assert capsys.readouterr().err == "Note: few labels\n"
        quiet = Output(quiet=True)
        quiet.run(lambda: warnings.warn("few labels", UserWarning, stacklevel=1))
        assert capsys.readouterr().err == ""


def test_messages_name_options_instead_of_arguments():
    assert in_options("No column. Pass user= to name it; x=3 stays.") == (
        "No column. Pass --user-column to name it; x=3 stays."
    )
    assert in_options("With memory_limit=, leave out duplicates=.") == (
        "With --memory, leave out --duplicates."
    )
    assert in_options('Pass duplicates="keep", with_data=True.') == (
        "Pass --duplicates keep, --keep-data."
    )
    assert sentence(KeyError("quoted")) == "quoted"
    commands = get_command(app).commands.values()
    known = {name for one in commands for option in one.params for name in option.opts}
    assert set(_OPTIONS.values()) <= known


def test_json_has_no_nan(capsys):
    Output(as_json=True).json({"auc": float("nan")})
    assert json.loads(capsys.readouterr().out) == {"auc": None}


def test_the_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom likeminds.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print(*{name.split('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"sklearn", "scipy", "numpy", "pandas", "pyarrow", "narwhals", "joblib", "matplotlib"}
    assert not heavy & set(done.stderr.split())


def test_the_shell_completes_commands(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("_LIKEMINDS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "likeminds ra")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert run(tmp_path).out.split() == ["rank"]


def test_it_is_installed_as_a_command():
    code = "from importlib.metadata import entry_points as e; print(*e(group='console_scripts'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "likeminds.cli:main" in done.stdout


def test_passwords_are_not_shown_even_to_who_debugs(tmp_path):
    said = "postgrsql://ann:p@g let@127.0.0.1/shop SELECT 1"
    for words in (
        ("fit", "--annotations", said, "--out", "m.likeminds", "--debug"),
        ("rank", said, "--debug"),
        ("rank", said),
    ):
        done = run(tmp_path, *words)
        assert done.code == 2
        assert "let" not in done.err


@pytest.mark.slow
def test_a_closed_standard_input_is_told(tmp_path):
    program = f"{sys.executable} -c 'from likeminds.cli import main; main()'"
    line = f"{program} fit --annotations - --out m.likeminds <&-"
    done = subprocess.run(
        line, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "Standard input is closed" in done.stderr
