"""likeminds: rankings for people who disagree.

Many people label the same kind of items with an attribute, and disagree. likeminds learns
one ranking function per person, the sum of what the crowd agrees on (consensus), what a
school of thought wants differently (group), and what is a person's own (personal).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from likeminds._version import __version__

if TYPE_CHECKING:
    from likeminds.annotations import Annotations
    from likeminds.attributes import AttributeModel
    from likeminds.comparison import Comparison, compare
    from likeminds.contenders import default_rankers
    from likeminds.datasets import (
        load_electricity,
        load_shoes,
        load_sun,
        make_schools,
        make_simulation,
        make_sketch_shoes,
    )
    from likeminds.decomposed import DecomposedRanker
    from likeminds.diagnostics import Diagnostics, diagnose
    from likeminds.fingerprints import fingerprint
    from likeminds.hierarchical import HierarchicalRanker
    from likeminds.io import ModelFileError, load, read_card, save
    from likeminds.metrics import auc_by_person, mean_auc, ndcg_at_k, precision_at_k
    from likeminds.rankers import ThreeLevelRanker
    from likeminds.report import write_report
    from likeminds.schools import Schools, find_schools
    from likeminds.search import RankerCV
    from likeminds.selection import split_within_people
    from likeminds.statistics import Statistics
    from likeminds.tuning import ThreeLevelRankerCV

__all__ = [
    "Annotations",
    "AttributeModel",
    "Comparison",
    "DecomposedRanker",
    "Diagnostics",
    "HierarchicalRanker",
    "ModelFileError",
    "RankerCV",
    "Schools",
    "Statistics",
    "ThreeLevelRanker",
    "ThreeLevelRankerCV",
    "__version__",
    "auc_by_person",
    "compare",
    "default_rankers",
    "diagnose",
    "find_schools",
    "fingerprint",
    "load",
    "load_electricity",
    "load_shoes",
    "load_sun",
    "make_schools",
    "make_simulation",
    "make_sketch_shoes",
    "mean_auc",
    "ndcg_at_k",
    "precision_at_k",
    "read_card",
    "save",
    "split_within_people",
    "write_report",
]

# Where each public name lives. They are imported when first used: scikit-learn alone takes
# longer to import than most scripts of a newcomer take to run.
_HOMES = {
    "annotations": ("Annotations",),
    "attributes": ("AttributeModel",),
    "comparison": ("Comparison", "compare"),
    "contenders": ("default_rankers",),
    "datasets": (
        "load_electricity",
        "load_shoes",
        "load_sun",
        "make_schools",
        "make_simulation",
        "make_sketch_shoes",
    ),
    "decomposed": ("DecomposedRanker",),
    "diagnostics": ("Diagnostics", "diagnose"),
    "fingerprints": ("fingerprint",),
    "hierarchical": ("HierarchicalRanker",),
    "io": ("ModelFileError", "load", "read_card", "save"),
    "metrics": ("auc_by_person", "mean_auc", "ndcg_at_k", "precision_at_k"),
    "rankers": ("ThreeLevelRanker",),
    "report": ("write_report",),
    "schools": ("Schools", "find_schools"),
    "search": ("RankerCV",),
    "selection": ("split_within_people",),
    "statistics": ("Statistics",),
    "tuning": ("ThreeLevelRankerCV",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'likeminds' has no attribute {name!r}")
    value = getattr(import_module(f"likeminds.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
