"""Examples of `likeminds.plots.figures`."""

from likeminds.plots.figures import evenly_spaced


def test_evenly_spaced():
    assert (evenly_spaced(3, 10), evenly_spaced(100, 3)) == ([0, 1, 2], [0, 50, 99])
