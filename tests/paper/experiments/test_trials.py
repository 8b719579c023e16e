"""Examples of `likeminds.paper.experiments.trials`."""

from likeminds.paper.experiments.trials import RAW, variant_name


def test_variant_name():
    assert variant_name("RMTL", RAW) == "RMTL, without an intercept"
