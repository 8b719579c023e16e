"""Pictures that are drawn when asked for."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tools.sketch_shoes.drawing import render
from tools.sketch_shoes.shoe import Shoe

Pictures = NDArray[np.uint8]
T = TypeVar("T")

# Pictures that are held at a time: 12 MB of them.
_CHUNK = 64


class Album(Sequence[Pictures]):
    """Pictures of shoes, drawn when asked for and not kept.

    A number gives one picture, a slice or an array of numbers several. A picture depends on
    its shoe alone, not on what it is drawn together with.

    Parameters
    ----------
    shoes : sequence of Shoe
    size : int
        Height and width of the pictures, in pixels.
    n_jobs : int, optional
        The number of processes that draw; -1 is one for each core, None is this one alone.

    Examples
    --------
    >>> from tools.sketch_shoes.styles import draw_shoe
    >>> album = Album([draw_shoe(number) for number in range(5)], size=64)
    >>> len(album), album[0].shape, album[1:4].shape
    (5, (64, 64, 3), (3, 64, 64, 3))
    """

    def __init__(self, shoes: Sequence[Shoe], size: int = 256, n_jobs: int | None = None) -> None:
        self.shoes, self.size, self.n_jobs = tuple(shoes), size, n_jobs

    def __len__(self) -> int:
        return len(self.shoes)

    def __getitem__(self, chosen: int | slice | ArrayLike) -> Pictures:  # type: ignore[override]
        if isinstance(chosen, int | np.integer):
            return render(self.shoes[chosen], self.size)
        numbers = np.arange(len(self))[chosen if isinstance(chosen, slice) else np.asarray(chosen)]
        return _draw_shoes([self.shoes[number] for number in numbers], self.size)

    def chunks(self, size: int = _CHUNK) -> Iterator[Pictures]:
        """Iterate over all pictures, in arrays of at most ``size``."""
        return self.map(_itself, size)

    def map(self, work: Callable[[Pictures], T], size: int = _CHUNK) -> Iterator[T]:
        """Iterate over the results of a function of the pictures, at most ``size`` at a time.

        It is called in the processes that draw: only its results are sent back.
        """
        parts = [self.shoes[first : first + size] for first in range(0, len(self), size)]
        if self.n_jobs in {None, 1}:
            yield from (work(_draw_shoes(part, self.size)) for part in parts)
            return
        from joblib import Parallel, delayed  # noqa: PLC0415 - slow to import, and rarely needed

        jobs = (delayed(_draw_and_work)(part, self.size, work) for part in parts)
        yield from Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs)


def contact_sheet(pictures: ArrayLike, columns: int = 8) -> Pictures:
    """Lay pictures out in rows, as one picture; places left over are white.

    Parameters
    ----------
    pictures : array of shape (n, height, width, 3)
    columns : int
        The number of pictures in a row.

    Examples
    --------
    >>> contact_sheet(np.zeros((5, 64, 64, 3), dtype=np.uint8), columns=3).shape
    (128, 192, 3)
    """
    given = np.asarray(pictures, dtype=np.uint8)
    if given.ndim != 4 or not len(given):
        raise ValueError(
            f"pictures must have the shape (n, height, width, 3), but have {given.shape}."
        )
    if columns < 1:
        raise ValueError(f"columns must be at least 1, but is {columns}.")
    n, height, width, channels = given.shape
    rows = -(-n // columns)
    places = np.full((rows * columns, height, width, channels), 255, dtype=np.uint8)
    places[:n] = given
    in_rows = places.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    return np.ascontiguousarray(in_rows).reshape(rows * height, columns * width, channels)


def _draw_shoes(shoes: Sequence[Shoe], size: int) -> Pictures:
    out = np.empty((len(shoes), size, size, 3), dtype=np.uint8)
    for number, shoe in enumerate(shoes):
        out[number] = render(shoe, size)
    return out


def _draw_and_work(shoes: Sequence[Shoe], size: int, work: Callable[[Pictures], T]) -> T:
    return work(_draw_shoes(shoes, size))


def _itself(pictures: Pictures) -> Pictures:
    return pictures
