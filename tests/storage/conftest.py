"""A model, the file it was saved to, and files too large to be read at once."""

import numpy as np
import pytest

from crowds import make_crowd
from likeminds import ThreeLevelRanker, save
from likeminds.storage import safetensors


@pytest.fixture(scope="module")
def ranker():
    crowd = make_crowd(np.random.default_rng(0))
    with pytest.warns(UserWarning, match="one class only"):
        return ThreeLevelRanker(0.1, 1.0, np.float64(0.5), tol=1e-2).fit(crowd)


@pytest.fixture
def path(tmp_path, ranker):
    return save(ranker, tmp_path / "crowd.likeminds")


@pytest.fixture
def mapped(monkeypatch):
    """Pretend that every file is too large to be read at once."""
    monkeypatch.setattr(safetensors, "READ_AT_ONCE", 0)
