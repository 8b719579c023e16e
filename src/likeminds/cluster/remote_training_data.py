"""Everybody's labels on a cluster, as a fit asks for them: sums, and tasks that are visited."""

import hashlib
from functools import partial
from typing import Any

import numpy as np

from likeminds._util.array_types import Bool, FloatArray, Index
from likeminds.choice_models.importance_sampling import refuse_many_draws
from likeminds.cluster.checkpoint_codec import mark_of
from likeminds.cluster.in_place_posteriors import settle_there
from likeminds.cluster.remote_blocks import (
    LossSettings,
    RemoteResponses,
    make_shard,
)
from likeminds.cluster.session import ClusterSession
from likeminds.cluster.wire_format import columns_of, rows_joined
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import lookup
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.grade_scale import GradeCounts
from likeminds.mixed_model.item_effects.item_responses import ItemEffects
from likeminds.mixed_model.item_posteriors import ItemPosteriors
from likeminds.mixed_model.likelihoods import Likelihood
from likeminds.mixed_model.losses import ALL_LOSSES, GradedLoss, PriorLoss
from likeminds.mixed_model.optimisers import PriorFit
from likeminds.mixed_model.responses import Responses
from likeminds.rankers.statistics_rankers import warn_of_one_class
from likeminds.rankers.training_data import DataSummary, ScoredLabels, TrainingData, rows_by_lot
from likeminds.storage.folders import UserFolder


