"""Features of texts: latent semantic analysis, or embeddings of a language model."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from likeminds._util.checks import listing
from likeminds._util.map_reduce import one_blas_thread
from likeminds._util.text_format import TEXT_NAME
from likeminds.features.deep import (
    Network,
    WordPiece,
    digest_of_model,
    model_file,
    refuse_broken_rows,
)
from likeminds.features.extractor import POSITIVE, Extractor, Names, Rows, digest

# The lengths of pieces of words; with many texts, pieces of a single text are left out.
_PIECES, _MANY_TEXTS = (2, 5), 100
# Components are named after this many words, none of which is in more than this share of texts.
_WORDS_IN_A_NAME, _COMMON = 3, 0.1
# With many texts, the weight of a naming word is at least this share of the strongest word's, and
# at least this number. Components have length one.
_STRONG, _TELLING = 0.5, 0.125
# Longer words are mostly repeated letters, or addresses.
_LONGEST = 40
# Up to this many texts are decomposed exactly, by the eigenvectors of their inner products.
_EXACTLY = 3000
# Directions with less than this share of the largest square are rounding errors.
_ROUNDING = 1e-10
# Fragments such as those of "don't" and "we'll", and words that fit any subject.
_SMALL_WORDS = ENGLISH_STOP_WORDS | {
    *("ain", "aren", "couldn", "didn", "doesn", "don", "hadn", "hasn", "haven", "isn", "ll"),
    *("shouldn", "ve", "wasn", "weren", "wouldn", "does", "did", "doing", "got", "getting"),
    *("know", "think", "thought", "want", "wanted", "say", "said", "saying", "make", "makes"),
    *("really", "actually", "just", "like", "thing", "inputs", "way", "lot", "kind", "sure"),
    *("good", "right", "going", "gonna", "need", "look", "come", "feel", "try", "let", "yes"),
    *("understand", "people", "time", "point", "maybe", "probably", "pretty", "literally"),
}


def as_texts(texts: Iterable[str]) -> list[str]:
    """Return texts as a list; raise TypeError for values that are not texts."""
    if isinstance(texts, str):
        raise TypeError("Pass a list of texts, not one text: [text].")
    listed = list(texts)
    if not listed:
        raise ValueError("The list of texts is empty. Pass at least one.")
    bad = [position for position, text in enumerate(listed) if not isinstance(text, str)]
    if bad:
        raise TypeError(
            f"Texts must be strings, but those at position(s) {listing(bad)} are not "
            f"(the first is {listed[bad[0]]!r}). Fill in or drop them."
        )
    return [str(text) for text in listed]


def digest_of_text(text: str) -> bytes:
    """Return the digest of a text."""
    return digest(text.encode())


class TextFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Latent semantic analysis: TF-IDF of words and of pieces of words, then a truncated SVD.

    Vocabulary and singular vectors are learned from the texts passed to `fit`: pass training texts.
    Each row has length 1, or 0 without any of the words. Components are named after their strongest
    words, or component_1, component_2, ... if these words are too general. Components that explain
    more of the texts have larger variances. So pass ``standardize=False`` to rankers without other
    features.

    Parameters
    ----------
    n_components : int
        The number of features; fewer if there are fewer texts or words.
    ngram_range : pair of int
        The smallest and the largest number of words in a run.
    min_df : int or float
        Leave out words in fewer texts than this number, or this share.
    stop_words : "english" or list of str, optional
        Words to leave out.
    characters : bool
        Whether to add pieces of words, of 2 to 5 letters, which match inflected and misspelt words.
    random_state : int, optional
        Makes the decomposition reproducible.

    Attributes
    ----------
    vectorizer_, pieces_ : TfidfVectorizer, TfidfVectorizer or None
        The fitted vectorizers of words and of pieces of words.
    components_ : array of shape (n_features, n_words)
        The singular vectors of these counts.
    n_texts_ : int
        The number of texts passed to `fit`.

    Examples
    --------
    >>> texts = ["a red shoe", "a red boot", "an open sandal", "an open sandal, red"]
    >>> words = TextFeatures(n_components=2, random_state=0).fit(texts)
    >>> rows = words.transform(texts)
    >>> likeness = rows @ rows.T
    >>> bool(likeness[0, 1] > likeness[0, 2])
    True
    >>> words.get_feature_names_out()[0]
    'text: an, open, sandal'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"n_components": [POSITIVE]}

    def __init__(
        self,
        n_components: int = 300,
        *,
        ngram_range: tuple[int, int] = (1, 1),
        min_df: float = 1,
        stop_words: str | Sequence[str] | None = None,
        characters: bool = True,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.ngram_range = ngram_range
        self.min_df = min_df
        self.stop_words = stop_words
        self.characters = characters
        self.random_state = random_state

    def fit(self, X: Iterable[str], y: ArrayLike | None = None) -> Self:
        """Learn the vocabulary and the singular vectors."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Iterable[str], y: ArrayLike | None = None) -> NDArray[Any]:  # noqa: ARG002
        """Fit to texts, and return their features, in one pass over the texts."""
        texts = as_texts(X)
        self._validate_params()
        words = TfidfVectorizer(
            ngram_range=self.ngram_range,
            min_df=self.min_df,
            stop_words=self.stop_words,
            sublinear_tf=True,
        )
        try:
            counts = words.fit_transform(texts)
        except ValueError as error:
            raise ValueError(
                f"No words are left in the {len(texts)} texts: {error} "
                "Lower min_df, or leave out stop_words."
            ) from error
        self.vectorizer_, self.pieces_ = words, None
        if self.characters:
            least = 2 if len(texts) >= _MANY_TEXTS else 1
            pieces = TfidfVectorizer(
                analyzer="char_wb", ngram_range=_PIECES, min_df=least, sublinear_tf=True
            )
            counts = sparse.hstack([counts, pieces.fit_transform(texts)]).tocsr()
            self.pieces_ = pieces
        components = _singular_vectors(counts, self.n_components, self.random_state)
        # Signs do not depend on the solver: the strongest word of a component is positive.
        of_words = components[:, : len(words.vocabulary_)]
        strongest = np.abs(of_words).argmax(axis=1)
        signs = np.sign(of_words[np.arange(len(of_words)), strongest])
        self.components_ = components * np.where(signs == 0, 1.0, signs)[:, np.newaxis]
        self.n_texts_ = len(texts)
        return np.asarray(normalize(counts @ self.components_.T))

    def transform(self, X: Iterable[str]) -> NDArray[Any]:
        """Return the features of texts; unknown words are ignored."""
        check_is_fitted(self)
        return np.asarray(normalize(self._counts(as_texts(X)) @ self.components_.T))

    def get_feature_names_out(self, input_features: object = None) -> Names:  # noqa: ARG002
        """Return the names of the columns: the words with the largest weights."""
        check_is_fitted(self)
        words = self.vectorizer_.get_feature_names_out()
        of_words = self.components_[:, : len(words)]
        topical, many = self._is_topic_word(), self.n_texts_ >= _MANY_TEXTS
        named: list[str] = []
        for place, weights in enumerate(of_words):
            strongest = np.argsort(-weights, kind="stable")
            least = max(_STRONG * np.abs(weights).max(), _TELLING) if many else 0.0
            candidates = strongest[topical[strongest] & (weights[strongest] > least)]
            best = (candidates if len(candidates) or many else strongest)[:_WORDS_IN_A_NAME]
            name = f"{TEXT_NAME}{', '.join(words[best])}"
            again = sum(other == name or other.startswith(f"{name} (") for other in named)
            if many and (again or not len(best)):  # no word distinguishes it from the others
                name, again = f"component_{place + 1}", 0
            named.append(f"{name} ({again + 1})" if again else name)
        return np.array(named, dtype=object)

    def _is_topic_word(self) -> NDArray[np.bool_]:
        """Return which words may name a component: neither stop words nor words of many texts.

        With many texts, words of a single text may not, either.
        """
        words, idf = self.vectorizer_.get_feature_names_out(), self.vectorizer_.idf_
        # With n texts, a word in m of them has the weight 1 + log((1 + n) / (1 + m)).
        share = np.exp(1.0 - idf)
        rare = share < _COMMON
        if self.n_texts_ >= _MANY_TEXTS:
            rare &= share * (1 + self.n_texts_) > 2.5  # not the word of a single text
        plain = [
            len(run) <= _LONGEST and any(w not in _SMALL_WORDS for w in run.split())
            for run in words
        ]
        return np.asarray(rare & np.array(plain, dtype=np.bool_))

    def _counts(self, texts: list[str]) -> Any:
        counts = self.vectorizer_.transform(texts)
        if self.pieces_ is None:
            return counts
        return sparse.hstack([counts, self.pieces_.transform(texts)]).tocsr()


