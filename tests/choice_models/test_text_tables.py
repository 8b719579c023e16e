"""Numbers of the tables against their definitions."""

from likeminds.choice_models.text_tables import Table


def test_html_is_escaped():
    html = Table("<b>", [{"a&b": "<script>"}], ("x < y",))._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<p>x &lt; y</p>" in html
