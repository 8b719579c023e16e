"""Labels that do not fit in memory: Parquet files, streamed or grouped by user on disk."""
