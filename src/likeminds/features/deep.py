"""Deep features of pictures: a layer of an image network, usually the last but one."""

import os
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds.features._onnx import Network, digest_of_model, model_file, refuse_broken_rows
from likeminds.features.extractor import ImageExtractor, positive_integer
from likeminds.features.feature_cache import Rows
from likeminds.features.images import read_image


@dataclass(eq=False, repr=False)
class DeepFeatures(ImageExtractor):
    """The output of any image network in a local ONNX file.

    The file's input is a batch of RGB pictures, channels first or last; its output is one
    row of values per picture, or maps of values, which are averaged over the picture.
    Needs ``likeminds[onnx]``. Nothing is downloaded; the page on features shows how to export.

    Parameters
    ----------
    model : path
        The ONNX file.
    size : int
        The side of the square pictures that the network takes.
    crop : float
        The share of a picture's shorter side that is inside that square.
    mean, std : three floats
        Subtracted from, and divided into, red, green and blue (0 to 1). By default those of
        most networks trained on ImageNet.
    output : str, optional
        The name of the output; needed if the file has more than one.
    n_values : int, optional
        The expected number of values; another number raises ValueError.
    n_threads : int, optional
        How many threads the network may use.
    batch_size, cache, progress
        As in `likeminds.features.GIST`.
    """

    model: str | os.PathLike[str]
    size: int = 224
    crop: float = 0.875
    mean: Sequence[float] = (0.485, 0.456, 0.406)
    std: Sequence[float] = (0.229, 0.224, 0.225)
    _: KW_ONLY
    output: str | None = None
    n_values: int | None = None
    n_threads: int | None = None
    batch_size: int = 16

    def _check(self) -> None:
        super()._check()
        positive_integer(self.size, "size")
        if not 0 < self.crop <= 1:
            raise ValueError(f"crop must lie above 0 and up to 1, but is {self.crop}.")
        for name in ("mean", "std"):
            if len(getattr(self, name)) != 3:
                raise ValueError(f"{name} must have three values, for red, green and blue.")
        if not all(self.std):
            raise ValueError("std must not have a zero: it is divided by.")
        model_file(self.model)

    def _recipe(self) -> dict[str, Any]:
        # The file may be replaced, or move: its content counts.
        return super()._recipe() | {"model": digest_of_model(self.model)}

    def _extractor(self) -> Callable[[Sequence[Any]], Rows]:
        network = Network(self.model, self.output, self.n_threads)
        layout = _Layout(network, self.size)
        mean, std = (np.array(values, dtype=np.float32) for values in (self.mean, self.std))

        def extract(images: Sequence[Any]) -> Rows:
            pixels = np.stack([read_image(image, self.size, self.crop) for image in images])
            scaled = ((pixels / np.float32(255) - mean) / std).astype(np.float32, copy=False)
            rows = layout.run(network, scaled)
            refuse_broken_rows(rows, network.path, images)
            if self.n_values not in {None, rows.shape[1]}:
                raise ValueError(
                    f"{self.model} returns {rows.shape[1]:,} values per picture instead of "
                    f"{self.n_values:,}: it seems to end in another layer. Export it without its "
                    "classifier (see the documentation's page on features), or pass output=."
                )
            return rows

        return extract

    def _names(self) -> list[str]:
        blank = np.zeros((1, self.size, self.size, 3), dtype=np.float32)
        network = Network(self.model, self.output, self.n_threads)
        n_values = self.n_values or _Layout(network, self.size).run(network, blank).shape[1]
        return [f"deep_{position}" for position in range(n_values)]


def inception_v3(model: str | os.PathLike[str], **options: Any) -> DeepFeatures:
    """Return the extractor of Inception-V3's second-last layer, 2,048 values.

    Pictures are 299 x 299, 87.5 % of the shorter side, with values from -1 to 1, as the
    network was trained. The paper uses it for SUN.

    Parameters
    ----------
    model : path
        Inception-V3 without its last layer as an ONNX file; the page on features has the three
        lines that make it.
    **options
        Further parameters of `DeepFeatures`.
    """
    half = (0.5, 0.5, 0.5)
    preset: dict[str, Any] = {"size": 299, "crop": 0.875, "mean": half, "std": half}
    return DeepFeatures(model, **(preset | {"n_values": 2048} | options))


class _Layout:
    """The input of a network: channels first or last, and the size of a batch."""

    def __init__(self, network: Network, size: int) -> None:
        if len(network.inputs) != 1:
            raise ValueError(
                f"{network.path} has inputs {', '.join(network.inputs)}, but a network of "
                "pictures has one."
            )
        ((self.name, tensor),) = network.inputs.items()
        shape = list(tensor.shape)
        if len(shape) != 4 or 3 not in {shape[1], shape[3]}:
            raise ValueError(
                f"The input {self.name} of {network.path} has shape {shape}; pictures are "
                "(n, 3, height, width) or (n, height, width, 3)."
            )
        self.channels_first = shape[1] == 3
        lengths = shape[2:4] if self.channels_first else shape[1:3]
        if any(isinstance(side, int) and side != size for side in lengths):
            raise ValueError(f"{network.path} takes pictures of {lengths}: pass size={lengths[0]}.")
        self.batch = shape[0] if isinstance(shape[0], int) else None

    def run(self, network: Network, pictures: NDArray[np.float32]) -> Rows:
        """Return one row per picture, from (n, height, width, 3)."""
        batch = self.batch or len(pictures)
        parts = []
        for start in range(0, len(pictures), batch):
            part = pictures[start : start + batch]
            filled = np.concatenate(
                [part, np.zeros_like(pictures[:1]).repeat(batch - len(part), 0)]
            )
            parts.append(self._pool(network, filled)[: len(part)])
        return np.concatenate(parts)

    def _pool(self, network: Network, pictures: NDArray[np.float32]) -> Rows:
        fed = pictures.transpose(0, 3, 1, 2) if self.channels_first else pictures
        values = network.run({self.name: np.ascontiguousarray(fed)})
        if values.ndim == 4:
            values = values.mean(axis=(2, 3) if self.channels_first else (1, 2))
        if values.ndim != 2 or len(values) != len(pictures):
            raise ValueError(
                f"The output {network.output} of {network.path} has shape {values.shape} for "
                f"{len(pictures)} picture(s); expected one row, or a map, per picture."
            )
        return values.astype(np.float32, copy=False)
