"""Features of texts: latent semantic analysis, or embeddings of a language network."""

import os
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from likeminds._support.checks import listing
from likeminds.features._onnx import Network, digest_of_model, model_file, refuse_broken_rows
from likeminds.features.base import Extractor, Names, one_of, positive_integer
from likeminds.features.cache import Rows, digest
from likeminds.features.wordpiece import WordPiece


def as_texts(texts: Any) -> list[str]:
    """Return texts as a list, or say which are none."""
    if isinstance(texts, str):
        raise TypeError("Pass a list of texts, not one text: [text].")
    listed = list(texts)
    if not listed:
        raise ValueError("There are no texts: the list is empty.")
    bad = [position for position, text in enumerate(listed) if not isinstance(text, str)]
    if bad:
        raise TypeError(
            f"Texts must be strings, but those at position(s) {listing(bad)} are not "
            f"(the first is {listed[bad[0]]!r}). Fill in or drop them."
        )
    return [str(text) for text in listed]


class TextFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Latent semantic analysis: TF-IDF of words, then a truncated SVD.

    Vocabulary and singular vectors are learnt from the texts given to `fit`: fit on training
    texts. Each row has length 1, or 0 if it has none of the words.

    Parameters
    ----------
    n_components : int
        The number of features; fewer if there are fewer texts or words.
    ngram_range : pair of int
        Take runs of this many words.
    min_df : int or float
        Leave out words in fewer texts than that (a number, or a share).
    stop_words : "english" or list of str, optional
        Words to leave out.
    random_state : int, optional
        Makes the decomposition reproducible.

    Attributes
    ----------
    vectorizer_, svd_ : TfidfVectorizer, TruncatedSVD
        The two steps, fitted.

    Examples
    --------
    >>> texts = ["a red shoe", "a red boot", "an open sandal", "an open sandal, red"]
    >>> rows = TextFeatures(n_components=2, random_state=0).fit_transform(texts)
    >>> likeness = rows @ rows.T
    >>> bool(likeness[0, 1] > likeness[0, 2])
    True
    """

    def __init__(
        self,
        n_components: int = 100,
        *,
        ngram_range: tuple[int, int] = (1, 1),
        min_df: float = 1,
        stop_words: str | Sequence[str] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.ngram_range = ngram_range
        self.min_df = min_df
        self.stop_words = stop_words
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:  # noqa: ARG002 - scikit-learn
        """Learn the vocabulary and the singular vectors."""
        texts = as_texts(X)
        positive_integer(self.n_components, "n_components")
        vectorizer = TfidfVectorizer(
            ngram_range=self.ngram_range,
            min_df=self.min_df,
            stop_words=self.stop_words,
            sublinear_tf=True,
        )
        try:
            counts = vectorizer.fit_transform(texts)
        except ValueError as error:
            raise ValueError(
                f"No words are left in the {len(texts)} texts: {error} "
                "Lower min_df, or leave out stop_words."
            ) from error
        svd = TruncatedSVD(min(self.n_components, *counts.shape), random_state=self.random_state)
        with np.errstate(invalid="ignore"):  # one text has no variance to explain
            svd.fit(counts)
        self.vectorizer_, self.svd_ = vectorizer, svd
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the features of texts; words that are new count for nothing."""
        check_is_fitted(self)
        return _of_length_one(self.svd_.transform(self.vectorizer_.transform(as_texts(X))))

    def get_feature_names_out(self, input_features: Any = None) -> Names:  # noqa: ARG002
        """Return the names of the columns."""
        check_is_fitted(self)
        return np.array([f"text_{k}" for k in range(len(self.svd_.components_))], dtype=object)


