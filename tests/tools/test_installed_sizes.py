"""Sizes of installations count what a package needs, and no package twice."""

from tools.installed_sizes import megabytes, needed


def test_packages_needed_are_those_of_all_levels():
    base = needed("likeminds")
    assert {"likeminds", "numpy", "python-dateutil"} <= base  # the last one by matplotlib
    assert "duckdb" not in base


def test_extras_add_packages():
    base = needed("likeminds")
    assert needed("likeminds", "duckdb", base) - base == {"duckdb"}


def test_packages_have_a_size():
    assert 0 < megabytes("threadpoolctl") < 1 < megabytes("numpy")
