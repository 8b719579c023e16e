"""Of this folder, pytest runs the pages: what builds the site, and what is built, is left alone."""

collect_ignore_glob = ["*.py", "_*", "api", "gallery", "notebooks"]
