"""A cluster in this process, for all tests of it."""

import pytest

distributed = pytest.importorskip("distributed", reason="a cluster needs likeminds[dask]")


@pytest.fixture(scope="session")
def client():
    given = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    with distributed.Client(**given, dashboard_address=":0") as found:
        yield found
