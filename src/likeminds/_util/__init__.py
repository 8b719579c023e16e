"""Helpers shared by all folders: array types, checks, threads, files, progress."""
