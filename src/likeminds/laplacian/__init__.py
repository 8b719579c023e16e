"""Proposition 1 of the paper (in `likeminds.paper.laplacian`)."""

from likeminds.paper.laplacian import (
    explicit_laplacian,
    laplacian_form,
    laplacian_product,
)

__all__ = ["explicit_laplacian", "laplacian_form", "laplacian_product"]
