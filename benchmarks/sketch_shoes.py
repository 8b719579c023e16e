"""Sketch shoes: the AUC of one ranking for all users, and of three levels.

    python -m benchmarks.sketch_shoes

writes docs/sketch-shoes.json, which the page of the same name quotes
(``python -m tools.quoted_numbers``).
"""

import json
from pathlib import Path

from likeminds import ThreeLevelRanker, make_sketch_shoes, split_within_users
from likeminds.baselines import ConsensusOnly
from likeminds.datasets import SketchShoes

PAGE = Path(__file__).parents[1] / "docs" / "sketch-shoes.json"
RANKERS = {"consensus only": ConsensusOnly, "three levels": ThreeLevelRanker}


def measure(shoes: SketchShoes) -> dict[str, dict[str, float]]:
    """Return the mean AUC over users on 30 % of their labels, by attribute and ranker."""
    found = {}
    for attribute, rows in shoes.annotations.by_attribute().items():
        train, test = split_within_users(rows, test_size=0.3, random_state=0)
        found[str(attribute)] = {
            name: ranker().fit(train).score(test) for name, ranker in RANKERS.items()
        }
    return found


if __name__ == "__main__":
    results = measure(make_sketch_shoes())
    PAGE.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=1))
