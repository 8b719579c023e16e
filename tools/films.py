"""Write ratings.csv and movies.csv, made up, in the form in which films are published.

python -m tools.films [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np

GENRES = ("Action", "Comedy", "Drama", "Horror")
# How much people like the genres on average; what they differ by has a variance of 1.
_LIKED = (0.3, 0.2, 0.4, -0.6)


def write(folder: Path, n_users: int = 80, n_films: int = 60, n_ratings: int = 25) -> None:
    """Write both files; films are better or worse than their genres."""
    rng = np.random.default_rng(1)
    has = rng.random((n_films, len(GENRES))) < 0.4
    has[~has.any(axis=1), 2] = True
    quality = rng.normal(0, 0.7, n_films)
    films, ratings = ["movieId,title,genres"], ["userId,movieId,rating,timestamp"]
    for film, genres in enumerate(has):
        names = "|".join(np.array(GENRES)[genres])
        films.append(f'{film},"Film {film}, The ({1960 + film})",{names}')
    for person in range(n_users):
        mean = 3 + has @ rng.normal(_LIKED, 1.0) + quality
        for film in rng.permutation(n_films)[:n_ratings]:
            stars = np.clip(np.round(mean[film] + rng.normal(0, 0.5)), 1, 5)
            ratings.append(f"{person},{film},{stars:.0f},{1_000_000 + film}")
    (folder / "movies.csv").write_text("\n".join(films) + "\n")
    (folder / "ratings.csv").write_text("\n".join(ratings) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
