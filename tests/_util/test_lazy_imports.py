"""Modules are loaded at first use, and missing ones are named with their extra."""

import pytest

from likeminds._util.lazy_imports import LazyModule, require


def test_a_module_is_loaded_at_first_use():
    assert LazyModule("math").sqrt(9.0) == 3.0


def test_a_missing_package_is_named_with_its_extra():
    with pytest.raises(
        ImportError, match=r"needs no_such_package: pip install 'likeminds\[duckdb\]'"
    ):
        require("no_such_package", "Reading tables", "duckdb")
