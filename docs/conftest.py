"""Pytest runs the pages of this folder, not the scripts that build the site or their results."""

import pytest

collect_ignore_glob = ["*.py", "_*", "api", "gallery", "notebooks"]

# Pages that simulate likelihoods or start a cluster: in `make test-all` only.
SLOW = {"docs/choice-models.md", "how-to/cluster.md"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow pages."""
    for item in items:
        if f"{item.path.parent.name}/{item.path.name}" in SLOW:
            item.add_marker(pytest.mark.slow)
