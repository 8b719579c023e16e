"""Imports that all workers share: see `Workers`."""

import likeminds.service.app
from likeminds.service.workers import share_memory

__all__ = ["likeminds"]

share_memory()
