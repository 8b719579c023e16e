"""The folder that commands run in: tables and models as they should be."""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

import likeminds


class Workshop(NamedTuple):
    """A folder, and what the model in it says."""

    folder: Path
    content: bytes
    items: np.ndarray
    scores: np.ndarray

    @classmethod
    def in_folder(cls, folder: Path) -> "Workshop":
        """Write labels, features and a model."""
        rng = np.random.default_rng(0)
        items = rng.normal(size=(12, 3))
        rows = [
            (f"p{person}", f"i{item}", int(items[item, person % 3] + rng.normal() > 0))
            for person in range(6)
            for item in range(12)
        ]
        write_csv(folder / "labels.csv", ["person", "item", "label"], rows)
        features = [(f"i{item}", *values) for item, values in enumerate(items.tolist())]
        write_csv(folder / "features.csv", ["item", "a", "b", "c"], features)
        write_csv(folder / "few.csv", ["item", "label"], [("i1", 1), ("i2", 0)])
        (folder / "empty.csv").touch()
        (folder / "latin.csv").write_bytes("person,item,label\ncaf\xe9,i1,1\n".encode("latin-1"))
        (folder / "folder").mkdir()
        said = likeminds.Annotations(
            users=[row[0] for row in rows],
            items=[row[1] for row in rows],
            labels=[row[2] for row in rows],
            features=items,
            item_ids=[f"i{item}" for item in range(12)],
            feature_names=["a", "b", "c"],
            features_per="item",
        )
        model = likeminds.HierarchicalRanker().fit(said)
        path = folder / "model.likeminds"
        likeminds.save(model, path, with_data=True)
        return cls(folder, path.read_bytes(), items, all_scores(model, items))

    def mend(self) -> None:
        """Put the model back as it was."""
        (self.folder / "model.likeminds").write_bytes(self.content)


def all_scores(model: likeminds.HierarchicalRanker, items: np.ndarray) -> np.ndarray:
    """Return everybody's scores of all items."""
    return np.array([model.decision_function(items, [p] * len(items)) for p in model.users_])


def write_csv(path: Path, header: list[str], rows: list[tuple[object, ...]]) -> None:
    """Write a table as Python's own writer does."""
    with path.open("w", newline="", encoding="utf-8", errors="surrogatepass") as file:
        csv.writer(file).writerows([header, *rows])
