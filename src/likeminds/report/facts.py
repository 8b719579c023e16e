"""The facts of a report about one attribute, computed once."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.verbs import Verb
from likeminds.data.annotations import Annotations
from likeminds.diagnostics import Diagnostics, diagnose
from likeminds.metrics.by_user import MetricByUser
from likeminds.metrics.paired import PairedDifference
from likeminds.plots.thumbnails import Images
from likeminds.rankers.capabilities import Capability
from likeminds.rankers.ranker import Ranker
from likeminds.schools import Explanation, Schools
from likeminds.schools.items import Items
from likeminds.schools.school_names import are_telling
from likeminds.schools.weight_levels import as_ranker


@dataclass(frozen=True, eq=False)
class ReportFacts:
    """A ranker's explanation, its labels, and the diagnostics, which need labels."""

    explained: Explanation
    annotations: Annotations | None
    diagnostics: Diagnostics | None
    images: Images

    @classmethod
    def gather(
        cls,
        ranker: Ranker,
        annotations: Annotations | None,
        held_out: Annotations | None,
        images: Images,
        *,
        n_schools: int | str,
        judge_users: bool,
        texts: Mapping[Hashable, str] | None = None,
    ) -> "ReportFacts":
        """Explain the ranker, and run the diagnostics if there are labels."""
        if annotations is None:
            annotations = as_ranker(ranker).training_annotations_
        explained = Explanation.of_ranker(ranker, annotations, n_schools, texts)
        diagnostics = None
        if held_out is not None:
            diagnostics = diagnose(ranker, held_out, n_folds=None)
        elif judge_users and annotations is not None:
            diagnostics = diagnose(ranker, annotations)
        return cls(explained, annotations, diagnostics, images)

    @property
    def n_users(self) -> int:
        """The number of users of the ranker."""
        return len(self.ranker.users_)

    @cached_property
    def n_items(self) -> int:
        """The number of distinct items with labels; without ids, by their features."""
        labels = self.annotations
        if labels is None:
            return 0
        items = np.unique(labels.item_codes) if labels.has_items else np.unique(labels.X, axis=0)
        return len(items)

    @property
    def ranker(self) -> Any:
        """The fitted ranker."""
        return self.explained.ranker

    @property
    def verb(self) -> Verb:
        """What people do with items."""
        return self.explained.verb

    @property
    def items(self) -> Items | None:
        """The items, if any."""
        return self.explained.items

    def are_pictures_telling(self, strength: Float) -> bool:
        """Tell whether pictures show a difference better than names of features."""
        if self.images is None or self.schools is None:
            return False
        return not are_telling(strength, self.schools.feature_names)

    @cached_property
    def schools(self) -> Schools | None:
        """The schools; None where the ranker has no group level."""
        return self.explained.schools if Capability.LEVELS.of(self.ranker._best_model) else None

    @property
    def cut(self) -> str | None:
        """The highest grade that counts as a no; None where labels are yes or no."""
        reading = None if self.annotations is None else self.annotations.reading
        if reading is None or reading.grades is None or not isinstance(reading.threshold, float):
            return None
        words = reading.grades
        return str(words[int(reading.threshold)]) if words else f"{reading.threshold:g}"

    def accuracy(self) -> tuple[MetricByUser, MetricByUser, PairedDifference] | None:
        """Return AUCs by own function and by the consensus, and their paired difference."""
        found = self.diagnostics
        if found is None or not np.isfinite(found.own_auc).any():
            return None
        own, shared = (MetricByUser(found.users, a) for a in (found.own_auc, found.consensus_auc))
        return own, shared, found.gain
