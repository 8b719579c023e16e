"""Labels in shards on a Dask cluster (extra ``dask``), and fits that leave them there."""

from likeminds.cluster.rankings import write_rankings
from likeminds.cluster.shards import Shards

__all__ = ["Shards", "write_rankings"]
