"""What every experiment is told: how large, from which seed, on which data, kept where."""

from dataclasses import dataclass
from pathlib import Path

from likeminds.datasets import Simulation, make_simulation
from likeminds.paper.experiments.result_store import ResultStore
from likeminds.paper.experiments.scale import ExperimentScale


@dataclass(frozen=True)
class ExperimentSetting:
    """The setting of a run.

    Attributes
    ----------
    scale : ExperimentScale
        The sizes.
    store : ResultStore
        Where results are kept.
    seed : int
        Where data, splits and folds start from.
    shoes, sun : Path or None
        Folders with the original data, for those who have them.
    data : tuple of Path
        Further data sets for Table 3.
    """

    scale: ExperimentScale
    store: ResultStore
    seed: int = 0
    shoes: Path | None = None
    sun: Path | None = None
    data: tuple[Path, ...] = ()

    def simulation(self) -> Simulation:
        """Draw the data of Table 1 and of Figures 1, 3 and 4."""
        return make_simulation(*self.scale.simulation.sizes, random_state=self.seed)

    def command(self, key: str) -> str:
        """Return what makes a part again, folders of this machine left out."""
        words = [f"likeminds reproduce {key} --scale {self.scale.name} --seed {self.seed}"]
        words += ["--shoes FOLDER"] * (self.shoes is not None)
        words += ["--sun FOLDER"] * (self.sun is not None)
        words += [f"--data {path.name}" for path in self.data]
        return " ".join([*words, "--out DIR"])
