"""Pictures as arrays: from files or arrays of any usual kind to RGB, upright, in one size."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._support.optional import require

Picture = NDArray[np.uint8]

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff")
_PURPOSE = "Reading and resizing pictures"


def list_images(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the picture files in a folder and the folders in it, sorted by path.

    Files whose name starts with a dot are left out.
    """
    root = Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(f"There is no folder {root}. Check the name.")
    found = (path for path in root.rglob("*") if path.suffix.lower() in SUFFIXES)
    paths = sorted(path for path in found if not path.name.startswith(".") and path.is_file())
    if not paths:
        raise FileNotFoundError(
            f"There is no picture in {root}: no file ends in {', '.join(SUFFIXES)}."
        )
    return paths


def as_images(images: Any) -> list[Any]:
    """Return pictures as a list of paths and arrays, each of them checked.

    Parameters
    ----------
    images : sequence of paths or arrays, or one array of all pictures
        An array has shape (height, width), (height, width, 1), (height, width, 3) or
        (height, width, 4), and holds bytes, or floats from 0 to 1. One array of pictures has
        one more dimension in front.
    """
    if isinstance(images, str | os.PathLike):
        raise TypeError(
            f"Pass a list of pictures, not one path ({os.fspath(images)}): [path] for one "
            "picture, likeminds.features.list_images(folder) for all in a folder."
        )
    if isinstance(images, np.ndarray) and images.dtype.kind not in "OUS" and images.ndim < 3:
        raise ValueError(
            f"An array of pictures has shape (n, height, width) or (n, height, width, "
            f"channels), but this one has {images.shape}. Pass [array] for one picture."
        )
    listed = [_as_image(image, position) for position, image in enumerate(images)]
    if not listed:
        raise ValueError("There are no pictures: the list is empty.")
    return listed


def _as_image(image: Any, position: int) -> Any:
    if isinstance(image, str | os.PathLike):
        path = Path(image)
        if not path.is_file():
            raise FileNotFoundError(f"There is no picture {path}. Check the name and the folder.")
        return path
    array = np.asarray(image)
    where = f"Picture {position} (counted from 0)"
    channels = array.shape[2] if array.ndim == 3 else 1
    if array.ndim not in {2, 3} or channels not in {1, 3, 4} or not array.size:
        raise ValueError(
            f"{where} has shape {array.shape}; pictures have shape (height, width), or "
            "(height, width, channels) with 1, 3 or 4 channels."
        )
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind != "f" or not (array.min() >= 0 and array.max() <= 1):
        raise ValueError(
            f"{where} must hold bytes (uint8) or floats from 0 to 1, but is of type "
            f"{array.dtype}" + _range(array) + ". Divide by the largest possible value."
        )
    return array


def _range(array: NDArray[Any]) -> str:
    return f" from {array.min()} to {array.max()}" if array.dtype.kind in "iuf" else ""


def read_image(image: Any, size: int | None = None, crop: float = 1.0) -> Picture:
    """Return one picture as bytes of shape (height, width, 3), in RGB and upright.

    What is transparent becomes white, and grey becomes equal parts of red, green and blue.

    Parameters
    ----------
    image : path or array
        As in `as_images`.
    size : int, optional
        Scale the picture, its shape kept, and cut out the middle of ``size`` x ``size``.
    crop : float
        The share of the shorter side that is not cut off.

    Examples
    --------
    >>> read_image(np.full((2, 2), 0.5)).tolist()
    [[[128, 128, 128], [128, 128, 128]], [[128, 128, 128], [128, 128, 128]]]
    """
    (checked,) = as_images([image])
    pixels = _from_array(checked) if isinstance(checked, np.ndarray) else _from_file(checked)
    return pixels if size is None else _resize(pixels, size, crop)


def _from_array(array: NDArray[Any]) -> Picture:
    if array.dtype != np.uint8:
        array = np.floor(array * 255 + 0.5).astype(np.uint8)
    if array.ndim == 2:
        array = array[:, :, np.newaxis]
    if array.shape[2] == 1:
        array = np.repeat(array, 3, axis=2)
    return _on_white(array) if array.shape[2] == 4 else array


def _on_white(array: Picture) -> Picture:
    opacity = array[:, :, 3:] / 255.0
    mixed = array[:, :, :3] * opacity + 255.0 * (1.0 - opacity)
    return np.floor(mixed + 0.5).astype(np.uint8)


def _from_file(path: Path) -> Picture:
    pillow = require("PIL.Image", _PURPOSE, "images")
    upright = require("PIL.ImageOps", _PURPOSE, "images").exif_transpose
    try:
        with pillow.open(path) as opened:
            return _pixels(upright(opened))
    # What a damaged file raises depends on its format.
    except (OSError, ValueError, SyntaxError, EOFError, pillow.DecompressionBombError) as error:
        raise ValueError(
            f"{path} cannot be read as a picture: {error}. Replace the file, or leave it out."
        ) from error


def _pixels(opened: Any) -> Picture:
    if opened.mode.startswith("I;16"):  # sixteen bits of grey, which Pillow would cut off at 255
        return _from_array((np.asarray(opened) >> 8).astype(np.uint8))
    transparent = opened.mode in {"RGBA", "LA", "PA"} or "transparency" in opened.info
    if transparent:
        return _on_white(np.asarray(opened.convert("RGBA")))
    return np.asarray(opened.convert("RGB"))


def _resize(pixels: Picture, size: int, crop: float) -> Picture:
    height, width = pixels.shape[:2]
    shorter = round(size / crop)
    if min(height, width) != shorter:
        pillow = require("PIL.Image", _PURPOSE, "images")
        scale = shorter / min(height, width)
        new = max(shorter, round(width * scale)), max(shorter, round(height * scale))
        scaled = pillow.fromarray(pixels).resize(new, resample=pillow.Resampling.BILINEAR)
        pixels = np.asarray(scaled)
        width, height = new
    top, left = (height - size) // 2, (width - size) // 2
    return pixels[top : top + size, left : left + size]
