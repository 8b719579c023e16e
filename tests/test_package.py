"""The package as a whole: what importing it costs, and what it offers."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import likeminds


def test_every_public_name_is_there():
    assert set(likeminds.__all__) <= set(dir(likeminds))
    for name in likeminds.__all__:
        assert getattr(likeminds, name) is not None
    assert sorted(likeminds._HOME_OF) == sorted(set(likeminds.__all__) - {"__version__"})


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError):
        likeminds.ThreeLevelRankr  # noqa: B018


def test_importing_pulls_in_nothing_heavy():
    code = "import sys, likeminds; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"sklearn", "scipy", "numpy", "pandas", "pyarrow", "polars", "matplotlib", "rich"}
    assert not heavy & set(done.stdout.split())


def test_the_extra_all_is_all_others_but_large_ones_that_few_need():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    (everything,) = extras.pop("all")
    large = {"mlflow", "onnx", "spark"}
    required = {re.match(r"[a-z-]+", one)[0] for one in project["dependencies"]}
    assert {"pillow", "matplotlib"} <= required
    (named,) = re.fullmatch(rf"{project['name']}\[(.*)\]", everything).groups()
    assert set(named.split(",")) == set(extras) - large


@pytest.mark.parametrize(
    "attribute",
    [
        "baselines.RMTL",
        "components.Group",
        "datasets.load_electricity",
        "features.Reduce",
        "laplacian.laplacian_product",
        "losses.Loss",
        "metrics.mean_auc",
        "plots.people_map",
        "theory.generalization_bound",
    ],
)
@pytest.mark.slow
def test_public_folders_need_no_import_of_their_own(attribute):
    code = f"import likeminds; print(likeminds.{attribute}.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == attribute.partition(".")[2]