@dataclass(eq=False, repr=False)
class SentenceEmbeddings(Extractor):
    """Embeddings of texts by a language model in a local ONNX file.

    For networks of the BERT family, such as those of sentence-transformers. The inputs are
    ``input_ids`` and, if the network has them, ``attention_mask`` and ``token_type_ids``. The
    output is one row per text, or rows per token, which are pooled. Needs the extra ``onnx``;
    nothing is downloaded.

    Parameters
    ----------
    model : path
        The ONNX file.
    vocabulary : path
        The network's ``vocab.txt``.
    max_length : int
        Texts are truncated to this number of tokens.
    pooling : {"mean", "first"}
        Average the rows of a text's tokens, or take the first row.
    normalise : bool
        Scale each row to length 1.
    lower : bool
        Convert texts to lower case first, as "uncased" networks require.
    output : str, optional
        The name of the output; needed if the file has more than one.
    n_threads : int, optional
        The largest number of threads of the network.
    batch_size, cache, progress
        As in `likeminds.features.GIST`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Extractor._parameter_constraints,
        "pooling": [StrOptions({"mean", "first"})],
        "max_length": [Interval(Integral, 3, None, closed="left")],
    }

    model: str | os.PathLike[str]
    vocabulary: str | os.PathLike[str]
    _: KW_ONLY
    max_length: int = 256
    pooling: Literal["mean", "first"] = "mean"
    normalise: bool = True
    lower: bool = True
    output: str | None = None
    n_threads: int | None = None

    _as_inputs = staticmethod(as_texts)
    _digest = staticmethod(digest_of_text)

    def _check(self) -> None:
        super()._check()
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
                f"{network.path} has inputs {listing(list(network.inputs))}, but not input_ids. "
                "Pass a network of the BERT family."
            )
        tokens = WordPiece(self.vocabulary, lower=self.lower)

        def extract(texts: Sequence[Any]) -> Rows:
            rows = self._embed(network, tokens, texts)
            refuse_broken_rows(rows, network.path, texts)
            return normalize(rows) if self.normalise else rows

        return extract

    def _embed(self, network: Network, tokens: WordPiece, texts: Sequence[str]) -> Rows:
        encoded = [tokens.encode(text, self.max_length) for text in texts]
        lengths = np.array([len(numbers) for numbers in encoded])
        is_token = np.arange(lengths.max()) < lengths[:, np.newaxis]
        ids = np.full(is_token.shape, tokens.pad, dtype=np.int64)
        ids[is_token] = np.concatenate(encoded)
        possible = {
            "input_ids": ids,
            "attention_mask": is_token.astype(np.int64),
            "token_type_ids": np.zeros_like(ids),
        }
        feed = {name: array for name, array in possible.items() if name in network.inputs}
        values = network.run(feed).astype(np.float32, copy=False)
        if values.ndim == 3 and self.pooling == "first":
            return values[:, 0]
        if values.ndim == 3:
            # Padding may hold anything, so it is left out of the sum, not multiplied by 0.
            sums = np.where(is_token[:, :, np.newaxis], values, 0).sum(axis=1)
            means: Rows = (sums / lengths[:, np.newaxis]).astype(np.float32)
            return means
        if values.ndim != 2 or len(values) != len(texts):
            raise ValueError(
                f"The output {network.output} of {network.path} has shape {values.shape}, but must "
                "have one row per text, or one per token. Pass output= to choose another."
            )
        return values

    def _names(self) -> list[str]:
        length = self._extractor()(["a"]).shape[1]
        return [f"sentence_{position}" for position in range(length)]


@one_blas_thread()
def _singular_vectors(
    counts: sparse.csr_matrix, n_components: int, random_state: int | None
) -> NDArray[Any]:
    """Return the leading right singular vectors, which are exact for few texts."""
    n_components = min(n_components, *counts.shape)
    if counts.shape[0] > _EXACTLY:
        svd = TruncatedSVD(n_components, random_state=random_state).fit(counts)
        return np.asarray(svd.components_)
    n = counts.shape[0]
    squares, left = eigh((counts @ counts.T).toarray(), subset_by_index=[n - n_components, n - 1])
    real = squares[::-1] > _ROUNDING * squares[-1]
    lengths = np.sqrt(squares[::-1][real])
    return np.asarray((counts.T @ (left[:, ::-1][:, real] / lengths)).T)