class RemoteTrainingData(TrainingData):
    """Labels in shards.

    Parameters
    ----------
    crowd : Shards
        Where they are.
    ranker : HierarchicalRanker
        Who learns from them.
    folder : UserFolder, optional
        Where people go, who then do not come here.
    """

    def __init__(self, crowd: Any, ranker: Any, folder: UserFolder | None = None) -> None:
        census, catalogue = crowd.census, crowd.catalogue
        self._crowd, self._ranker, self._folder = crowd, ranker, folder
        self._site = ClusterSession(crowd.client, crowd.journal, crowd.traffic, crowd.tell)
        self._made: list[RemoteResponses] = []
        self._scored: ScoredLabels | None = None
        crowd.journal.open(about_fit(crowd, ranker))
        self.about = DataSummary(
            census.user_ids,
            catalogue.ids,
            crowd.user_features,
            catalogue.features.shape[1],
            census.n_labels,
            census.n_positive / census.n_labels,
            census.grades is not None,
        )

    @property
    def is_shared(self) -> bool:
        """Whether any item was labelled by two people."""
        return bool(self._crowd.census.is_shared)

    @property
    def n_directions(self) -> int:
        """In how many directions labelled items can differ."""
        return min(int((self._crowd.census.by_item > 0).sum()), self.about.n_features)

    def loss(self, asked: str | PriorLoss) -> PriorLoss:
        """Return the loss; refuse more draws than can be made, before anything is learned."""
        name = self._crowd.census.loss if asked == "auto" else asked
        about, known = self.about, self._ranker._specification()
        varying = about.n_features - len(known.fixed)
        refuse_many_draws(known.n_draws, len(about.user_ids), varying)
        return ALL_LOSSES[name] if isinstance(name, str) else name

    def refuse_one_class(self, *, teaches: bool) -> None:
        """Name the people whose labels are all alike, unless that ``teaches``."""
        if not teaches:
            warn_of_one_class(self._crowd.census.user_ids, self._crowd.census.has_pairs)

    def coordinates(
        self, *, standardize: bool, intercept: bool, every: bool, most: int | None
    ) -> Design:
        """Return coordinates of the labelled items; refuse wide ones."""
        if every:
            self.all_rows()
        return Design.of_table(
            self._crowd.catalogue.features,
            self._crowd.census.by_item,
            standardize=standardize,
            intercept=intercept,
            most=most,
        )

    def first_likelihood(self, loss: PriorLoss) -> Likelihood:
        """Return the likelihood that learning starts from."""
        return (
            loss.first_given(self.grades_given())
            if isinstance(loss, GradedLoss)
            else (loss.likelihood)
        )

    def tasks(
        self, loss: PriorLoss, likelihood: Likelihood, coordinates: Design, *, items: bool
    ) -> Responses:
        """Return the labels to be visited, where they are."""
        crowd, how = self._crowd, LossSettings(loss, likelihood, coordinates, items)
        shards = [
            self._site.submit(make_shard, said, how.of(places), places)
            for said, places in zip(crowd.said, crowd.census.places, strict=True)
        ]
        tasks = RemoteResponses.of_shards(self._site, shards, partial(self._locally, how))
        self._made.append(tasks)
        if items:
            return ItemEffects.of(tasks, ItemPosteriors.unknown(crowd.catalogue.ids))
        return tasks

    def brought_here(self, tasks: Any) -> Responses:
        """Bring everybody's labels here, which are less than the draws that are made for them."""
        people = np.sort(np.concatenate(tasks.people))
        found: Responses = tasks.locally(people)
        return found

    def rows_of(self, people: Index) -> Annotations:
        """Return the labels of a few people, by their positions, in this process."""
        crowd, wanted = self._crowd, []
        for said, places in zip(crowd.said, crowd.census.places, strict=True):
            mask = np.isin(places, people)
            if mask.any():
                wanted.append((said, mask))
        found = self._site.gathered(self._site.submit(_rows_of_some, *one) for one in wanted)
        return rows_joined(self._crowd, found)

    def some_rows(self, share: float) -> Annotations:
        """Return about this share of all labels, in this process."""
        crowd = self._crowd
        parts = zip(crowd.said, crowd.census.places, strict=True)
        found = self._site.gathered(
            self._site.submit(_rows_by_lot, said, share, places) for said, places in parts
        )
        return rows_joined(self._crowd, [one for one in found if one is not None])

    def grades_given(self) -> GradeCounts:
        """Return how often grades were given, and how everybody spreads theirs."""
        found: GradeCounts | None = self._crowd.census.grades
        if found is None:
            raise ValueError(
                f'loss="{self._ranker.loss}" learns from grades, but these labels are yes or no: '
                "say grades=True where shards are made, if they are grades."
            )
        return found

    def all_rows(self) -> Annotations:
        """Refuse: they are too many to be in this process."""
        raise ValueError(
            f"With {self.n_directions} features, the prior is learned in the space of rows, which "
            "is not done on a cluster: reduce the features (likeminds.features.Reduce), or ask "
            "for wide=False."
        )

    def item_features(self) -> FloatArray:
        """Return the features of all items with labels."""
        catalogue, by_item = self._crowd.catalogue, self._crowd.census.by_item
        return np.asarray(catalogue.features[by_item > 0])

    def settled_there(self, ranker: Any, tasks: Any, learned: PriorFit) -> bool:
        """Give a ranker people who stay where they are, if there is a folder for them."""
        if self._folder is not None:
            with self._site.in_reach():
                self._scored = settle_there(ranker, tasks, learned, self._crowd, self._folder)
        return self._folder is not None

    def scored_there(self) -> ScoredLabels | None:
        """Return the scores of some labels, of people who stay where they are."""
        return self._scored

    def release(self) -> None:
        """Take everything that was made for a fit off the cluster."""
        for tasks in self._made:
            tasks.release()
        self._site.release()

    def _locally(self, how: LossSettings, people: Index) -> Responses:
        """Bring the labels of some people here, as tasks of this process."""
        said = self.rows_of(people)
        positions = lookup(said.user_ids, self.about.user_ids, "users")
        found: Responses = make_shard(said, how.of(positions), positions).tasks
        return found


def about_fit(crowd: Any, ranker: Any) -> dict[str, Any]:
    """Return what a checkpoint has to agree with."""
    census = crowd.census
    digest = hashlib.sha256(crowd.catalogue.features.tobytes())
    digest.update(census.by_item.tobytes())
    parameters = ranker.get_params().items()
    given = {name: repr(value) for name, value in parameters if name not in ("callback", "verbose")}
    return {
        "ranker": type(ranker).__name__,
        "parameters": given,
        "people": len(census.user_ids),
        "labels": census.n_labels,
        "positive": census.n_positive,
        "data": digest.hexdigest(),
        "shards": [len(places) for places in census.places],
        "reading": repr(crowd.labels.reading),
        "covariates": crowd.user_features
        and mark_of([one.tolist() for one in crowd.user_features.columns]),
    }


def _rows_of_some(said: Annotations, wanted: Bool) -> tuple[Any, ...]:
    return columns_of(said[wanted[said.user_codes]])


def _rows_by_lot(said: Annotations, share: float, positions: Index) -> tuple[Any, ...] | None:
    some = rows_by_lot(said, share, positions)
    return None if some is None else columns_of(some)
