"""Rankers by name, for comparisons and the command line."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sklearn.utils._param_validation import HasMethods

from likeminds._util.checks import did_you_mean, listing
from likeminds.data.annotations import Annotations
from likeminds.rankers import baselines
from likeminds.rankers.baselines.multitask import PaperBaseline
from likeminds.rankers.baselines.popularity import has_shared_items
from likeminds.rankers.decomposed import DecomposedRanker
from likeminds.rankers.hierarchical import HierarchicalRanker
from likeminds.rankers.latent_class import LatentClassRanker
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.search import RankerCV
from likeminds.rankers.three_level import ThreeLevelRanker
from likeminds.rankers.three_level_search import ThreeLevelRankerCV

# The baselines of the paper, in its order and with its names.
PAPER_BASELINES: dict[str, type[PaperBaseline]] = {
    "RMTL": baselines.RMTL,
    "rMTFL": baselines.RMTFL,
    "LASSO": baselines.LassoMTL,
    "JFL": baselines.JFL,
    "CMTL": baselines.CMTL,
    "COMT": baselines.COMT,
    "RAMU": baselines.RAMU,
}

# Rankers without required arguments, in the order of comparisons.
_READY: tuple[type[Any], ...] = (
    ThreeLevelRankerCV,
    ThreeLevelRanker,
    HierarchicalRanker,
    LatentClassRanker,
    *PAPER_BASELINES.values(),
    baselines.RidgeToConsensus,
    baselines.OnePerUser,
    baselines.LogisticPerUser,
    baselines.ConsensusOnly,
    baselines.PooledLogistic,
    baselines.Popularity,
    baselines.PopularityWithFeatures,
    baselines.Factorisation,
)
# All rankers, by name.
RANKERS: dict[str, Any] = {kind.__name__: kind for kind in (*_READY, RankerCV, DecomposedRanker)}

# Rankers that are compared with their default parameters.
AS_THEY_ARE = (ThreeLevelRanker, HierarchicalRanker, LatentClassRanker, baselines.Popularity)

# Rankers with searches that take minutes on many labels.
_LONG_SEARCHES = {
    *("ThreeLevelRankerCV", "LatentClassRanker", "LogisticPerUser"),
    *(kind.__name__ for kind in PAPER_BASELINES.values() if kind is not baselines.RMTL),
}

# Short names.
_SHORT = {
    "hierarchical": "HierarchicalRanker",
    "latentclass": "LatentClassRanker",
    "threelevel": "ThreeLevelRankerCV",
    "lasso": "LassoMTL",
    "consensus": "ConsensusOnly",
}

# The methods of an estimator that `compare` calls.
_METHODS = ("fit", "decision_function", "get_params")

NamedRankers = dict[str, Any]
Given = Mapping[str, Any] | Sequence[Any]


def default_rankers(n_folds: int = 5, random_state: int = 0) -> NamedRankers:
    """Return all rankers by name, ready to fit, with searches where needed.

    Parameters
    ----------
    n_folds : int, default=5
        The number of folds of searches.
    random_state : int, default=0
        The seed of the assignment of rows to folds.

    Examples
    --------
    >>> rankers = default_rankers()
    >>> rankers["RidgeToConsensus"]
    RankerCV(ranker=RidgeToConsensus())
    """
    return {kind.__name__: _make(kind, n_folds, random_state) for kind in _READY}


def _make(kind: type[Any], n_folds: int, random_state: int) -> Any:
    search = {"n_folds": n_folds, "random_state": random_state}
    return kind(**search) if kind is ThreeLevelRankerCV else _ready(kind(), search)


def that_apply(rankers: NamedRankers, annotations: Annotations) -> NamedRankers:
    """Leave out rankers of shared items, if no item was labelled by several users."""
    shared = has_shared_items(annotations)
    by_id = shared and annotations.has_items
    needs = {"Popularity": shared, "PopularityWithFeatures": by_id, "Factorisation": by_id}
    return {name: ranker for name, ranker in rankers.items() if needs.get(name, True)}


def without_long_searches(rankers: NamedRankers) -> NamedRankers:
    """Leave out rankers with searches that take minutes to hours on 100,000 labels."""
    return {name: ranker for name, ranker in rankers.items() if name not in _LONG_SEARCHES}


def ranker_called(name: str, n_folds: int = 5, random_state: int = 0) -> tuple[str, Any]:
    """Return the name and a ranker, ready to fit, given the name in any case, with any dashes.

    "hierarchical" is `HierarchicalRanker`, and "three-level" is `ThreeLevelRankerCV`, the paper's
    ranker with tuned penalties. Other names are those of `default_rankers`.

    Examples
    --------
    >>> ranker_called("three-level")
    ('ThreeLevelRankerCV', ThreeLevelRankerCV())
    >>> ranker_called("rmtl")[0], ranker_called("consensus-only")[0]
    ('RMTL', 'ConsensusOnly')
    """
    names = {_bare(kind.__name__): kind.__name__ for kind in _READY}
    called = _SHORT.get(_bare(name)) or names.get(_bare(name))
    if called is None:
        listed = ", ".join(["hierarchical", "three-level", "latent-class", *names.values()])
        hint = did_you_mean(name, names.values())
        raise ValueError(f"There is no ranker called {name!r}; choose from {listed}.{hint}")
    return called, _make(RANKERS[called], n_folds, random_state)


def _bare(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def as_rankers(rankers: Given, n_folds: int, random_state: int) -> NamedRankers:
    """Return named rankers, ready to fit, from the argument of `compare`."""
    if isinstance(rankers, str) or not isinstance(rankers, Iterable):
        raise TypeError(f"rankers must be a mapping or a list, not {rankers!r}.")
    search: dict[str, Any] = {"n_folds": n_folds, "random_state": random_state}
    rankers = rankers if isinstance(rankers, Mapping) else list(rankers)
    if not rankers:
        raise ValueError("rankers is empty. Pass at least one ranker to compare.")
    if isinstance(rankers, Mapping):
        return {str(name): _ready(given, search) for name, given in rankers.items()}
    named: NamedRankers = {}
    for given in rankers:
        if isinstance(given, str):
            name, ranker = ranker_called(given, **search)
        else:
            name, ranker = _name_of(given), _ready(given, search)
        if name in named:
            raise ValueError(
                f"Two rankers are called {name}. Pass a mapping from names to rankers."
            )
        named[name] = ranker
    return named


def _name_of(given: object) -> str:
    estimator = given[0] if isinstance(given, tuple) and given else given
    return type(getattr(estimator, "ranker", estimator)).__name__


def _ready(given: object, search: dict[str, Any]) -> Any:
    """Return an estimator, in a search if it has parameters to tune."""
    estimator, grid = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    missing = [name for name in _METHODS if not HasMethods(name).is_satisfied_by(estimator)]
    if missing or isinstance(estimator, type):
        raise TypeError(
            "A ranker is an estimator with fit and decision_function, or a pair (estimator, "
            f"param_grid), not {given!r}"
            + (
                f": it has no {listing(missing)}."
                if missing
                else ". Pass an instance of this class."
            )
        )
    has_grid = isinstance(estimator, Ranker) and (
        estimator._grid is not None or type(estimator)._default_grid is not Ranker._default_grid
    )
    if grid is not None or (has_grid and not isinstance(estimator, AS_THEY_ARE)):
        return RankerCV(estimator, grid, **search)
    return estimator
