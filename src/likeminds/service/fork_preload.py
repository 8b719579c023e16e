"""Imports that all workers share: see `Workers`."""

import gc

import likeminds.service.app

__all__ = ["likeminds"]

# Make all present objects permanent: collecting garbage would copy their pages.
gc.collect()
gc.freeze()
