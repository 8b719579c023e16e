"""Type aliases of arrays."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Index = NDArray[np.integer[Any]]
Bool = NDArray[np.bool_]
# Of any floating-point precision.
FloatArray = NDArray[np.floating[Any]]
IdArray = NDArray[Any]


@runtime_checkable
class SupportsArray(Protocol):
    """An object that NumPy can turn into an array, such as a column of a data frame."""

    def __array__(self) -> NDArray[Any]: ...
