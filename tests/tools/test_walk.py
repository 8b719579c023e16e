"""What is counted along a call, and what is not."""

from pathlib import Path

from tools.walk import count_changes, count_code, count_structure

TEXT = '''"""A docstring

of three lines."""

# A comment.
VALUE = """a text
of two lines"""


class Thing:
    """One line."""

    def act(self):
        """Another."""
        return 1  # and a remark
'''


def test_code_is_neither_empty_nor_a_comment_nor_a_docstring():
    assert count_code(TEXT) == 5


def test_folders_change_where_the_next_module_lies_in_another():
    path = ["cli.fit", "cli._labels", "data.tables", "losses.spectra", "data.labels"]
    assert count_changes(path) == 3


def test_structure_is_counted_over_all_modules():
    texts = {
        Path("mixed_model/fit.py"): "_A, B = 1, 2.5\nC = -float(3)\nD = 'x'\n",
        Path(
            "cli/fit.py"
        ): "def f(a: Any | None, *, b: Any, c: list[Any]):\n    return hasattr(a, 'b')\n",
        Path("cli/__init__.py"): "class K: ...\n",
        Path("data/long.py"): "class K: ...\n" + "x = 1\n" * 400,
    }
    found = count_structure(texts)
    assert found["modules"] == 4
    assert found["lines"] == 3 + 2 + 1 + 401
    assert found["modules over 400 lines"] == 1
    assert found["modules under 40 lines"] == 2
    assert found["module names used twice"] == found["class names used twice"] == 1
    assert found["Any parameters"] == 2
    assert found["calls of hasattr"] == 1
    assert found["constants of the mixed model"] == 3
