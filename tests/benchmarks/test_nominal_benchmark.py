"""The benchmark of labels without an order: on the simulated crowd, and its parts."""

import json

import numpy as np
import pytest
from benchmarks.nominal import BEGIN, END, NominalCrowd, dawid_skene, main, majority_vote


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_the_page_has_every_method(tmp_path):
    page = tmp_path / "how-to" / "nominal.md"
    page.parent.mkdir()
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    main(["--quick", "--out", str(tmp_path)])
    assert page.read_text().startswith(f"before\n{BEGIN}\n| data | method |")
    assert page.read_text().endswith(f"{END}\nafter\n")
    found = json.loads((tmp_path / "nominal.json").read_text())["simulated"]
    assert set(found) == {"majority vote", "Dawid-Skene", "choice sets", "NominalRanker"}
    assert found["NominalRanker"]["accuracy"] > found["majority vote"]["accuracy"]
    assert found["NominalRanker"]["log loss"] < found["Dawid-Skene"]["log loss"]


def test_dawid_skene_finds_who_exchanges_two_classes():
    user, item = np.repeat(np.arange(5), 40), np.tile(np.arange(40), 5)
    truth = np.arange(40) % 3
    label = np.where((user == 4) & (truth[item] < 2), 1 - truth[item], truth[item])
    crowd = NominalCrowd(user, item, label, np.zeros((40, 0)))
    assert (dawid_skene(crowd)(user, item).argmax(axis=1) == label).all()
    shares = majority_vote(crowd)(user[:1], item[:1])[0]
    assert shares[0] == pytest.approx((4 + (label == 0).mean()) / 6)
