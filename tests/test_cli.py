import subprocess
import sys

import pytest
from rich.console import Console
from typer.testing import CliRunner

import likeminds
from likeminds import demo
from likeminds.cli import app, main


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "electricity.likeminds"
    console = Console(record=True, width=100)
    demo.run(path, console=console)
    return path, console.export_text()


def test_demo_tells_the_whole_story(story):
    path, text = story
    for ranker in (
        "consensus only",
        "one model per person",
        "ridge towards the consensus",
        "three levels",
    ):
        assert ranker in text
    assert "What all agree on" in text
    assert text.count("  school ") >= 2
    assert text.count("household-") == 3
    assert str(path.name) in text
    assert "What to try next" in text


def test_demo_ranks_the_rankers_as_measured(story):
    _, text = story
    figures = {
        name: float(line.split("│")[2])
        for line in text.splitlines()
        for name in (*demo._BASELINES, "three levels")
        if line.startswith(f"│ {name}")
    }
    assert figures["consensus only"] < 0.75
    assert figures["one model per person"] > 0.82
    assert figures["three levels"] >= figures["ridge towards the consensus"]


def test_demo_saves_a_model_that_loads(story):
    path, _ = story
    assert likeminds.load(path).coef_.shape == (361, 6)


def test_command_line_runs_the_demo(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(demo, "run", lambda out, seed: asked.append((out, seed)))
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "m"), "--seed", "3"])
    assert result.exit_code == 0
    assert asked == [(tmp_path / "m", 3)]


def test_version_and_help():
    result = CliRunner().invoke(app, ["--version"])
    assert result.output.strip() == f"likeminds {likeminds.__version__}"
    assert "demo" in CliRunner().invoke(app, ["--help"]).output


def test_bad_input_is_one_sentence_and_exit_code_2(tmp_path, monkeypatch, capsys):
    where = tmp_path / "nowhere" / "model"
    monkeypatch.setattr(sys, "argv", ["likeminds", "demo", "--out", str(where)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    message = f"Error: There is no folder {where.parent} to save the model in."
    assert capsys.readouterr().err.strip() == message


def test_it_is_installed_as_a_command():
    code = "from importlib.metadata import entry_points as e; print(*e(group='console_scripts'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "likeminds.cli:main" in done.stdout
