"""Constants are found with their reasons, and doubled where they are."""

from pathlib import Path

import pytest
from tools.constants import constants, doubled

from likeminds.mixed_model import design, gaussian_prior

TEXT = '''"""Two constants, and what is none."""

# Few enough.
_MOST, _RATIO = 40, 2**0.5
NAME = "x"


def inside():
    LEAST = 3
    return LEAST
'''


@pytest.fixture
def found(tmp_path):
    (tmp_path / "module.py").write_text(TEXT)
    return list(constants(tmp_path))


def test_numbers_at_the_top_are_constants(found):
    assert [(one.name, one.value) for one in found] == [("_MOST", "40"), ("_RATIO", "2 ** 0.5")]
    assert {one.reason for one in found} == {"Few enough."}


def test_a_constant_is_doubled_wherever_it_was_imported():
    folder = Path(gaussian_prior.__file__).parent
    (one,) = (each for each in constants(folder) if each.name == "ROUNDING")
    with doubled(one):
        assert {gaussian_prior.ROUNDING, design.ROUNDING} == {2 * float(one.value)}
    assert {gaussian_prior.ROUNDING, design.ROUNDING} == {float(one.value)}