@dataclass(eq=False, repr=False)
class SentenceEmbeddings(Extractor):
    """Embeddings of texts by a language network in a local ONNX file.

    For networks of the BERT family, such as those of sentence-transformers: the inputs are
    ``input_ids`` and, if the network has them, ``attention_mask`` and ``token_type_ids``.
    The output is one row per text, or one per token of a text, which are pooled. Needs
    ``likeminds[onnx]``; nothing is downloaded.

    Parameters
    ----------
    model : path
        The ONNX file.
    vocabulary : path
        The network's ``vocab.txt``.
    max_length : int
        Texts are cut after this many tokens.
    pooling : {"mean", "first"}
        Average the rows of a text's tokens, or take the first.
    normalise : bool
        Scale each row to length 1.
    lower : bool
        Make texts lower case first, as "uncased" networks want it.
    output : str, optional
        The name of the output; needed if the file has more than one.
    n_threads : int, optional
        How many threads the network may use.
    batch_size, cache, progress
        As in `likeminds.features.GIST`.
    """

    model: str | os.PathLike[str]
    vocabulary: str | os.PathLike[str]
    _: KW_ONLY
    max_length: int = 256
    pooling: Literal["mean", "first"] = "mean"
    normalise: bool = True
    lower: bool = True
    output: str | None = None
    n_threads: int | None = None

    def _as_things(self, X: Any) -> list[Any]:
        return as_texts(X)

    def _digest(self, thing: Any) -> bytes:
        return digest(thing.encode())

    def _check(self) -> None:
        super()._check()
        one_of(self.pooling, "pooling", ["mean", "first"])
        if self.max_length < 3:
            raise ValueError(f"max_length must be at least 3, but is {self.max_length}.")
        model_file(self.model)
        WordPiece(self.vocabulary, lower=self.lower)

    def _recipe(self) -> dict[str, Any]:
        vocabulary = WordPiece(self.vocabulary, lower=self.lower).numbers
        return super()._recipe() | {
            "model": digest_of_model(self.model),
            "vocabulary": digest("\n".join(vocabulary).encode()).hex(),
        }

    def _extractor(self) -> Callable[[Sequence[Any]], Rows]:
        network = Network(self.model, self.output, self.n_threads)
        if "input_ids" not in network.inputs:
            raise ValueError(
                f"{network.path} has inputs {listing(list(network.inputs))}, but not input_ids: "
                "it is no network for texts that this can use."
            )
        tokens = WordPiece(self.vocabulary, lower=self.lower)

        def extract(texts: Sequence[Any]) -> Rows:
            rows = self._embed(network, tokens, texts)
            refuse_broken_rows(rows, network.path, texts)
            return _of_length_one(rows) if self.normalise else rows

        return extract

    def _embed(self, network: Network, tokens: WordPiece, texts: Sequence[str]) -> Rows:
        encoded = [tokens.encode(text, self.max_length) for text in texts]
        lengths = np.array([len(numbers) for numbers in encoded])
        there = np.arange(lengths.max()) < lengths[:, np.newaxis]
        ids = np.full(there.shape, tokens.pad, dtype=np.int64)
        ids[there] = np.concatenate(encoded)
        possible = {
            "input_ids": ids,
            "attention_mask": there.astype(np.int64),
            "token_type_ids": np.zeros_like(ids),
        }
        known = {name: array for name, array in possible.items() if name in network.inputs}
        values = network.run(known).astype(np.float32, copy=False)
        if values.ndim == 3 and self.pooling == "first":
            return values[:, 0]
        if values.ndim == 3:
            # Padding may hold anything, so it is left out of the sum, not multiplied by 0.
            sums = np.where(there[:, :, np.newaxis], values, 0).sum(axis=1)
            means: Rows = (sums / lengths[:, np.newaxis]).astype(np.float32)
            return means
        if values.ndim != 2 or len(values) != len(texts):
            raise ValueError(
                f"The output {network.output} of {network.path} has shape {values.shape}; "
                "expected one row per text, or one per text and piece."
            )
        return values

    def _names(self) -> list[str]:
        length = self._extractor()(["a"]).shape[1]
        return [f"sentence_{position}" for position in range(length)]


def _of_length_one(rows: NDArray[Any]) -> NDArray[Any]:
    scaled: NDArray[Any] = normalize(rows)
    return scaled
