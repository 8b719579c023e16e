"""The kinds of arrays there are, by one name each."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Index = NDArray[np.integer[Any]]
Bool = NDArray[np.bool_]
# Numbers in whatever precision they came.
FloatArray = NDArray[np.floating[Any]]
IdArray = NDArray[Any]
