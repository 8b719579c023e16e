"""All that a worker needs, imported once for all of them: see `Workers`."""

import likeminds.service.app
from likeminds.service.workers import share_memory

__all__ = ["likeminds"]

share_memory()
