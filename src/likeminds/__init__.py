"""likeminds: rankings for people who disagree.

Many people label the same kind of items with an attribute, and disagree. likeminds learns one
ranking function per user. It is the sum of a consensus, the deviation of a school of thought
(group), and the user's own deviation (personal).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from likeminds._version import __version__

if TYPE_CHECKING:
    from likeminds._util.result_tables import Table
    from likeminds.choice_models.summary import LogLikelihood, Summary
    from likeminds.comparing.comparison import Comparison, compare
    from likeminds.comparing.few_shot import FewShotScores, FewShotTable, score_shots
    from likeminds.comparing.lewidi import write_lewidi
    from likeminds.data.annotations import Annotations
    from likeminds.data.connectors import Export, read_export
    from likeminds.data.fingerprints import fingerprint
    from likeminds.data.out_of_core.annotation_folder import AnnotationFolder
    from likeminds.data.splits import split_within_users
    from likeminds.data.wide import wide_to_long
    from likeminds.datasets import (
        load_electricity,
        load_shoes,
        load_sun,
        make_schools,
        make_simulation,
        make_sketch_shoes,
    )
    from likeminds.diagnostics import Diagnostics, diagnose
    from likeminds.losses.statistics import Statistics
    from likeminds.metrics.by_user import (
        MetricByUser,
        auc_by_user,
        mean_auc,
        ndcg_at_k,
        precision_at_k,
    )
    from likeminds.metrics.choices import score_choices
    from likeminds.metrics.inter_annotator_agreement import Agreement, agreement
    from likeminds.mixed_model.ordinal_responses import GradePredictions
    from likeminds.mixed_model.posterior import Posterior
    from likeminds.rankers.decomposed import DecomposedRanker
    from likeminds.rankers.hierarchical import HierarchicalRanker
    from likeminds.rankers.item_table import Similarity
    from likeminds.rankers.latent_class import LatentClassRanker
    from likeminds.rankers.leaderboards import Leaderboard, leaderboard
    from likeminds.rankers.multi_attribute import AttributeModel
    from likeminds.rankers.newcomers import NewUsers
    from likeminds.rankers.nominal import ClassShares, NominalRanker
    from likeminds.rankers.ranking import Ranking
    from likeminds.rankers.registry import default_rankers
    from likeminds.rankers.score_decomposition import ScoreDecomposition
    from likeminds.rankers.search import RankerCV
    from likeminds.rankers.three_level import ThreeLevelRanker
    from likeminds.rankers.three_level_search import ThreeLevelRankerCV
    from likeminds.report import write_report
    from likeminds.schools import School, Schools, SoftLabels, find_schools
    from likeminds.storage.models import FileChangedError, ModelFileError, load, read_card, save

__all__ = [
    "Agreement",
    "AnnotationFolder",
    "Annotations",
    "AttributeModel",
    "ClassShares",
    "Comparison",
    "DecomposedRanker",
    "Diagnostics",
    "Export",
    "FewShotScores",
    "FewShotTable",
    "FileChangedError",
    "GradePredictions",
    "HierarchicalRanker",
    "LatentClassRanker",
    "Leaderboard",
    "LogLikelihood",
    "MetricByUser",
    "ModelFileError",
    "NewUsers",
    "NominalRanker",
    "Posterior",
    "RankerCV",
    "Ranking",
    "School",
    "Schools",
    "ScoreDecomposition",
    "Similarity",
    "SoftLabels",
    "Statistics",
    "Summary",
    "Table",
    "ThreeLevelRanker",
    "ThreeLevelRankerCV",
    "__version__",
    "agreement",
    "auc_by_user",
    "compare",
    "default_rankers",
    "diagnose",
    "find_schools",
    "fingerprint",
    "leaderboard",
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
    "read_export",
    "save",
    "score_choices",
    "score_shots",
    "split_within_users",
    "wide_to_long",
    "write_lewidi",
    "write_report",
]

# The module of each public name, imported at first use: the import of scikit-learn takes longer
# than many short scripts.
_HOMES = {
    "_util.result_tables": ("Table",),
    "choice_models.summary": ("LogLikelihood", "Summary"),
    "comparing.comparison": ("Comparison", "compare"),
    "comparing.few_shot": ("FewShotScores", "FewShotTable", "score_shots"),
    "comparing.lewidi": ("write_lewidi",),
    "data.annotations": ("Annotations",),
    "data.connectors": ("Export", "read_export"),
    "data.fingerprints": ("fingerprint",),
    "data.out_of_core.annotation_folder": ("AnnotationFolder",),
    "data.splits": ("split_within_users",),
    "data.wide": ("wide_to_long",),
    "datasets": (
        "load_electricity",
        "load_shoes",
        "load_sun",
        "make_schools",
        "make_simulation",
        "make_sketch_shoes",
    ),
    "diagnostics": ("Diagnostics", "diagnose"),
    "losses.statistics": ("Statistics",),
    "metrics.by_user": ("MetricByUser", "auc_by_user", "mean_auc", "ndcg_at_k", "precision_at_k"),
    "metrics.choices": ("score_choices",),
    "metrics.inter_annotator_agreement": ("Agreement", "agreement"),
    "mixed_model.ordinal_responses": ("GradePredictions",),
    "mixed_model.posterior": ("Posterior",),
    "rankers.decomposed": ("DecomposedRanker",),
    "rankers.hierarchical": ("HierarchicalRanker",),
    "rankers.item_table": ("Similarity",),
    "rankers.latent_class": ("LatentClassRanker",),
    "rankers.leaderboards": ("Leaderboard", "leaderboard"),
    "rankers.multi_attribute": ("AttributeModel",),
    "rankers.newcomers": ("NewUsers",),
    "rankers.nominal": ("ClassShares", "NominalRanker"),
    "rankers.ranking": ("Ranking",),
    "rankers.registry": ("default_rankers",),
    "rankers.score_decomposition": ("ScoreDecomposition",),
    "rankers.search": ("RankerCV",),
    "rankers.three_level": ("ThreeLevelRanker",),
    "rankers.three_level_search": ("ThreeLevelRankerCV",),
    "report": ("write_report",),
    "schools": ("School", "Schools", "SoftLabels", "find_schools"),
    "storage.models": ("FileChangedError", "ModelFileError", "load", "read_card", "save"),
}
# Public folders: `likeminds.baselines.RMTL` works without an import of its own.
_PUBLIC = frozenset(
    {
        "baselines",
        "cluster",
        "components",
        "datasets",
        "features",
        "laplacian",
        "losses",
        "metrics",
        "paper",
        "plots",
        "theory",
    }
)
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return import_module(f"likeminds.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'likeminds' has no attribute {name!r}")
    value = getattr(import_module(f"likeminds.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_PUBLIC})
