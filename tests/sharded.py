"""Crowds cut into parts, and rankers held against each other."""

import numpy as np
import pyarrow as pa
import pytest

from likeminds import HierarchicalRanker
from likeminds.cluster import Shards

# Of what Dask leaves to the garbage collector, tests of rankers say nothing.
QUIET = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def ranker(**more):
    """Return a ranker of few steps: here and there, they are the same from the first one on."""
    return HierarchicalRanker(item_effects=False, **{"tol": 1e-3} | more)


def spread(said, client, parts=None, **more):
    parts = [said[::2], said[1::2]] if parts is None else parts
    named = {"item_ids": said.item_ids, "feature_names": said.feature_names}
    return Shards.from_parts(parts, client, said.features, **named, **more)


def table_of(said, **more):
    columns = {"user": said.users.tolist(), "item": said.items.tolist(), "label": said.outcomes}
    return pa.table(columns | more)


def same(first, second, atol=1e-6):
    assert first.users_.tolist() == second.users_.tolist()
    np.testing.assert_allclose(first.coef_, second.coef_, rtol=0, atol=atol)
    np.testing.assert_allclose(first.consensus_, second.consensus_, rtol=0, atol=atol)
