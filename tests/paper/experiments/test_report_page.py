"""Examples of `likeminds.paper.experiments.report_page`."""

import numpy as np

from likeminds.paper.experiments.report_page import _inline, interval, plus_minus, points


def test_inline():
    assert (
        str(_inline("a < b, **really**, in `code`"))
        == "a &lt; b, <strong>really</strong>, in <code>code</code>"
    )


def test_points():
    assert (points(0.0123), points(-0.0001)) == ("+1.2", "+0.0")


def test_interval():
    assert (interval([0.01, -0.01, 0.03]), interval([0.01, float("nan"), float("nan")])) == (
        "+1.0 [-1.0, +3.0]",
        "+1.0",
    )


def test_plus_minus():
    assert plus_minus(np.array([0.997, 0.996])) == "99.65 ± 0.07"
    assert plus_minus(np.array([0.5])) == "50.00"
