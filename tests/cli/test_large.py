"""likeminds fit --memory: from a folder of Parquet files to a model, and nothing else left."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from commands import run
from likeminds import HierarchicalRanker, load
from likeminds.data.out_of_core.external_sort import ExternalSort


@pytest.fixture
def labels(tmp_path):
    rng = np.random.default_rng(0)
    folder = tmp_path / "labels"
    folder.mkdir()
    for part in range(2):
        user, item = rng.integers(8, size=120), rng.integers(30, size=120)
        said = np.where(item + 5 * rng.standard_normal(120) > 15, "yes", "no")
        table = pa.table({"user": user, "item": item, "label": said})
        parquet.write_table(table, folder / f"part-{part}.parquet")
    items = pa.table({"item": np.arange(30), "size": np.arange(30.0)})
    parquet.write_table(items, tmp_path / "items.parquet")
    return tmp_path


FIT = ("fit", "--annotations", "labels", "--features", "items.parquet", "--positive", "yes")


@pytest.mark.seconds
@pytest.mark.parametrize("ranker", ["hierarchical", "RidgeToConsensus"])
def test_a_folder_becomes_a_model(labels, ranker):
    words = (*FIT, "--memory", "1GB", "--out", "m.likeminds", "--ranker", ranker)
    done = run(labels, *words)
    assert done.code == 0, done.err
    model = load(labels / "m.likeminds")
    assert len(model.users_) == 8
    assert model.coef_.mean() > 0
    assert {path.name for path in labels.iterdir()} == {"labels", "items.parquet", "m.likeminds"}


def test_a_csv_file_becomes_the_same_model(labels):
    parts = [parquet.read_table(file) for file in sorted((labels / "labels").iterdir())]
    csv.write_csv(pa.concat_tables(parts), labels / "labels.csv")
    words = ("fit", "--annotations", "labels.csv", *FIT[3:], "--ranker", "RidgeToConsensus")
    for more in (("--out", "here.likeminds"), ("--out", "disk.likeminds", "--memory", "1GB")):
        done = run(labels, *words, *more)
        assert done.code == 0, done.err
    here, disk = (load(labels / f"{name}.likeminds") for name in ("here", "disk"))
    assert here.users_.tolist() == disk.users_.tolist()
    np.testing.assert_allclose(here.coef_, disk.coef_, atol=1e-8)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--memory", "much"), "like 4GB"),
        (("--memory", "1GB", "--holdout", "0.2"), "leave out --holdout"),
    ],
)
def test_what_does_not_go_with_memory_is_one_sentence(labels, more, said):
    done = run(labels, *FIT, "--out", "m.likeminds", *more)
    assert done.code == 2
    assert said in done.err
    assert not (labels / "m.likeminds").exists()


def test_a_broken_part_ends_the_fit_with_its_name(labels):
    (labels / "labels" / "part-1.parquet").write_bytes(b"PAR1 nothing PAR1")
    done = run(labels, *FIT, "--out", "m.likeminds", "--memory", "1GB")
    assert done.code == 2
    assert "part-1.parquet could not be read" in done.err
    assert {path.name for path in labels.iterdir()} == {"labels", "items.parquet"}


def test_an_interrupted_fit_goes_on_from_what_it_has_grouped(labels, monkeypatch):
    words = (*FIT, "--memory", "1GB", "--out", "m.likeminds")
    assert run(labels, *words).code == 0
    expected = load(labels / "m.likeminds").coef_.copy()
    (labels / "m.likeminds").unlink()

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(HierarchicalRanker, "_fit_annotations", interrupt)
        ended = run(labels, *words, "--scratch", "grouped")
    assert ended.code == 130
    assert "Labels are grouped in grouped: run the same command to resume." in ended.out
    assert not (labels / "m.likeminds").exists()
    assert len(list((labels / "grouped").iterdir())) == 1
    monkeypatch.setattr(ExternalSort, "spill", None)
    assert run(labels, *words, "--scratch", "grouped").code == 0
    np.testing.assert_array_equal(load(labels / "m.likeminds").coef_, expected)
