"""``likeminds agreement`` prints what `likeminds.metrics.agreement` returns."""

import json

import pandas as pd
import pytest

from commands import run
from likeminds import Annotations
from likeminds.metrics import agreement


@pytest.fixture
def labels(tmp_path):
    rows = [(u, i, (ord(u) * 7 + i * i) % 3 > 0) for u in "abcd" for i in range(12)]
    path = tmp_path / "labels.csv"
    pd.DataFrame(rows, columns=["user", "item", "label"]).to_csv(path, index=False)
    return path


def test_json_has_the_coefficients_and_out_those_of_users(labels, tmp_path):
    asked = ("agreement", "--annotations", "labels.csv", "--n-bootstrap", "50")
    done = run(tmp_path, *asked, "--out", "users.csv")
    assert done.code == 0
    assert "alpha (nominal)" in done.out
    assert "alpha (ordinal)" not in done.out  # of yes and no, the same number again
    assert "Agreement of 4 annotators on 12 items with 48 labels" in done.out
    assert "where 1 is full agreement" in done.out
    assert pd.read_csv(tmp_path / "users.csv")["user"].tolist() == list("abcd")
    expected = agreement(Annotations.from_csv(labels), n_bootstrap=50)
    found = json.loads(run(tmp_path, *asked, "--json").out)
    for row, one in zip(found["coefficients"], expected.coefficients, strict=True):
        assert row["name"] == one.name
        assert row["value"] == pytest.approx(one.value)


def test_without_common_items_it_ends_in_an_error(tmp_path):
    path = tmp_path / "apart.csv"
    path.write_text("user,item,label\na,x,1\nb,y,0\n")
    done = run(tmp_path, "agreement", "--annotations", "apart.csv")
    assert done.code == 2
    assert "two users" in done.err
