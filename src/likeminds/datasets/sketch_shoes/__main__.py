"""Write a contact sheet: ``python -m likeminds.datasets.sketch_shoes sheet.png``."""

import argparse

from likeminds.datasets.sketch_shoes.album import Album, contact_sheet
from likeminds.datasets.sketch_shoes.kinds import KINDS
from likeminds.datasets.sketch_shoes.styles import draw_shoe
from likeminds.features.png import write_png


def main(arguments: list[str] | None = None) -> None:
    """Draw shoes of all kinds in turn, and write them as one picture."""
    parser = argparse.ArgumentParser(prog="python -m likeminds.datasets.sketch_shoes")
    parser.add_argument("path", help="the PNG file to write")
    parser.add_argument("--rows", type=int, default=6)
    parser.add_argument("--columns", type=int, default=8)
    parser.add_argument("--size", type=int, default=256, help="pixels of a picture")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    kinds = list(KINDS)
    shoes = [
        draw_shoe(number, options.seed, kinds[number % len(kinds)])
        for number in range(options.rows * options.columns)
    ]
    write_png(options.path, contact_sheet(Album(shoes, options.size)[:], options.columns))


if __name__ == "__main__":
    main()
