"""Everything that a report says about one attribute, computed once."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likeminds._util.verbs import Verb
from likeminds.data.annotations import Annotations
from likeminds.diagnostics import Diagnostics, diagnose
from likeminds.metrics.by_user import MetricByUser
from likeminds.metrics.paired import PairedDifference, over_users
from likeminds.rankers.capabilities import Capability
from likeminds.schools import Explanation, Schools
from likeminds.schools.items import Items
from likeminds.schools.weight_levels import as_ranker


@dataclass(frozen=True, eq=False)
class ReportFacts:
    """What is known about one ranker.

    Attributes
    ----------
    explained : Explanation
        What the ranker says about people and items.
    annotations : Annotations or None
        The labels and items it is shown with.
    diagnostics : Diagnostics or None
        None without labels.
    images
        Pictures of the items, as `write_report` takes them.
    """

    explained: Explanation
    annotations: Annotations | None
    diagnostics: Diagnostics | None
    images: Any

    @classmethod
    def gather(
        cls,
        ranker: Any,
        annotations: Annotations | None,
        held_out: Annotations | None,
        images: Any,
        *,
        n_schools: int | str,
        judge_users: bool,
        texts: Mapping[Hashable, str] | None = None,
    ) -> "ReportFacts":
        """Explain the ranker, and run the diagnostics where there are labels."""
        if annotations is None:
            annotations = as_ranker(ranker).kept_
        explained = Explanation.of_ranker(ranker, annotations, n_schools, texts)
        diagnostics = None
        if held_out is not None:
            diagnostics = diagnose(ranker, held_out, n_folds=None)
        elif judge_users and annotations is not None:
            diagnostics = diagnose(ranker, annotations)
        return cls(explained, annotations, diagnostics, images)

    @property
    def n_users(self) -> int:
        """How many people the ranker knows."""
        return len(self.ranker.people_)

    @cached_property
    def n_items(self) -> int:
        """How many distinct items the labels are about; without ids, by their features."""
        said = self.annotations
        if said is None:
            return 0
        if said.has_items:
            return len(np.unique(said.item_codes))
        return len(np.unique(said.X, axis=0))

    @property
    def ranker(self) -> Any:
        """What was fitted."""
        return self.explained.ranker

    @property
    def verb(self) -> Verb:
        """What people do with items."""
        return self.explained.verb

    @property
    def items(self) -> Items | None:
        """The items, where there are any."""
        return self.explained.items

    @cached_property
    def schools(self) -> Schools | None:
        """Who thinks alike; None where the ranker has no group level."""
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
        own, shared = found.own_auc, found.consensus_auc
        return (
            MetricByUser(found.users, own),
            MetricByUser(found.users, shared),
            over_users(own - shared),
        )
