"""Labels as they travel between workers and this process: without the table of items."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from likeminds._util.array_types import FloatArray, IdArray, Index
from likeminds.cluster.item_broadcast import ItemBroadcast
from likeminds.data.annotations import Annotations


def columns_of(said: Annotations) -> tuple[Any, ...]:
    """Return labels as they travel: without the table of items."""
    return said.users, said.item_codes, said.outcomes, said.weights, said.choice_set_codes


def rows_joined(crowd: Any, found: Sequence[tuple[Any, ...]]) -> Annotations:
    """Put labels that come from several shards together: see `columns_of`."""
    users, items, labels, weights, groups = ([one[n] for one in found] for n in range(5))
    has_weights, has_groups = weights[0] is not None, groups[0] is not None
    if has_groups:
        ends = np.cumsum([0, *(int(one.max()) + 1 for one in groups)])
        groups = [one + end for one, end in zip(groups, ends, strict=False)]
    said = rows_about(
        crowd,
        np.concatenate(users),
        np.concatenate(items),
        np.concatenate(labels),
        weights=np.concatenate(weights) if has_weights else None,
        choice_sets=np.concatenate(groups) if has_groups else None,
    )
    return said if crowd.user_features is None else said.with_user_features(crowd.user_features)


def rows_about(
    crowd: Any,
    users: IdArray | Sequence[str],
    places: Index,
    labels: Any,
    *,
    weights: FloatArray | None = None,
    choice_sets: Index | None = None,
) -> Annotations:
    """Return labels about items of a crowd, by their places in the catalogue."""
    catalogue: ItemBroadcast = crowd.catalogue
    reading = crowd.labels.reading
    if crowd.labels.are_grades and reading.grades:
        labels = np.array(reading.grades, dtype=object)[np.asarray(labels, dtype=np.intp)]
    said = Annotations(
        users=users,
        items=catalogue.ids[places],
        labels=labels,
        features=catalogue.features,
        item_ids=catalogue.ids,
        feature_names=list(catalogue.names),
        features_per="item",
        weights=weights,
        choice_sets=choice_sets,
        reading=reading if crowd.labels.are_grades else None,
    )
    return said._with(reading=reading)
