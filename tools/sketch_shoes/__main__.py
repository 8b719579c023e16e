"""Draw the bundled shoes: ``python -m tools.sketch_shoes`` or, as one picture, ``--sheet FILE``.

Writes ``sketch_shoes.webp`` (all pictures, in rows) and ``sketch_shoes.npz`` (kinds, visible
traits, and the features that `load_shoes` computes) into ``src/likeminds/datasets/data``.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image
from tools.sketch_shoes.album import Album, contact_sheet
from tools.sketch_shoes.kinds import KINDS
from tools.sketch_shoes.styles import draw_shoe
from tools.sketch_shoes.traits import traits_of

from likeminds.features import GIST, ColourHistogram

_DATA = Path("src/likeminds/datasets/data")
_PICTURES, _SIZE, _COLUMNS = 500, 96, 25


def main(arguments: list[str] | None = None) -> None:
    """Write the bundle, or a sheet with shoes of all kinds in turn."""
    parser = argparse.ArgumentParser(prog="python -m tools.sketch_shoes")
    parser.add_argument("--out", type=Path, default=_DATA, help="the folder for the bundle")
    parser.add_argument("--pictures", type=int, default=_PICTURES)
    parser.add_argument("--sheet", type=Path, help="write this picture of all kinds instead")
    parser.add_argument("--size", type=int, default=_SIZE, help="pixels of a picture")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.sheet is None:
        write_bundle(options.out, options.pictures, options.size, options.seed)
        return
    kinds = list(KINDS)
    shoes = [draw_shoe(n, options.seed, kinds[n % len(kinds)]) for n in range(48)]
    Image.fromarray(contact_sheet(Album(shoes, options.size)[:])).save(options.sheet)


def write_bundle(folder: Path, n_pictures: int, size: int, seed: int) -> None:
    """Draw shoes at twice the size, and write pictures, kinds, traits and features."""
    shoes = [draw_shoe(number, seed) for number in range(n_pictures)]
    small = [
        np.asarray(Image.fromarray(picture).resize((size, size), Image.Resampling.LANCZOS))
        for picture in Album(shoes, 2 * size)
    ]
    sheet = Image.fromarray(contact_sheet(np.stack(small), _COLUMNS))
    sheet.save(folder / "sketch_shoes.webp", quality=85, method=6)
    with Image.open(folder / "sketch_shoes.webp") as file:
        decoded = np.asarray(file.convert("RGB"))
    pictures = decoded.reshape(-1, size, _COLUMNS, size, 3).swapaxes(1, 2)
    pictures = pictures.reshape(-1, size, size, 3)[:n_pictures]
    extractors = GIST(), ColourHistogram("lab", bins=10)
    features = np.hstack([extractor.transform(pictures) for extractor in extractors])
    np.savez_compressed(
        folder / "sketch_shoes.npz",
        kinds=np.array([shoe.kind for shoe in shoes]),
        traits=traits_of(shoes).astype(np.float32),
        features=features.astype(np.float16),
        size=size,
        columns=_COLUMNS,
    )


if __name__ == "__main__":
    main()
