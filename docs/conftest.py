"""Of this folder, pytest runs the pages: what builds the site, and what is built, is left alone."""

import pytest

collect_ignore_glob = ["*.py", "_*", "api", "gallery", "notebooks"]

# Pages that simulate likelihoods or start a cluster: in `make test-all` only.
SLOW = {"choice-models.md", "cluster.md"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow pages."""
    for item in items:
        if item.path.name in SLOW and item.path.parent.name == "docs":
            item.add_marker(pytest.mark.slow)
