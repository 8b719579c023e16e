"""Submissions to the LeWiDi shared tasks (learning with disagreements)."""

from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.array_types import Float
from likeminds._util.atomic_files import write_whole
from likeminds._util.checks import as_vector, listing
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import encode
from likeminds.rankers.capabilities import with_consensus
from likeminds.rankers.latent_class import LatentClassRanker
from likeminds.rankers.prior_ranker import PriorRanker


def write_lewidi(
    ranker: PriorRanker | LatentClassRanker,
    annotations: Annotations,
    folder: str | PathLike[str],
    name: str,
    *,
    levels: ArrayLike | None = None,
) -> tuple[Path, Path]:
    """Write predictions in the format of LeWiDi 2025, for both of its tasks.

    ``NAME_test_soft.tsv`` has the soft label of each item: the mean probability of each label over
    its annotators. ``NAME_test_pe.tsv`` has a label for each annotator of an item, in the order of
    rows: the median of the predicted distribution (with two labels, the likelier one).

    Parameters
    ----------
    ranker : HierarchicalRanker or LatentClassRanker
        A fitted ranker. Unknown annotators get the prediction of the average user.
    annotations : Annotations
        A row for each annotator of each item. Labels are not used.
    folder : path
        The existing folder to write to.
    name : str
        The name of the data set, such as "MP" or "CSC".
    levels : array, optional
        All grades of the scale, ascending; by default those in training, and 0 and 1 for yes or no.

    Returns
    -------
    soft, perspectivist : Path
        The two files.

    Examples
    --------
    >>> import tempfile
    >>> from likeminds import LatentClassRanker, make_schools, write_lewidi
    >>> crowd = make_schools(30, 20, 40, 6, 2, random_state=0).annotations
    >>> ranker = LatentClassRanker(2, n_starts=2).fit(crowd)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     soft, perspectivist = write_lewidi(ranker, crowd, folder, "MP")
    ...     len(soft.read_text().splitlines()), perspectivist.name
    (40, 'MP_test_pe.tsv')
    """
    if not annotations.has_items:
        raise ValueError("The annotations have no item ids. Pass items= to Annotations.")
    grades, chances = _distributions(ranker, annotations)
    if levels is not None:
        grades, chances = _spread(grades, chances, as_vector(levels, "levels"))
    median = np.asarray(grades)[(chances.cumsum(axis=1) < 0.5).sum(axis=1)]
    codes, items = encode(annotations.items, "items")
    shares = np.zeros((len(items), chances.shape[1]))
    np.add.at(shares, codes, chances)
    shares /= shares.sum(axis=1, keepdims=True)
    labels: list[list[str]] = [[] for _ in items]
    for item, label in zip(codes.tolist(), median.tolist(), strict=True):
        labels[item].append(f"{label:g}")
    soft = [[f"{share:.10f}" for share in row] for row in shares.tolist()]
    places = Path(folder) / f"{name}_test_soft.tsv", Path(folder) / f"{name}_test_pe.tsv"
    for place, rows in zip(places, (soft, labels), strict=True):
        lines = (f"{item}\t[{', '.join(row)}]\n" for item, row in zip(items, rows, strict=True))
        write_whole(place, "".join(lines).encode())
    return places


def _distributions(
    ranker: PriorRanker | LatentClassRanker, annotations: Annotations
) -> tuple[Float, Float]:
    """Return the grades, and the probability of each for each row."""
    lenient = with_consensus(ranker)
    if not isinstance(lenient, PriorRanker) or ranker.grading_ is None:
        return np.array([0.0, 1.0]), lenient.predict_proba(annotations)
    found = lenient.predict_grades(annotations)
    if found.grades.dtype == object:
        raise ValueError(
            f"Grades must be numbers, but are {listing(found.grades.tolist())}. Fit the ranker to "
            "numeric grades."
        )
    return np.asarray(found.grades, dtype=np.float64), found.probabilities


def _spread(grades: Float, chances: Float, levels: ArrayLike) -> tuple[Float, Float]:
    """Return the probabilities of all levels of a scale; zero for levels without a grade."""
    scale = np.sort(np.asarray(levels, dtype=np.float64))
    strange = grades[~np.isin(grades, scale)]
    if strange.size:
        raise ValueError(f"levels must include grade(s) {listing(strange.tolist())} of the ranker.")
    wide = np.zeros((len(chances), len(scale)))
    wide[:, np.searchsorted(scale, grades)] = chances
    return scale, wide
