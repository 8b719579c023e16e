"""Tables as HTML."""

from likeminds._util.html import html_table


def test_nothing_that_is_shown_is_taken_for_markup():
    assert "<script>" not in html_table([{"item": "<script>", "score": float("nan")}])
    assert "<td>-</td>" in html_table([{"score": float("nan")}])
    assert html_table([]) == ""
