"""What is counted along a call, and what is not."""

from tools.walk import count_changes, count_code

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
    path = ["cli.fit", "cli._labels", "data.tables", "rows", "losses.spectra", "data.labels"]
    assert count_changes(path, {"rows"}) == 4
    # Two loose modules in a row share a folder, or are one each.
    assert count_changes(["rows", "losses"], {"rows", "losses"}) == 0
    assert count_changes(["rows", "losses"], set()) == 1
