"""Make the pictures of docs/schools.md: python -m tools.schools_pictures.

The screenshot of the report needs chromium; without it, that one picture is left as it is.
"""

import tempfile
from pathlib import Path

import matplotlib as mpl
import numpy as np
from tools.screenshots import take

from likeminds import (
    Annotations,
    HierarchicalRanker,
    ThreeLevelRanker,
    diagnose,
    find_schools,
    load_electricity,
    make_schools,
    make_sketch_shoes,
    plots,
    write_report,
)

mpl.use("Agg")
DOCS = Path(__file__).parents[1] / "docs"


def main() -> int:
    """Draw everything."""
    simulation = make_schools(200, 40, 400, 24, 3, random_state=1)
    ranker = ThreeLevelRanker().fit(simulation.annotations)
    schools = find_schools(ranker, simulation.annotations)
    _save(plots.people_map(schools).figure, "schools-map")
    _save(plots.heatmap(ranker, schools), "schools-heatmap")
    households = load_electricity()
    electricity = HierarchicalRanker().fit(households)
    _save(plots.people_map(find_schools(electricity)).figure, "schools-electricity")
    crowd = with_careless(simulation.annotations)
    found = diagnose(ThreeLevelRanker().fit(crowd), crowd)
    _save(plots.auc_by_user(found).figure, "schools-annotators")
    shoes = make_sketch_shoes(300, 120, 50, attributes=["comfortable"], n_components=30)
    labels = shoes.annotations.of_attribute("comfortable")
    comfort = HierarchicalRanker().fit(labels)
    card = plots.user_card(comfort, "person-079", labels, shoes.pictures)
    _save(card, "schools-card")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "shoes.html"
        write_report(comfort, page, labels, shoes.pictures, "Which shoes are comfortable?")
        take(page, DOCS / "schools-report.png", 900, 1500)
    return 0


def with_careless(annotations: Annotations, n: int = 12) -> Annotations:
    """Return the annotations with the labels of the first n people in random order."""
    rng = np.random.default_rng(0)
    labels = annotations.labels.copy()
    for person in range(n):
        rows = annotations.user_codes == person
        labels[rows] = rng.permutation(labels[rows])
    return Annotations(
        annotations.users, annotations.items, labels, annotations.features, features_per="item"
    )


def _save(figure: object, name: str) -> None:
    path = DOCS / f"{name}.png"
    figure.savefig(path, dpi=90, metadata={"Software": None})  # type: ignore[attr-defined]
    print(path)


if __name__ == "__main__":
    raise SystemExit(main())
