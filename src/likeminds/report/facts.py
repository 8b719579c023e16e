"""Everything that a report says about one attribute, computed once."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likeminds.data.annotations import Annotations
from likeminds.diagnostics import Diagnostics, diagnose
from likeminds.metrics.by_person import MetricByPerson
from likeminds.metrics.paired import PairedDifference, over_people
from likeminds.schools import Schools, find_schools
from likeminds.schools.items import Items
from likeminds.schools.levels import Levels, unwrapped


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known about one ranker.

    Attributes
    ----------
    ranker : ranker
        What was fitted.
    annotations : Annotations or None
        The labels and items it is shown with.
    schools : Schools or None
        None where the ranker has no group level.
    diagnostics : Diagnostics or None
        None without labels.
    images
        Pictures of the items, as `write_report` takes them.
    """

    ranker: Any
    annotations: Annotations | None
    schools: Schools | None
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
        judge_people: bool,
    ) -> "Facts":
        """Find the schools and judge the people, where there is what it takes."""
        inner = unwrapped(ranker)
        if annotations is None:
            annotations = getattr(inner, "annotations_", None)
        schools = None
        if _has_group_level(ranker):
            schools = find_schools(ranker, annotations, n_schools)
        diagnostics = None
        if held_out is not None:
            diagnostics = diagnose(ranker, held_out, n_folds=None)
        elif judge_people and annotations is not None:
            diagnostics = diagnose(ranker, annotations)
        return cls(ranker, annotations, schools, diagnostics, images)

    @property
    def n_people(self) -> int:
        """How many people the ranker knows."""
        return len(unwrapped(self.ranker).users_)

    @cached_property
    def items(self) -> Items | None:
        """The items, where there are any."""
        if self.annotations is None:
            return None
        return Items.of_annotations(self.annotations, np.random.default_rng(0))

    @cached_property
    def levels(self) -> Levels:
        """The ranker's levels, all people equally decided."""
        if self.schools is None:
            raise ValueError("This ranker has no group level.")
        return Levels.of_ranker(self.ranker).alike(self.schools.spread)

    def accuracy(self) -> tuple[MetricByPerson, MetricByPerson, PairedDifference] | None:
        """Return AUCs by own function and by the consensus, and what lies between them."""
        found = self.diagnostics
        if found is None or not np.isfinite(found.own_auc).any():
            return None
        own, shared = found.own_auc, found.consensus_auc
        return (
            MetricByPerson(found.users, own),
            MetricByPerson(found.users, shared),
            over_people(own - shared),
        )


def _has_group_level(ranker: Any) -> bool:
    try:
        Levels.of_ranker(ranker)
    except TypeError:
        return False
    return True
