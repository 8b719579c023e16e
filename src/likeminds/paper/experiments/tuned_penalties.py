"""The paper's model on the simulation, with the penalties that Table 1 found."""

import json
from typing import Any

from likeminds.data.annotations import Annotations
from likeminds.paper.experiments.rankers import OURS, compared_rankers
from likeminds.paper.experiments.setting import ExperimentSetting
from likeminds.paper.experiments.trial_rankers import ComparedRanker
from likeminds.paper.experiments.trials import run_compared


def simulation_parameters(setting: ExperimentSetting, annotations: Annotations) -> dict[str, Any]:
    """Return the penalties found in the first split of Table 1 (the same fit, if it is kept)."""
    scale = setting.scale
    if not scale.n_folds:
        return {}
    ours = {OURS: ComparedRanker(compared_rankers(annotations, scale.n_folds, setting.seed)[OURS])}
    found = run_compared(annotations, ours, 1, setting.store, setting.seed, tuned="in every repeat")
    chosen: dict[str, Any] = json.loads(found.parameters[OURS])
    return chosen
