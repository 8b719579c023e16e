"""Features of pictures and texts, and their reduction, as scikit-learn transformers.

>>> import numpy as np
>>> from likeminds.features import GIST, ColourHistogram
>>> from sklearn.pipeline import make_union
>>> pictures = np.random.default_rng(0).random((2, 64, 64, 3))
>>> make_union(GIST(size=64), ColourHistogram("lab", bins=10)).fit_transform(pictures).shape
(2, 542)
"""

from likeminds.features.deep import DeepFeatures, inception_v3
from likeminds.features.descriptors import GIST, ColourHistogram
from likeminds.features.images import list_images, read_image
from likeminds.features.reduction import Reduce
from likeminds.features.text import SentenceEmbeddings, TextFeatures

__all__ = [
    "GIST",
    "ColourHistogram",
    "DeepFeatures",
    "Reduce",
    "SentenceEmbeddings",
    "TextFeatures",
    "inception_v3",
    "list_images",
    "read_image",
]
