"""Read pictures from files and arrays as upright RGB; make thumbnails and PNG files."""

import io
import os
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likeminds._util.atomic_files import write_whole
from likeminds._util.lazy_imports import require

if TYPE_CHECKING:
    import PIL.Image

Picture = NDArray[np.uint8]
# A file, or an array of a picture.
Image: TypeAlias = str | os.PathLike[str] | ArrayLike
# Pictures by item id, or in the order of the items.
Pictures: TypeAlias = Mapping[Hashable, Image] | Sequence[Image]

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff")
# The formats of these suffixes. Pillow starts other programs for some other formats.
_FORMATS = ("JPEG", "PNG", "BMP", "GIF", "WEBP", "TIFF")
# Pictures with more pixels than this are scaled down as they are read, ...
MOST_PIXELS = 2048 * 2048
# ... and those with more than this raise ValueError: a small file may decompress to any size.
_REFUSED_ABOVE = 150_000_000
# How many pixels are converted at a time.
_BAND = 1 << 18
_ORIENTATION = 0x0112  # the EXIF tag
_PURPOSE = "Reading and resizing pictures"


def list_images(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the picture files in a folder and its subfolders, sorted by path.

    Files whose name starts with a dot are left out.
    """
    root = Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(f"There is no folder {root}. Check the name.")
    found = (path for path in root.rglob("*") if path.suffix.lower() in SUFFIXES)
    paths = sorted(path for path in found if not path.name.startswith(".") and path.is_file())
    if not paths:
        raise FileNotFoundError(
            f"There is no picture in {root}: names of pictures end in {', '.join(SUFFIXES)}."
        )
    return paths


def as_images(images: Iterable[Image]) -> list[Any]:
    """Return pictures as a list of checked paths and arrays."""
    if isinstance(images, str | os.PathLike):
        raise TypeError(
            f"Pass a list of pictures, not one path ({os.fspath(images)}): [path] for one "
            "picture, likeminds.features.list_images(folder) for all in a folder."
        )
    if isinstance(images, np.ndarray) and images.dtype.kind not in "OUS" and images.ndim < 3:
        raise ValueError(
            "An array of pictures must have shape (n, height, width) or (n, height, width, "
            f"channels), not {images.shape}. Pass [array] for one picture."
        )
    listed = [_as_image(image, position) for position, image in enumerate(images)]
    if not listed:
        raise ValueError("The list of pictures is empty. Pass at least one.")
    return listed


def _as_image(image: Image, position: int) -> Any:
    if isinstance(image, str | os.PathLike):
        path = Path(image)
        if not path.is_file():
            raise FileNotFoundError(f"There is no picture {path}. Check the name and the folder.")
        with _open(path):  # raises ValueError early for a file that is not a picture
            return path
    array = np.asarray(image)
    where = f"Picture {position} (counted from 0)"
    channels = array.shape[2] if array.ndim == 3 else 1
    if array.ndim not in {2, 3} or channels not in {1, 3, 4} or not array.size:
        raise ValueError(
            f"{where} has shape {array.shape}, but must have shape (height, width), or "
            "(height, width, channels) with 1, 3 or 4 channels."
        )
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind != "f" or not (array.min() >= 0 and array.max() <= 1):
        is_number = array.dtype.kind in "iuf"
        limits = f" from {array.min()} to {array.max()}" if is_number else ""
        raise ValueError(
            f"{where} must hold bytes (uint8) or floats from 0 to 1, but is of type "
            f"{array.dtype}{limits}. Divide by the largest possible value."
        )
    return array


def read_image(image: Image, size: int | None = None, crop: float = 1.0) -> Picture:
    """Return one picture as bytes of shape (height, width, 3), in RGB and upright.

    Transparent pixels become white, and grey becomes equal parts of red, green and blue. Pictures
    of more than 2048 x 2048 pixels are scaled down to at most as many.

    Parameters
    ----------
    image : path or array
        A file, or an array (height, width) or (height, width, channels) of bytes, or of floats from
        0 to 1.
    size : int, optional
        Scale the picture, keeping its aspect ratio, and crop the central ``size`` x ``size``.
    crop : float
        The share of the shorter side that is kept.

    Examples
    --------
    >>> read_image(np.full((2, 2), 0.5)).tolist()
    [[[128, 128, 128], [128, 128, 128]], [[128, 128, 128], [128, 128, 128]]]
    """
    (checked,) = as_images([image])
    if isinstance(checked, np.ndarray):
        pixels = _in_bands(
            checked.shape[0], checked.shape[1], lambda rows: _from_array(checked[rows])
        )
    else:
        pixels = _from_file(checked)
    return pixels if size is None else _resize(pixels, size, crop)


def scaled_down_to(image: Path | NDArray[Any]) -> int | None:
    """Return the number of pixels to which a picture is limited; None if it is not scaled down."""
    if isinstance(image, np.ndarray):
        height, width = image.shape[:2]
    else:
        with _open(image) as opened:
            width, height = opened.size
    return MOST_PIXELS if height * width > MOST_PIXELS else None


def block_means(pixels: Picture, down: int, across: int) -> Picture:
    """Return the means of whole blocks of pixels; incomplete blocks are cut off."""
    height, width = pixels.shape[0] // down, pixels.shape[1] // across
    cut = pixels[: height * down, : width * across].reshape(height, down, -1)
    columns = cut.sum(axis=1, dtype=np.uint32).reshape(height, width, across, 3)
    means = columns.sum(axis=2) / (down * across)
    return np.asarray(np.floor(means + 0.5), dtype=np.uint8)


def _in_bands(height: int, width: int, rows: Callable[[slice], Picture]) -> Picture:
    """Read a picture some rows at a time, scaled down by a whole number if it is too large."""
    step = 1
    while (height // min(step, height)) * (width // min(step, width)) > MOST_PIXELS:
        step += 1
    down, across = min(step, height), min(step, width)
    at_once = down * max(1, _BAND // (width * down))
    bands = (rows(slice(top, top + at_once)) for top in range(0, height - down + 1, at_once))
    return np.concatenate(
        [band if step == 1 else block_means(band, down, across) for band in bands]
    )


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


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """Open a picture file; only its header is read before its size is known."""
    pillow = require("PIL.Image", _PURPOSE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pillow.DecompressionBombWarning)  # see below
            opened = pillow.open(path, formats=_FORMATS)
        with opened:
            if opened.width * opened.height > _REFUSED_ABOVE:
                raise pillow.DecompressionBombError  # noqa: TRY301 - as Pillow itself
            yield opened
    except pillow.DecompressionBombError as error:
        raise ValueError(
            f"{path} has more than {_REFUSED_ABOVE // 10**6} million pixels, which could exhaust "
            "the memory. Make the picture smaller, or leave it out."
        ) from error
    except pillow.UnidentifiedImageError as error:
        raise ValueError(
            f"{path} cannot be read as a picture: its content is not {' or '.join(_FORMATS)}. "
            "Convert the file, or leave it out."
        ) from error
    # The exception for a damaged file depends on its format.
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        reason = str(error).rstrip(".")
        raise ValueError(
            f"{path} cannot be read as a picture: {reason}. Replace the file, or leave it out."
        ) from error


def _from_file(path: Path) -> Picture:
    with _open(path) as opened:
        # Decode at a half, a quarter or an eighth of each side, if the format supports it.
        if opened.width * opened.height > MOST_PIXELS:
            share = (MOST_PIXELS / (opened.width * opened.height)) ** 0.5
            opened.draft(opened.mode, (round(opened.width * share), round(opened.height * share)))
        opened.load()
        pixels = _in_bands(
            opened.height,
            opened.width,
            lambda rows: _pixels(
                opened.crop((0, rows.start, opened.width, min(rows.stop, opened.height)))
            ),
        )
        return _upright(pixels, opened.getexif().get(_ORIENTATION, 1))


def _upright(pixels: Picture, orientation: int) -> Picture:
    """Apply the EXIF orientation: 2 to 4 are mirrored or upside down, 5 to 8 are on their side."""
    if orientation in {5, 6, 7, 8}:
        pixels = pixels.transpose(1, 0, 2)
    if orientation in {3, 4, 7, 8}:
        pixels = pixels[::-1]
    if orientation in {2, 3, 6, 7}:
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)


def _pixels(opened: "PIL.Image.Image") -> Picture:
    if opened.mode.startswith("I;16"):  # sixteen bits of grey, which Pillow would clip at 255
        return _from_array((np.asarray(opened) >> 8).astype(np.uint8))
    transparent = opened.mode in {"RGBA", "LA", "PA"} or "transparency" in opened.info
    if transparent:
        return _on_white(np.asarray(opened.convert("RGBA")))
    return np.asarray(opened.convert("RGB"))


def _resize(pixels: Picture, size: int, crop: float) -> Picture:
    height, width = pixels.shape[:2]
    shorter = round(size / crop)
    if min(height, width) == shorter:
        top, left = (height - size) // 2, (width - size) // 2
        return pixels[top : top + size, left : left + size]
    pillow = require("PIL.Image", _PURPOSE)
    scale = shorter / min(height, width)
    new = max(shorter, round(width * scale)), max(shorter, round(height * scale))
    left, top = (new[0] - size) // 2, (new[1] - size) // 2
    if new[0] * new[1] <= MOST_PIXELS:
        scaled = pillow.fromarray(pixels).resize(new, resample=pillow.Resampling.BILINEAR)
        return np.asarray(scaled)[top : top + size, left : left + size]
    # The same for a long strip, without scaling its ends, which may be of any length.
    across, down = width / new[0], height / new[1]
    middle = (left * across, top * down, (left + size) * across, (top + size) * down)
    scaled = pillow.fromarray(pixels).resize(
        (size, size), resample=pillow.Resampling.BILINEAR, box=middle
    )
    return np.asarray(scaled)


def picture_of(images: Pictures | None, item: Hashable, row: int) -> Image | None:
    """Return the picture of an item, or None if there is none."""
    if images is None:
        return None
    if isinstance(images, Mapping):
        return images.get(item)
    if not 0 <= row < len(images):
        raise ValueError(
            f"There are {len(images)} pictures, but item {item!r} is in row {row} of the table of "
            "features (counted from 0). Pass one picture per row, or a mapping by item id."
        )
    return images[row]


def thumbnail(image: Image, size: int = 96) -> Picture:
    """Scale a picture down to sides of at most ``size`` pixels, keeping the aspect ratio.

    Blocks of pixels are averaged, so arrays do not need Pillow.
    """
    pixels: Picture = read_image(image)
    step = -(-max(pixels.shape[:2]) // size)
    if step == 1 or min(pixels.shape[:2]) < step:
        return np.asarray(pixels[::step, ::step])
    return block_means(pixels, step, step)


def png_bytes(picture: ArrayLike) -> bytes:
    """Return a picture of bytes, (height, width, 3), as the content of a PNG file."""
    pixels = np.ascontiguousarray(picture, dtype=np.uint8)
    if pixels.ndim != 3 or pixels.shape[2] != 3:
        raise ValueError(f"picture must have the shape (height, width, 3), not {pixels.shape}.")
    content = io.BytesIO()
    require("PIL.Image", _PURPOSE).fromarray(pixels).save(content, "PNG", optimize=True)
    return content.getvalue()


def write_png(path: str | os.PathLike[str], picture: ArrayLike) -> None:
    """Write a picture of bytes, (height, width, 3), to a PNG file."""
    write_whole(Path(path), png_bytes(picture))
