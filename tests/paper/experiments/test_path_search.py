"""Examples of `likeminds.paper.experiments.path_search`."""

from likeminds.paper.experiments.path_search import at_edge


def test_at_edge():
    assert at_edge([{"alpha": 1.0}, {"alpha": 10.0}, {"alpha": 100.0}], {"alpha": 10.0}) == []
    assert at_edge([{"alpha": 1.0}, {"alpha": 10.0}], {"alpha": 10.0}) == ["alpha"]
