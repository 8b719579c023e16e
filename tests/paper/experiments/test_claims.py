"""Examples of `likeminds.paper.experiments.claims`."""

from likeminds.paper.experiments.claims import grade


def test_grade():
    assert [grade(value, enough=0.8, some=0.4) for value in (0.9, 0.5, 0.1)] == [
        "holds",
        "holds in part",
        "does not hold",
    ]
