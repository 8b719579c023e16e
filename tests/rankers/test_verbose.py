"""`verbose` reports progress on stderr and changes nothing else."""

import numpy as np
import pytest
from sklearn.base import clone

import likeminds
from likeminds import (
    HierarchicalRanker,
    RankerCV,
    ThreeLevelRanker,
    ThreeLevelRankerCV,
    baselines,
    make_schools,
)
from likeminds.baselines import RMTL

GRID = {"alpha_group": [0.3, 1.0], "n_groups": [0, 1]}
RANKERS = {
    "HierarchicalRanker, step": HierarchicalRanker(),
    "ThreeLevelRanker, step": ThreeLevelRanker(),
    "RMTL, step": RMTL(),
    "8 of 8 fits of the search": RankerCV(ThreeLevelRanker(), GRID, n_folds=2, halving=False),
    "12 of 12 fits of the search": ThreeLevelRankerCV(GRID, n_folds=3),
}


@pytest.fixture(scope="module")
def crowd():
    return make_schools(12, 20, 40, 8, 2, random_state=0).annotations


@pytest.mark.parametrize("words", RANKERS)
def test_it_reports_and_fits_the_same(words, crowd, capsys, tmp_path):
    ranker = RANKERS[words]
    silent = fitted(ranker, False, crowd)
    assert capsys.readouterr() == ("", "")
    aloud = fitted(ranker, True, crowd)
    heard = capsys.readouterr()
    assert heard.out == ""
    assert words in heard.err
    np.testing.assert_array_equal(aloud.coef_, silent.coef_)
    likeminds.save(aloud, tmp_path / "model.likeminds")
    assert likeminds.load(tmp_path / "model.likeminds").verbose is False


@pytest.mark.parametrize("name", baselines.__all__)
def test_every_baseline_reports_its_steps(name, crowd, capsys):
    ranker = getattr(baselines, name)()
    scores = fitted(ranker, False, crowd).decision_function(crowd)
    assert not capsys.readouterr().err
    aloud = fitted(ranker, True, crowd)
    assert f"{name}, step" in capsys.readouterr().err
    np.testing.assert_array_equal(aloud.decision_function(crowd), scores)


def fitted(ranker, verbose, crowd):
    return clone(ranker).set_params(verbose=verbose).fit(crowd)


@pytest.mark.parametrize("n_candidates", [3, 8, 40])
def test_searches_count_once_to_their_total(n_candidates, crowd, capsys):
    grid = {"alpha_group": np.linspace(0.1, 1, n_candidates).tolist()}
    RankerCV(ThreeLevelRanker(), grid, n_folds=4, verbose=True).fit(crowd)
    lines = [line for line in capsys.readouterr().err.splitlines() if "of the search" in line]
    counts = [int(line.split()[0]) for line in lines]
    assert counts == sorted(set(counts))
    assert counts[-1] == int(lines[-1].split()[2])
