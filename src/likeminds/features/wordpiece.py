"""BERT's WordPiece tokenizer: lower case, no accents, longest known pieces first."""

import os
import unicodedata
from collections.abc import Iterator
from pathlib import Path

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
                f"{path} is no vocabulary of word pieces: it lacks {', '.join(missing)}."
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
    spaced = "".join(f" {sign} " if _stands_alone(sign) else _clean(sign) for sign in text)
    yield from spaced.split()


def _stands_alone(sign: str) -> bool:
    """Return whether a character is a word by itself: punctuation, and Chinese characters."""
    is_ascii_symbol = sign.isascii() and sign.isprintable() and not (sign.isalnum() or sign == " ")
    is_ideograph = "CJK" in unicodedata.name(sign, "") and unicodedata.category(sign) == "Lo"
    return is_ascii_symbol or is_ideograph or unicodedata.category(sign).startswith("P")


def _clean(sign: str) -> str:
    if sign.isspace():
        return " "
    return "" if unicodedata.category(sign).startswith("C") or sign == "\ufffd" else sign
