"""Networks in ONNX files, the WordPiece tokenizer, and deep features of pictures."""

import os
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from likeminds._util.checks import listing
from likeminds._util.lazy_imports import require
from likeminds.features.extractor import (
    POSITIVE,
    Extractor,
    Rows,
    digest,
    digest_of_file,
)
from likeminds.features.images import read_image

_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}


class Network:
    """A network in a local ONNX file, run by ONNX Runtime on the processor."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        output: str | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.path = model_file(path)
        runtime = require("onnxruntime", "Running a network", "onnx")
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        if n_threads is not None:
            options.intra_op_num_threads = n_threads
        try:
            self._session = runtime.InferenceSession(
                str(self.path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime raises a different class for each kind of damage
            raise ValueError(f"{self.path} cannot be opened as an ONNX network: {error}") from error
        self.inputs = {tensor.name: tensor for tensor in self._session.get_inputs()}
        self.output = self._choose(output)

    def run(self, values: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Return the chosen output for the inputs, which are cast to the network's types."""
        feed = {name: array.astype(self._type(name), copy=False) for name, array in values.items()}
        try:
            result: NDArray[Any] = self._session.run([self.output], feed)[0]
        except Exception as error:
            shapes = ", ".join(f"{name} {array.shape}" for name, array in feed.items())
            raise ValueError(f"{self.path} failed on inputs {shapes}: {error}") from error
        return result

    def _type(self, name: str) -> Any:
        kind = self.inputs[name].type
        if kind not in _TYPES:
            raise ValueError(
                f"The input {name} of {self.path} is a {kind}, not one of {', '.join(_TYPES)}."
            )
        return _TYPES[kind]

    def _choose(self, output: str | None) -> str:
        names = [tensor.name for tensor in self._session.get_outputs()]
        if output is None and len(names) > 1:
            raise ValueError(
                f"{self.path} has several outputs: {listing(names)}. Pass output= to choose one."
            )
        if output is not None and output not in names:
            raise ValueError(f"{self.path} has no output {output!r}; it has {listing(names)}.")
        return output or names[0]


def model_file(path: str | os.PathLike[str]) -> Path:
    """Return the path of a network; raise FileNotFoundError without a file."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(
            f"There is no network at {file}. likeminds does not download networks: export one to "
            "an ONNX file first (see the documentation's page on features)."
        )
    return file


def digest_of_model(path: str | os.PathLike[str]) -> str:
    """Return the digest of a network, including weights in a second file."""
    file = model_file(path)
    weights = file.with_name(f"{file.name}.data")
    parts = [digest_of_file(part) for part in (file, weights) if part.is_file()]
    return digest(*parts).hex()


def refuse_broken_rows(rows: NDArray[Any], path: Path, inputs: Sequence[Any]) -> None:
    """Raise ValueError with the inputs for which a network returned NaN or infinity."""
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if bad.size:
        named = [
            str(thing)[:60] if isinstance(thing, str | Path) else "an array" for thing in inputs
        ]
        raise ValueError(
            f"{path} returned NaN or infinity for {listing([named[place] for place in bad])}. "
            "Leave these inputs out."
        )


_LONGEST_WORD = 100
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


class WordPiece:
    """The WordPiece tokenizer of BERT and its descendants, from a vocabulary file."""

    def __init__(self, vocabulary: str | os.PathLike[str], *, lower: bool = True) -> None:
        path = Path(vocabulary)
        if not path.is_file():
            raise FileNotFoundError(
                f"There is no vocabulary at {path}. Pass the network's vocab.txt."
            )
        lines = path.read_text(encoding="utf-8").splitlines()
        self.numbers = {line.strip(): number for number, line in enumerate(lines)}
        missing = [word for word in _SPECIAL if word not in self.numbers]
        if missing:
            raise ValueError(
                f"{path} is not a WordPiece vocabulary: it lacks {', '.join(missing)}. Pass the "
                "network's vocab.txt."
            )
        self.lower = lower
        self.pad = self.numbers["[PAD]"]

    def encode(self, text: str, max_length: int) -> list[int]:
        """Return the numbers of the tokens of a text, with [CLS] first and [SEP] last."""
        pieces = [piece for word in _words(text, lower=self.lower) for piece in self._split(word)]
        start, end = self.numbers["[CLS]"], self.numbers["[SEP]"]
        return [start, *pieces[: max_length - 2], end]

    def _split(self, word: str) -> list[int]:
        unknown = [self.numbers["[UNK]"]]
        if len(word) > _LONGEST_WORD:
            return unknown
        pieces, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((e for e in ends if prefix + word[start:e] in self.numbers), None)
            if end is None:
                return unknown
            pieces.append(self.numbers[prefix + word[start:end]])
            start = end
        return pieces


def _words(text: str, *, lower: bool) -> Iterator[str]:
    if lower:
        decomposed = unicodedata.normalize("NFD", text.lower())
        text = "".join(sign for sign in decomposed if unicodedata.category(sign) != "Mn")
    spaced = "".join(f" {sign} " if _is_own_word(sign) else _clean(sign) for sign in text)
    yield from spaced.split()


def _is_own_word(sign: str) -> bool:
    """Return whether a character is a separate word: punctuation and Chinese characters."""
    is_ascii_symbol = sign.isascii() and sign.isprintable() and not (sign.isalnum() or sign == " ")
    is_ideograph = "CJK" in unicodedata.name(sign, "") and unicodedata.category(sign) == "Lo"
    return is_ascii_symbol or is_ideograph or unicodedata.category(sign).startswith("P")


def _clean(sign: str) -> str:
    if sign.isspace():
        return " "
    return "" if unicodedata.category(sign).startswith("C") or sign == "\ufffd" else sign


@dataclass(eq=False, repr=False)
class DeepFeatures(Extractor):
    """The output of an image network in a local ONNX file.

    The input of the network is a batch of RGB pictures, channels first or last. The output is one
    row of values per picture, or maps of values, which are averaged over the picture. Needs the
    extra ``onnx``. Nothing is downloaded: the page on features shows how to export networks.

    Parameters
    ----------
    model : path
        The ONNX file.
    size : int
        The side of the network's square inputs.
    crop : float
        The share of a picture's shorter side that is inside the square.
    mean, std : three floats
        Red, green and blue (0 to 1) are standardised with these means and standard deviations; by
        default, those of most networks trained on ImageNet.
    output : str, optional
        The name of the output; needed if the file has more than one.
    n_values : int, optional
        The expected number of values; another number raises ValueError.
    n_threads : int, optional
        The largest number of threads of the network.
    batch_size, cache, progress
        As in `likeminds.features.GIST`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Extractor._parameter_constraints,
        "size": [POSITIVE],
        "crop": [Interval(Real, 0, 1, closed="right")],
    }

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
        for name in ("mean", "std"):
            if len(getattr(self, name)) != 3:
                given = getattr(self, name)
                raise ValueError(f"{name} must have three values (red, green, blue), not {given}.")
        if not all(self.std):
            raise ValueError(f"std must not contain zero, but is {self.std}.")
        model_file(self.model)

    def _recipe(self) -> dict[str, Any]:
        # The digest is of the content: the file may be replaced or moved.
        return super()._recipe() | {"model": digest_of_model(self.model)}

    def _extractor(self) -> Callable[[Sequence[Any]], Rows]:
        network = _PictureNetwork(self)
        mean, std = (np.array(values, dtype=np.float32) for values in (self.mean, self.std))

        def extract(images: Sequence[Any]) -> Rows:
            pixels = np.stack([read_image(image, self.size, self.crop) for image in images])
            scaled = ((pixels / np.float32(255) - mean) / std).astype(np.float32, copy=False)
            rows = network.rows(scaled)
            refuse_broken_rows(rows, network.path, images)
            if self.n_values not in {None, rows.shape[1]}:
                raise ValueError(
                    f"{self.model} returns {rows.shape[1]:,} values per picture instead of "
                    f"{self.n_values:,}, so its last layer may be another one. Export it without "
                    "its classifier (see the documentation's page on features), or pass output=."
                )
            return rows

        return extract

    def _names(self) -> list[str]:
        blank = np.zeros((1, self.size, self.size, 3), dtype=np.float32)
        n_values = self.n_values or _PictureNetwork(self).rows(blank).shape[1]
        return [f"deep_{position}" for position in range(n_values)]


