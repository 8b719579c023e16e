"""``python -m benchmarks``."""

import sys

from benchmarks.command import main

if __name__ == "__main__":  # workers of a cluster import this, too
    sys.exit(main())
