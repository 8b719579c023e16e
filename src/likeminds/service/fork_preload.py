"""Modules that all workers share: see `Workers`."""

import gc

import likeminds.service.app

__all__ = ["likeminds"]

# Exclude all present objects from garbage collection, which would copy their memory pages.
gc.collect()
gc.freeze()
