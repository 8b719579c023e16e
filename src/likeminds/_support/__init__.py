"""What every room uses and none owns: arrays, checks, threads, files, progress."""
