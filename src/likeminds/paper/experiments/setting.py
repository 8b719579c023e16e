"""The setting of a run: its sizes, seed, data and store of results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from likeminds.comparing.runs import ResultStore
from likeminds.datasets import Simulation, make_simulation
from likeminds.paper.experiments.published import SHOES, SUN

Tuned = Literal["in every repeat", "in the first repeat"]
# Above so many labels, the learned prior takes the AUC loss, whose steps do not visit every label.
MANY_LABELS = 50_000
TUNED: Mapping[str, Tuned] = {"first": "in the first repeat", "every": "in every repeat"}


class SchoolsSize(NamedTuple):
    """The simulations of the ablation, by labels per user (see `make_schools`)."""

    n_users: int
    n_features: int
    n_schools: int
    labels: tuple[int, ...]
    repeats: int
    n_loners: int  # in the crowds with loners
    loner_labels: tuple[int, ...]
    simulation_labels: tuple[int, ...]  # of the paper's simulation


class PicturesSize(NamedTuple):
    """The size of drawn pictures that stand in for Shoes or SUN."""

    n_pictures: int
    n_users: int
    pictures_each: int
    attributes: tuple[str, ...]


class SimulationSize(NamedTuple):
    """The paper's simulation: the first arguments of `make_simulation`."""

    n_users: int
    n_samples: int
    n_features: int
    n_positive: int

    def __str__(self) -> str:
        return (
            f"{self.n_users} people x {self.n_samples:,} samples x {self.n_features} features, "
            f"{self.n_positive} positive samples each"
        )


@dataclass(frozen=True)
class ExperimentScale:
    """The sizes of all experiments."""

    name: str
    repeats: int  # splits of Tables 1 and 3 (15 in the paper)
    n_folds: int  # of the search for penalties; 0 takes the defaults of each ranker
    simulation: SimulationSize  # the data of Table 1 and Figures 3 and 4
    pairs: SimulationSize  # and of Table 2
    rounds: int  # the number of measurements of times in Table 2
    iterations: int  # the number of iterations of the published algorithm in Figure 4
    shoes: PicturesSize
    sun: PicturesSize
    recovery_labels: tuple[int, ...]  # labels per user in the figure of recovery
    recovery_repeats: int
    ablation: SchoolsSize
    # The minutes of each part on two cores, for the forecast; rough at the paper's scale.
    minutes: Mapping[str, float] = field(default_factory=dict, hash=False)
    tuned: Tuned = "in the first repeat"  # the repeats that search for penalties of Tables 1 and 3


# The parts, in the order of the report.
PARTS = ("table1", "table2", "table3", "fig3", "fig4", "fig5", "ablation", "drawings")
_TINY = ExperimentScale(
    name="tiny",
    repeats=2,
    n_folds=0,
    simulation=SimulationSize(10, 100, 8, 10),
    pairs=SimulationSize(5, 100, 8, 10),
    rounds=1,
    iterations=30,
    shoes=PicturesSize(24, 6, 20, ("open",)),
    sun=PicturesSize(24, 6, 20, ("modern",)),
    recovery_labels=(60, 120),
    recovery_repeats=1,
    ablation=SchoolsSize(10, 8, 2, (12, 24), 2, 2, (12,), (60,)),
)
_QUICK = ExperimentScale(
    name="quick",
    repeats=5,
    n_folds=3,
    simulation=SimulationSize(50, 1000, 40, 20),
    pairs=SimulationSize(20, 5000, 80, 100),
    rounds=3,
    iterations=1000,
    shoes=PicturesSize(500, 50, 50, ("comfortable", "open")),
    sun=PicturesSize(500, 50, 50, ("modern",)),
    recovery_labels=(100, 200, 500, 1000),
    recovery_repeats=2,
    ablation=SchoolsSize(80, 40, 3, (10, 20, 80), 4, 16, (20, 50, 100), (200, 1000)),
    minutes=dict(zip(PARTS, (0.4, 0.2, 1.7, 0.3, 0.1, 0.1, 0.5, 0.1), strict=True)),
)
_PAPER = ExperimentScale(
    name="paper",
    repeats=15,
    n_folds=3,
    simulation=SimulationSize(100, 5000, 80, 100),
    pairs=SimulationSize(100, 5000, 80, 100),
    rounds=5,
    iterations=4000,
    shoes=PicturesSize(500, 257, 50, SHOES),  # 89,950 labels; the paper: 90,000
    sun=PicturesSize(500, 260, 50, SUN),  # 65,000 labels; the paper: 64,900
    recovery_labels=(100, 200, 500, 1000, 2000, 5000),
    recovery_repeats=5,
    ablation=SchoolsSize(
        *(150, 60, 3, (10, 20, 50, 100, 200), 15, 30),
        loner_labels=(20, 50, 100, 200),
        simulation_labels=(200, 500, 1000, 2000),
    ),
    minutes=dict(zip(PARTS, (10.0, 0.8, 110.0, 3.0, 0.3, 0.1, 6.0, 0.1), strict=True)),
    tuned="in every repeat",
)
SCALES: Mapping[str, ExperimentScale] = {scale.name: scale for scale in (_QUICK, _PAPER, _TINY)}


@dataclass(frozen=True)
class ExperimentSetting:
    """Sizes, store and seed of a run, and the user's data."""

    scale: ExperimentScale
    store: ResultStore
    seed: int = 0  # the seed of data, splits and folds
    shoes: Path | None = None  # folders with the original data
    sun: Path | None = None
    data: tuple[Path, ...] = ()  # further data sets for Table 3

    def simulation(self) -> Simulation:
        """Draw the data of Table 1 and of Figures 1, 3 and 4."""
        return make_simulation(*self.scale.simulation, random_state=self.seed)

    def command(self, key: str) -> str:
        """Return the command that makes a part, without folders of this machine."""
        words = [f"likeminds reproduce {key} --scale {self.scale.name} --seed {self.seed}"]
        usual = SCALES[self.scale.name]
        words += [f"--repeats {self.scale.repeats}"] * (self.scale.repeats != usual.repeats)
        if self.scale.tuned != usual.tuned:
            words += [
                f"--tuned {name}" for name, tuned in TUNED.items() if tuned == self.scale.tuned
            ]
        words += ["--shoes FOLDER"] * (self.shoes is not None)
        words += ["--sun FOLDER"] * (self.sun is not None)
        words += [f"--data {path.name}" for path in self.data]
        return " ".join([*words, "--out DIR"])
