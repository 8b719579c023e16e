"""Type aliases of arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Index = NDArray[np.integer[Any]]
Bool = NDArray[np.bool_]
# Of any floating-point precision.
FloatArray = NDArray[np.floating[Any]]
IdArray = NDArray[Any]
