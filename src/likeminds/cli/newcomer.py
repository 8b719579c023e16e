"""``likeminds newcomer``: rankings of new users, without a refit."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import likeminds
from likeminds._util.lazy_imports import np
from likeminds.cli._labels import read_labels, refuse_two_inputs
from likeminds.cli._models import ModelItems, Rows, about, parts_of, rankers_of, read_items
from likeminds.cli._options import (
    ComparisonOptions,
    LabelOptions,
    Like,
    Model,
    NotLike,
    Table,
    Top,
    option,
)
from likeminds.cli._output import Output
from likeminds.cli.main import DATA, FIT, command
from likeminds.cli.rank import as_rows, by_wish, show_rankings

if TYPE_CHECKING:
    from likeminds._util.array_types import Index
    from likeminds.data.annotations import Annotations
    from likeminds.data.covariates import Covariates
    from likeminds.rankers.multi_attribute import AttributeModel
    from likeminds.rankers.ranker import Ranker

# The user of labels without a column of users.
_NEW = "newcomer"


@command(
    "Ask",
    DATA,
    FIT,
    "printf 'item,label\\n7ct-1y-known,1\\n9ct-5y-known,0\\n' > zoe.csv",
    "likeminds newcomer power.likeminds --features power/features.csv --annotations zoe.csv "
    "--top 3 --ask 2",
)
def newcomer(
    output: Output,
    *,
    model: Model,
    data: LabelOptions,
    pairs: ComparisonOptions,
    top: Top = 10,
    ask: int = option(
        "Propose this number of items to label next, the most informative first.",
        min=0,
        default=0,
    ),
    labelled: bool = option("Also rank the labelled items.", "--labelled", default=False),
    like: Like = None,
    not_like: NotLike = None,
    out: Table = None,
) -> None:
    """Rank items for new users, from a few of their labels.

    Labels name items by id or by title. Without a column of users, all labels are of one user. The
    model is not fitted again, and labelled items are left out. Without labels, the ranking is the
    consensus or, with --user-features, the mean of users with the same covariates.
    """
    from likeminds.data.covariates import Covariates

    output.refuse_two_results(out)
    refuse_two_inputs(data, pairs)
    loaded = likeminds.load(model)
    shown = read_items(output, data, loaded, data.item)
    annotations, covariates = None, None
    if data.annotations or pairs.comparisons or pairs.export:
        bare = replace(data, features=None, images=None, user_features=None)
        found = read_labels(output, bare, pairs, model=loaded, shown=shown, user=_NEW)
        annotations = found.annotations
    if data.user_features is not None:
        covariates = Covariates.read(data.user_features, data.user)
    new = _Newcomers.of(loaded, annotations, covariates)
    rows, proposals = [], []
    for user in new.users:
        if like or not_like:
            rows += new.by_wish(user, shown, like or [], not_like or [], top)
        else:
            rows += new.rankings(user, shown, top, labelled=labelled)
        proposals += new.items_to_ask(user, shown, ask) if ask else []
    more = {"ask": proposals} if ask else {}
    show_rankings(output, loaded, rows, out, more=more, unseen=not labelled)
    if proposals and out != "-":
        output.table("Most informative items to label next", proposals)


@dataclass(frozen=True)
class _Newcomers:
    """Posteriors of new users by attribute, given their labels, or given only covariates."""

    model: "Ranker | AttributeModel"
    annotations: "Annotations | None"
    posterior: dict[str, Any]
    without_labels: dict[str, Any]
    # The users with covariates.
    described: list[Hashable]

    @classmethod
    def of(
        cls,
        model: "Ranker | AttributeModel",
        annotations: "Annotations | None",
        covariates: "Covariates | None",
    ) -> "_Newcomers":
        """Compute the posteriors without fitting the model again."""
        from likeminds.rankers.capabilities import Capability

        rankers = rankers_of(model)
        for ranker in rankers.values():
            Capability.NEWCOMERS.require(ranker)
        if annotations is not None and covariates is not None:
            annotations = annotations.with_user_features(covariates)
            covariates = annotations.user_features
        parts = {} if annotations is None else parts_of(annotations, model)
        posterior = {
            name: rankers_of(model, name or None)[name].newcomer(part)
            for name, part in parts.items()
        }
        described = [] if covariates is None else list(covariates.ids.tolist())
        without_labels = {
            name: ranker.newcomer(users=described or [_NEW], user_features=covariates)
            for name, ranker in rankers.items()
        }
        return cls(model, annotations, posterior, without_labels, described)

    @property
    def users(self) -> list[Hashable]:
        """The new users."""
        labelled = [] if self.annotations is None else self.annotations.user_ids.tolist()
        return list(dict.fromkeys([*labelled, *self.described])) or [_NEW]

    def by_wish(
        self,
        user: Hashable,
        shown: "ModelItems",
        like: Sequence[str],
        not_like: Sequence[str],
        top: int,
    ) -> Rows:
        """Return the best items by a wish for attributes, as rows of a table."""
        from likeminds.rankers.multi_attribute import AttributeNewcomers

        labelled = any(user in one.users.tolist() for one in self.posterior.values())
        if not labelled or not self.model.has_attributes:
            return by_wish(self.model, shown, None, like, not_like, top, shown_as=user)
        new = AttributeNewcomers(self.model, self.posterior)
        return by_wish(new, shown, user, like, not_like, top)

    def rankings(self, user: Hashable, shown: "ModelItems", top: int, *, labelled: bool) -> Rows:
        """Return the best items by each attribute, as rows of a table."""
        from likeminds.rankers.item_table import ItemTableView

        rows = []
        for name in self.without_labels:
            posterior, who = self._posterior(name, user)
            items = ItemTableView(posterior.ranker, shown.ids, shown.features)
            found = posterior.rank(who, items, k=top, labelled=labelled)
            rows += as_rows(shown, found, user, name)
        return rows

    def items_to_ask(self, user: Hashable, shown: "ModelItems", n: int) -> Rows:
        """Return the items to label next, most informative first, as rows of a table."""
        from likeminds.rankers.newcomers import to_score

        rows = []
        for name in self.without_labels:
            posterior, who = self._posterior(name, user)
            rest = np.setdiff1d(np.arange(len(shown.ids)), self._labelled(name, user, shown))
            items = to_score(who, shown.ids[rest], shown.features[rest])
            chosen = rest[posterior.next_items(items, user=who, n=min(n, len(rest)))]
            rows += [
                {"user": user} | about(name) | {"place": place} | shown.named(shown.ids[i])
                for place, i in enumerate(chosen, start=1)
            ]
        return rows

    def _posterior(self, name: str, user: Hashable) -> tuple[Any, Hashable]:
        posterior = self.posterior.get(name)
        if posterior is not None and user in posterior.users.tolist():
            return posterior, user
        if user in self.described or not self.described:
            return self.without_labels[name], user if self.described else _NEW
        # With labels of another attribute only, and no covariates, this is the prior.
        return self.model._ranker_of(name).newcomer(users=[_NEW]), _NEW

    def _labelled(self, name: str, user: Hashable, shown: "ModelItems") -> "Index | list[int]":
        """Return the positions of the items that a user has labelled."""
        from likeminds.data.identifiers import lookup

        parts = {} if self.annotations is None else parts_of(self.annotations, self.model)
        part = parts.get(name)
        if part is None or user not in part.user_ids.tolist():
            return []
        own = part.of_user(user)
        return lookup(own.item_ids[own.item_codes], shown.ids, "items")
