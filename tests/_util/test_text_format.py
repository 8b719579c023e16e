"""Numbers and lists in sentences."""

import pytest

from likeminds._util.text_format import counted, decimal, join_words, signed, written_grade


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (counted(1, "label"), "1 label"),
        (counted(2000, "person", "people"), "2,000 people"),
        (signed(-0.0001), "0.000"),
        (signed(0.0312), "+0.031"),
        (decimal(-0.25), "-0.250"),
        (decimal(-0.0000712), "-7.12e-05"),
        (decimal(0.0), "0.000"),
        (decimal(20403.6), "20404"),
        (written_grade("good"), "good"),
        (written_grade(4.25), "4.2"),
        (join_words(["tea", "milk", "water"]), "tea, milk and water"),
    ],
)
def test_text(text, wanted):
    assert text == wanted
