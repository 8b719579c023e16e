"""Crowds on a Dask cluster (extra ``dask``): people in shards, visited where they are."""

from likeminds.cluster.rankings import write_rankings
from likeminds.cluster.shards import Shards

__all__ = ["Shards", "write_rankings"]
