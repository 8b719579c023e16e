"""Models as MLflow "pyfunc", the common interface for serving and registering models.

MLflow stores the file that `likeminds.save` wrote, with this module as its loader, without pickle.
MLflow is optional (``pip install 'likeminds[mlflow]'``).
"""

import tempfile
from os import PathLike
from pathlib import Path

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.lazy_imports import require
from likeminds._version import __version__
from likeminds.data.column_roles import as_frame, find_column
from likeminds.data.tables import feature_matrix
from likeminds.rankers.ranker import Ranker
from likeminds.storage.models import load, save

_FILE = "model.likeminds"


def save_pyfunc(ranker: Ranker, path: str | PathLike[str], **options: object) -> Path:
    """Save a ranker as an MLflow model.

    Parameters
    ----------
    ranker : Ranker
        A fitted ranker.
    path : path
        The folder to create.
    **options
        Passed to ``mlflow.pyfunc.save_model``: ``signature``, ``input_example``, ``metadata``,
        ``pip_requirements`` (by default this version of likeminds).

    Returns
    -------
    Path

    Notes
    -----
    ``mlflow.pyfunc.load_model(path).predict(frame)`` takes a data frame with the features. Columns
    of users and items are found by their usual names. It returns a score for each row. Users and
    items not seen in training follow the ranker's ``unknown``.
    """
    pyfunc = require("mlflow.pyfunc", "An MLflow model", "mlflow")
    # Without this, MLflow loads the model to infer its requirements.
    if not {"conda_env", "pip_requirements"} & set(options):
        options["pip_requirements"] = [f"likeminds=={__version__}"]
    with tempfile.TemporaryDirectory() as folder:
        file = save(ranker, Path(folder) / _FILE)
        pyfunc.save_model(
            path=str(path), loader_module="likeminds.storage.pyfunc", data_path=str(file), **options
        )
    return Path(path)


class PyfuncRanker:
    """A ranker behind MLflow's interface.

    Parameters
    ----------
    ranker : Ranker
        A fitted ranker.
    """

    def __init__(self, ranker: Ranker) -> None:
        self.ranker = ranker

    def predict(self, model_input: object, params: object = None) -> Float:
        """Score each row of a data frame for its user."""
        del params
        frame = as_frame(model_input)
        names = [str(name) for name in self.ranker.feature_names_]
        free = [name for name in frame.columns if name not in names]
        positions, items = (find_column(role, free) for role in ("user", "item"))
        X = feature_matrix(frame, names)
        users = None if positions is None else frame.get_column(positions).to_list()
        shown = None if items is None else frame.get_column(items).to_list()
        return np.asarray(self.ranker.decision_function(X, users, shown))


def _load_pyfunc(path: str) -> PyfuncRanker:
    """Return the model in a file; MLflow calls this function."""
    return PyfuncRanker(load(path))
