"""A model of MLflow scores what the ranker scores, without a pickle."""

import numpy as np
import pandas as pd
import pytest

from likeminds import Annotations, HierarchicalRanker, make_schools, save
from likeminds.storage.pyfunc import _load_pyfunc, save_pyfunc


@pytest.fixture(scope="module")
def told():
    crowd = make_schools(20, 15, 30, 6, n_schools=2, random_state=0).annotations
    ranker = HierarchicalRanker(n_groups=1, n_item_factors=0).fit(crowd)
    frame = pd.DataFrame(crowd.X[:20], columns=list(crowd.feature_names))
    return ranker, crowd[:20], frame.assign(person=crowd.users[:20], item=crowd.items[:20])


def test_rows_are_scored_for_their_people(told, tmp_path):
    ranker, crowd, frame = told
    served = _load_pyfunc(str(save(ranker, tmp_path / "model")))
    assert served.predict(frame) == pytest.approx(ranker.decision_function(crowd))
    alone = served.predict(frame.drop(columns=["person", "item"]))
    assert alone == pytest.approx(crowd.X @ ranker.consensus_)


def test_items_without_features_are_scored_for_known_and_new_people(told, tmp_path):
    said = told[1]
    crowd = Annotations(said.users, said.items, said.labels)
    ranker = HierarchicalRanker(item_effects=True, n_item_factors=0, unknown="consensus").fit(crowd)
    served = _load_pyfunc(str(save(ranker, tmp_path / "model")))
    known, item = crowd.users[0], crowd.items[0]
    scores = served.predict(pd.DataFrame({"person": [known, "new"], "item": [item, item]}))
    assert scores == pytest.approx(
        ranker.decision_function(np.zeros((2, 0)), [known, "new"], [item, item])
    )


def test_it_is_a_model_of_mlflow(told, tmp_path):
    pyfunc = pytest.importorskip("mlflow.pyfunc", reason="mlflow is not installed")
    ranker, crowd, frame = told
    path = save_pyfunc(ranker, tmp_path / "model")
    assert "likeminds==" in (path / "requirements.txt").read_text()
    assert not list(path.rglob("*.pkl"))
    scores = pyfunc.load_model(str(path)).predict(frame)
    assert np.asarray(scores) == pytest.approx(ranker.decision_function(crowd))


def test_it_says_what_to_install(told, tmp_path):
    try:
        import mlflow.pyfunc  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError):
            save_pyfunc(told[0], tmp_path / "model")
