"""Large CSV files are read batch by batch, and are the same tables as those read whole."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from likeminds import Annotations
from likeminds.data.sources import files, read_csv

# More than a block of the reader has, of which the types are found in the first.
N_ROWS = 40_000


def written(path, last):
    rng = np.random.default_rng(0)
    sizes = [f"{number}" for number in rng.integers(9, size=N_ROWS - 1)]
    columns = {
        "user": [f"{number:030}" for number in range(N_ROWS)],
        "label": rng.integers(2, size=N_ROWS),
        "size": [*sizes, last],
    }
    csv.write_csv(pa.table(columns), path, csv.WriteOptions(quoting_style="none"))
    return path


@pytest.mark.parametrize("last", ["7", "7.5", "", "large"])
def test_types_that_a_later_batch_has_are_found(tmp_path, monkeypatch, last):
    path = written(tmp_path / "labels.csv", last)
    assert path.stat().st_size > files._BLOCK
    whole = read_csv(path)
    monkeypatch.setattr(files, "_LARGE", 1)
    assert read_csv(path).equals(whole)
    with path.open("rb") as file:
        assert read_csv(file).equals(whole)


def test_labels_are_the_same(tmp_path, monkeypatch):
    path = written(tmp_path / "labels.csv", "7")
    whole = Annotations.from_csv(path)
    monkeypatch.setattr(files, "_LARGE", 1)
    batches = Annotations.from_csv(path)
    assert batches.user_ids[0] == "0" * 30
    np.testing.assert_array_equal(batches.users, whole.users)
    np.testing.assert_array_equal(batches.features, whole.features)
