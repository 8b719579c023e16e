"""How large the experiments are: the paper's size, minutes, or just enough to test them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from likeminds.paper.experiments.published import SHOES

Tuned = Literal["in every repeat", "in the first repeat"]


@dataclass(frozen=True)
class SchoolsSize:
    """A crowd of `make_schools`, by labels per person: what recovery and ablation use."""

    n_users: int
    n_features: int
    n_schools: int
    labels: tuple[int, ...]
    repeats: int


@dataclass(frozen=True)
class ShoesSize:
    """Sketch shoes, where Shoes are absent."""

    n_pictures: int
    n_users: int
    pictures_each: int
    attributes: tuple[str, ...] = SHOES


@dataclass(frozen=True)
class SimulationSize:
    """The paper's simulation: people, samples of each, features, positive samples of each."""

    n_users: int
    n_samples: int
    n_features: int
    n_positive: int

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """The first arguments of `make_simulation`."""
        return self.n_users, self.n_samples, self.n_features, self.n_positive

    def __str__(self) -> str:
        return (
            f"{self.n_users} people x {self.n_samples:,} samples x {self.n_features} features, "
            f"{self.n_positive} positive samples each"
        )


@dataclass(frozen=True)
class ExperimentScale:
    """The sizes of all experiments.

    Attributes
    ----------
    name : str
        What `--scale` calls it.
    repeats : int
        Splits of Tables 1 and 3 (15 in the paper).
    n_folds : int
        Folds of the search for penalties; 0 takes the defaults of each ranker.
    tuned_table_1, tuned_table_3 : str
        When penalties are searched for.
    simulation, pairs : SimulationSize
        The data of Table 1 and Figures 3 and 4, and of Table 2.
    rounds : int
        How often times of Table 2 are measured.
    iterations : int
        How far Figure 4 follows the published algorithm.
    shoes : ShoesSize
        Sketch shoes for Table 3 and Figure 5.
    recovery_labels, recovery_repeats
        Labels of each person, and draws, of the figure of recovery; its people and features
        are the simulation's.
    ablation : SchoolsSize
        The crowds of the ablation.
    minutes : mapping from part to float
        What each part took on two cores when it was last measured: for the time left.
    """

    name: str
    repeats: int
    n_folds: int
    tuned_table_1: Tuned
    tuned_table_3: Tuned
    simulation: SimulationSize
    pairs: SimulationSize
    rounds: int
    iterations: int
    shoes: ShoesSize
    recovery_labels: tuple[int, ...]
    recovery_repeats: int
    ablation: SchoolsSize
    minutes: Mapping[str, float] = field(hash=False)

    def search(self, tuned: Tuned) -> str:
        """Say how penalties are chosen."""
        if not self.n_folds:
            return "Penalties are each ranker's defaults."
        said = (
            f"Penalties are chosen by {self.n_folds}-fold cross-validation inside the training "
            f"rows {tuned}"
        )
        if tuned == "in every repeat":
            return said + "."
        return (
            said + " and kept for the others, whose held-out rows are in part among those that the "
            "penalties were chosen on."
        )


_TINY = ExperimentScale(
    name="tiny",
    repeats=2,
    n_folds=0,
    tuned_table_1="in the first repeat",
    tuned_table_3="in the first repeat",
    simulation=SimulationSize(10, 100, 8, 10),
    pairs=SimulationSize(5, 100, 8, 10),
    rounds=1,
    iterations=30,
    shoes=ShoesSize(24, 6, 20, ("open",)),
    recovery_labels=(60, 120),
    recovery_repeats=1,
    ablation=SchoolsSize(10, 8, 2, (12, 24), 2),
    minutes=MappingProxyType({}),
)
_QUICK = ExperimentScale(
    name="quick",
    repeats=5,
    n_folds=3,
    tuned_table_1="in the first repeat",
    tuned_table_3="in the first repeat",
    simulation=SimulationSize(50, 1000, 40, 20),
    pairs=SimulationSize(20, 5000, 80, 100),
    rounds=3,
    iterations=1000,
    shoes=ShoesSize(500, 50, 50, ("comfortable", "fashionable", "open")),
    recovery_labels=(100, 200, 500, 1000),
    recovery_repeats=2,
    ablation=SchoolsSize(80, 40, 3, (10, 20, 40, 80), 4),
    minutes=MappingProxyType(
        {
            "table1": 0.7,
            "table2": 0.4,
            "table3": 1.8,
            "fig3": 0.5,
            "fig4": 0.1,
            "fig5": 0.1,
            "ablation": 0.6,
            "drawings": 0.1,
        }
    ),
)
_PAPER = ExperimentScale(
    name="paper",
    repeats=15,
    n_folds=3,
    tuned_table_1="in the first repeat",
    tuned_table_3="in the first repeat",
    simulation=SimulationSize(100, 5000, 80, 100),
    pairs=SimulationSize(100, 5000, 80, 100),
    rounds=5,
    iterations=4000,
    shoes=ShoesSize(500, 200, 50),
    recovery_labels=(100, 200, 500, 1000, 2000, 5000),
    recovery_repeats=5,
    ablation=SchoolsSize(150, 60, 3, (10, 20, 50, 100, 200), 15),
    minutes=MappingProxyType(
        {
            "table1": 5.5,
            "table2": 1.8,
            "table3": 45.0,
            "fig3": 6.0,
            "fig4": 1.0,
            "fig5": 0.1,
            "ablation": 4.0,
            "drawings": 0.2,
        }
    ),
)
SCALES: Mapping[str, ExperimentScale] = MappingProxyType(
    {scale.name: scale for scale in (_QUICK, _PAPER, _TINY)}
)