def inception_v3(model: str | os.PathLike[str], **options: Any) -> DeepFeatures:
    """Return the extractor of Inception-V3's second-last layer, 2,048 values.

    Pictures are 299 x 299 pixels from 87.5 % of the shorter side, with values from -1 to 1, as in
    the training of the network. The paper uses it for SUN.

    Parameters
    ----------
    model : path
        Inception-V3 without its last layer as an ONNX file; the page on features shows how to
        export it.
    **options
        Further parameters of `DeepFeatures`.
    """
    half = (0.5, 0.5, 0.5)
    preset: dict[str, Any] = {"size": 299, "crop": 0.875, "mean": half, "std": half}
    return DeepFeatures(model, **(preset | {"n_values": 2048} | options))


class _PictureNetwork(Network):
    """A network of pictures, with channels first or last, and a fixed or variable batch size."""

    def __init__(self, features: DeepFeatures) -> None:
        super().__init__(features.model, features.output, features.n_threads)
        if len(self.inputs) != 1:
            raise ValueError(
                f"{self.path} must have one input, the pictures, but has {', '.join(self.inputs)}."
            )
        ((self.name, tensor),) = self.inputs.items()
        shape = list(tensor.shape)
        if len(shape) != 4 or 3 not in {shape[1], shape[3]}:
            raise ValueError(
                f"The input {self.name} of {self.path} has shape {shape}, but must have "
                "(n, 3, height, width) or (n, height, width, 3)."
            )
        self.channels_first = shape[1] == 3
        lengths = shape[2:4] if self.channels_first else shape[1:3]
        if any(isinstance(side, int) and side != features.size for side in lengths):
            raise ValueError(f"{self.path} needs pictures of {lengths}: pass size={lengths[0]}.")
        self.batch = shape[0] if isinstance(shape[0], int) else None

    def rows(self, pictures: NDArray[np.float32]) -> Rows:
        """Return one row per picture, from (n, height, width, 3)."""
        batch = self.batch or len(pictures)
        parts = []
        for start in range(0, len(pictures), batch):
            part = pictures[start : start + batch]
            blank = np.zeros_like(pictures[:1]).repeat(batch - len(part), 0)
            parts.append(self._pool(np.concatenate([part, blank]))[: len(part)])
        return np.concatenate(parts)

    def _pool(self, pictures: NDArray[np.float32]) -> Rows:
        fed = pictures.transpose(0, 3, 1, 2) if self.channels_first else pictures
        values = self.run({self.name: np.ascontiguousarray(fed)})
        if values.ndim == 4:
            values = values.mean(axis=(2, 3) if self.channels_first else (1, 2))
        if values.ndim != 2 or len(values) != len(pictures):
            raise ValueError(
                f"The output {self.output} of {self.path} has shape {values.shape} for "
                f"{len(pictures)} picture(s), but must have one row, or a map, per picture."
            )
        return values.astype(np.float32, copy=False)
