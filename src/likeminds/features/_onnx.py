"""Networks in ONNX files, and the WordPiece tokenizer of language networks."""

import os
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._util.checks import listing
from likeminds._util.lazy_imports import require
from likeminds.features.feature_cache import digest, digest_of_file

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
        except Exception as error:  # each kind of damage has an exception class of its own
            raise ValueError(f"{self.path} cannot be opened as an ONNX network: {error}") from error
        self.inputs = {tensor.name: tensor for tensor in self._session.get_inputs()}
        self.output = self._choose(output)

    def run(self, values: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Return the chosen output for the inputs, which are cast to what the network takes."""
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
                f"The input {name} of {self.path} is a {kind}; known are {', '.join(_TYPES)}."
            )
        return _TYPES[kind]

    def _choose(self, output: str | None) -> str:
        names = [tensor.name for tensor in self._session.get_outputs()]
        if output is None and len(names) > 1:
            raise ValueError(
                f"{self.path} has several outputs: {listing(names)}. Pass output= to choose one."
            )
        if output is not None and output not in names:
            raise ValueError(f"{self.path} has no output {output!r}; there are {listing(names)}.")
        return output or names[0]


def model_file(path: str | os.PathLike[str]) -> Path:
    """Return the path of a network if there is a file."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(
            f"There is no network at {file}. likeminds downloads nothing: export the network "
            "to an ONNX file first (three lines, on the documentation's page on features)."
        )
    return file


def digest_of_model(path: str | os.PathLike[str]) -> str:
    """Return the digest of a network, its weights in a second file included."""
    file = model_file(path)
    weights = file.with_name(f"{file.name}.data")
    parts = [digest_of_file(part) for part in (file, weights) if part.is_file()]
    return digest(*parts).hex()


def refuse_broken_rows(rows: NDArray[Any], path: Path, inputs: Sequence[Any]) -> None:
    """Name the inputs for which a network returned NaN or infinity."""
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if bad.size:
        named = [
            str(thing)[:60] if isinstance(thing, str | Path) else "an array" for thing in inputs
        ]
        raise ValueError(
            f"{path} returned NaN or infinity for {listing([named[place] for place in bad])}."
        )


_LONGEST_WORD = 100
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


class WordPiece:
    """The WordPiece tokenizer of BERT and its descendants, from a vocabulary file."""

    def __init__(self, vocabulary: str | os.PathLike[str], *, lower: bool = True) -> None:
        path = Path(vocabulary)
        if not path.is_file():
            raise FileNotFoundError(
                f"There is no vocabulary at {path}; it comes with the network (vocab.txt)."
            )
        lines = path.read_text(encoding="utf-8").splitlines()
        self.numbers = {line.strip(): number for number, line in enumerate(lines)}
        missing = [word for word in _SPECIAL if word not in self.numbers]
        if missing:
            raise ValueError(
                f"{path} is not a vocabulary of word pieces: it lacks {', '.join(missing)}."
            )
        self.lower = lower
        self.pad = self.numbers["[PAD]"]

    def encode(self, text: str, max_length: int) -> list[int]:
        """Return the numbers of a text's tokens, between those of [CLS] and [SEP]."""
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
    """Return whether a character is a word by itself: punctuation, and Chinese characters."""
    is_ascii_symbol = sign.isascii() and sign.isprintable() and not (sign.isalnum() or sign == " ")
    is_ideograph = "CJK" in unicodedata.name(sign, "") and unicodedata.category(sign) == "Lo"
    return is_ascii_symbol or is_ideograph or unicodedata.category(sign).startswith("P")


def _clean(sign: str) -> str:
    if sign.isspace():
        return " "
    return "" if unicodedata.category(sign).startswith("C") or sign == "\ufffd" else sign
