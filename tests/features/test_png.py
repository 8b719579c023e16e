"""Pictures are written as PNG files without an image library."""

import numpy as np
import pytest

from likeminds.features.png import write_png


def test_files_hold_the_picture(tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    picture = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    write_png(tmp_path / "shoe.png", picture)
    read = pyplot.imread(tmp_path / "shoe.png")
    np.testing.assert_array_equal(np.round(read * 255), picture)
    with pytest.raises(ValueError):
        write_png(tmp_path / "shoe.png", picture[0])
