"""Models on disk: one file, never a pickle."""
