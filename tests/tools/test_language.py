"""The patterns that tools.language counts."""

from tools.language import PATTERNS, main


def test_patterns_are_counted_in_prose_and_not_in_code(tmp_path, monkeypatch):
    monkeypatch.setattr("tools.language.ROOT", tmp_path)
    page, module = tmp_path / "page.md", tmp_path / "module.py"
    page.write_text("Everybody ranks so that nobody waits.\n\n```\neverybody\n```\n")
    module.write_text('"""Of grades, it is no mean."""\n\neverybody = 1  # somebody\n')
    counts = main([page, module], show=True)
    names = list(PATTERNS)
    assert counts[names[0]] == 3
    assert counts[names[1]] == counts[names[2]] == counts['"so that"'] == 1


def test_values_of_templates_count_as_one_word(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("{% if a.b.c %}" + " ".join(["{{ a.b | c(d, e) }}"] * 25) + ". {% endif %}\n")
    assert main([page], show=False)["sentences of more than 25 words"] == 0


def test_long_sentences_are_counted(tmp_path):
    page = tmp_path / "page.md"
    source = "<!--results#of a number/that is quoted|.1f-->"
    page.write_text(" ".join(["word"] * 26) + ". " + " ".join(["word"] * 25) + f"{source}.\n")
    assert main([page], show=False)["sentences of more than 25 words"] == 1
