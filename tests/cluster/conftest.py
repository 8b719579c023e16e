"""A cluster in this process and a crowd, for all tests of it."""

import numpy as np
import pytest

from likeminds import make_schools
from sharded import ranker

distributed = pytest.importorskip("distributed", reason="a cluster needs likeminds[dask]")


@pytest.fixture(scope="session")
def client():
    given = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    with distributed.Client(**given, dashboard_address=":0") as found:
        yield found


@pytest.fixture(scope="session")
def said():
    made = make_schools(40, 12, 30, 5, n_schools=2, contested=0.6, random_state=0).annotations
    return made._with(user_ids=np.array([f"p{n:02d}" for n in range(40)], dtype=object))


@pytest.fixture(scope="session")
def crowd(client, said):
    return client, said


@pytest.fixture(scope="session")
def fitted(said):
    return ranker(n_groups=1).fit(said)
