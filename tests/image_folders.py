"""Small folders laid out as those of Shoes and SUN."""

import csv

import numpy as np
from PIL import Image

SHOES = ["brown", "comfortable", "fashionable", "formal", "open", "ornate", "pointy"]
SUN = ["cluttered", "modern", "opening area", "rustic", "soothe"]
NAMES = [f"{number:03d}" for number in range(24)]
FEATURES = np.random.default_rng(5).standard_normal((24, 6))


def write_table(folder, attributes, name=lambda image: f"{image}.png", **changes):
    """Three people label 20 pictures about each attribute; eva has 7 positive labels."""
    rng = np.random.default_rng(0)
    rows = []
    for attribute in attributes:
        for person, positive in (("ann", 8), ("bob", 12), ("eva", 7)):
            images = rng.choice(NAMES, 20, replace=False)
            rows += [
                {
                    "attribute": attribute,
                    "person": person,
                    "image": name(i),
                    "label": int(k < positive),
                }
                for k, i in enumerate(images)
            ]
    rows = [row | changes for row in rows]
    with (folder / "annotations.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return rows


def write_pictures(folder, side=24):
    (folder / "images").mkdir()
    rng = np.random.default_rng(1)
    for name in NAMES:
        pixels = rng.integers(0, 256, (side, side + 4, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "images" / f"{name}.png")


def write_features(folder, names=NAMES, features=FEATURES):
    np.save(folder / "features.npy", features)
    (folder / "features.txt").write_text("\n".join(names) + "\n")
