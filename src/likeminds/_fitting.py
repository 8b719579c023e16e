"""What rankers fitted to a quadratic loss share: from annotations to levels of weights."""

import warnings

import numpy as np

from likeminds._checks import counted, listing
from likeminds._ranker import Ranker
from likeminds.annotations import Annotations
from likeminds.identifiers import IdArray
from likeminds.losses import QuadraticLoss, squared_auc
from likeminds.rows import Bool, Float
from likeminds.statistics import Statistics


class LevelsRanker(Ranker):
    """Base of the rankers whose weights are consensus + group + personal.

    A subclass finds the three levels of a loss in ``_fit_loss``; this class makes the loss
    from the annotations, and the fitted attributes from the levels.
    """

    standardize: bool

    group_: Float
    personal_: Float
    scale_: Float
    statistics_: Statistics

    def _fit_annotations(self, annotations: Annotations) -> None:
        self.__dict__.pop("statistics_", None)  # a fit starts afresh
        self._fit_statistics(Statistics.from_annotations(annotations))

    def _fit_statistics(self, statistics: Statistics) -> None:
        has_pairs = statistics.has_pairs
        _warn_of_one_class(statistics.user_ids, has_pairs)
        n_features = statistics.n_features
        self.scale_ = statistics.feature_scale() if self.standardize else np.ones(n_features)
        levels = self._fit_loss(squared_auc(statistics, self.scale_), statistics)
        self.users_ = statistics.user_ids
        self.statistics_ = statistics
        self._set_levels(levels, has_pairs)

    def _fit_loss(self, loss: QuadraticLoss, statistics: Statistics) -> tuple[Float, Float, Float]:
        """Return theta, G and P that minimise the loss and the ranker's penalties."""
        raise NotImplementedError

    def _set_levels(self, levels: tuple[Float, Float, Float], has_pairs: Bool) -> None:
        theta, G, P = (level / self.scale_ for level in levels)
        self.raw_consensus_, self.raw_group_, self.raw_personal_ = theta, G, P
        # People without pairs teach nothing and get the consensus: they are not part of the
        # mean, and their own deviation is zero.
        mean_group = G[has_pairs].mean(axis=0)
        self.consensus_ = theta + mean_group
        self.group_ = np.where(has_pairs[:, None], G - mean_group, 0.0)
        self.personal_ = np.where(has_pairs[:, None], P, 0.0)
        self.coef_ = self.consensus_ + self.group_ + self.personal_


def _warn_of_one_class(user_ids: IdArray, has_pairs: Bool) -> None:
    if not has_pairs.any():
        raise ValueError(
            "Everybody's labels are of one class, so there is no pair to rank: a ranker "
            "needs at least one person with a positive and a negative label."
        )
    if not has_pairs.all():
        people = user_ids[~has_pairs]
        warnings.warn(
            f"The labels of {counted(len(people), 'person', 'people')} are of one class only, "
            f"which says nothing about a ranking; they get the consensus: {listing(people)}.",
            UserWarning,
            stacklevel=5,
        )
