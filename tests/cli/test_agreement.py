"""``likeminds agreement`` and ``diagnose`` print the results of the functions."""

import json

import numpy as np
import pandas as pd
import pytest

from commands import run, told
from likeminds import Annotations, HierarchicalRanker, diagnose, load, make_schools, save
from likeminds.diagnostics import UNUSUAL
from likeminds.metrics import agreement, score_choices
from likeminds.rankers.nominal import row_chances


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


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """Return a folder with a model of a crowd with a reversed user, the model, and its labels."""
    folder = tmp_path_factory.mktemp("annotators")
    annotations = make_schools(20, 40, 60, 4, 1, random_state=0).annotations
    labels = np.where(annotations.users == annotations.user_ids[3], 1, 0) ^ annotations.labels
    frame = annotations._with(labels=labels.astype(annotations.labels.dtype))
    ranker = HierarchicalRanker(n_groups=1).fit(frame)
    save(ranker, folder / "kept.likeminds", with_data=True)
    save(ranker, folder / "bare.likeminds", with_data=False)
    return folder, ranker, frame


def test_agreement_of_the_labels_of_a_model(crowd):
    folder, _, annotations = crowd
    found = told(folder, "agreement", "kept.likeminds", "--n-bootstrap", "0")["coefficients"]
    expected = agreement(annotations, n_bootstrap=0).coefficients
    assert [row["value"] for row in found] == pytest.approx([one.value for one in expected])
    done = run(folder, "agreement", "bare.likeminds")
    assert done.code == 2
    assert "--annotations" in done.err


def test_diagnose_shows_verdicts_and_writes_all_annotators(crowd):
    folder, ranker, annotations = crowd
    expected = diagnose(ranker, annotations)
    assert "reversed" in expected.verdict
    done = run(folder, "diagnose", "kept.likeminds", "--out", "annotators.csv")
    assert done.code == 0, done.err
    written = pd.read_csv(folder / "annotators.csv")
    assert written["verdict"].tolist() == expected.verdict.tolist()
    checked, _, severity = done.out.partition("Annotators to check")[2].partition("Severity: ")
    unusual = expected.users[np.isin(expected.verdict, UNUSUAL)].tolist()
    shown = [line.split()[0] for line in checked.splitlines() if len(line.split()) == 6]
    assert set(shown) == set(map(str, unusual))
    assert "thresholds differ" in severity
    (found,) = told(folder, "diagnose", "kept.likeminds")["diagnostics"]
    assert found["counts"] == expected.counts
    assert found["agreement"] == expected.agreement.to_arrow().to_pylist()
    assert "alpha (nominal)" in done.out
    assert expected.disagreement()[:30] in done.out
    done = run(folder, "export", "kept.likeminds", "--annotators", "again.csv")
    assert done.code == 0, done.err
    assert (folder / "again.csv").read_text() == (folder / "annotators.csv").read_text()
    assert run(folder, "export", "kept.likeminds").code == 2


def test_seconds_come_from_a_table(crowd):
    folder, _, annotations = crowd
    users = annotations.user_ids.tolist()
    rows = [f"{user},{2 + place}" for place, user in enumerate(users)]
    (folder / "times.csv").write_text("\n".join(["user,lead_time", *rows, f"{users[0]},9"]))
    (found,) = told(folder, "diagnose", "kept.likeminds", "--seconds", "times.csv")["diagnostics"]
    assert [row["seconds"] for row in found["annotators"]] == [5.5, *range(3, 2 + len(users))]
    (folder / "wrong.csv").write_text("user,age\na,1\n")
    done = run(folder, "diagnose", "kept.likeminds", "--seconds", "wrong.csv")
    assert done.code == 2
    assert "lead_time" in done.err


@pytest.mark.seconds
def test_without_leaves_annotators_out_of_fit_and_export(crowd):
    folder, ranker, annotations = crowd
    out = diagnose(ranker, annotations).of("reversed").tolist()
    assert out
    frame = pd.DataFrame(
        {"user": annotations.users, "item": annotations.items, "label": annotations.labels}
    )
    frame.to_csv(folder / "labels.csv", index=False)
    asked = ("fit", "--annotations", "labels.csv", "--out", "less.likeminds")
    done = run(folder, *asked, "--without", "reversed,random")
    assert done.code == 0, done.err
    assert "Left out as reversed" in done.out
    less = load(folder / "less.likeminds")
    assert not set(map(str, out)) & set(map(str, less.users_))
    done = run(folder, "export", "kept.likeminds", "--without", "reversed", "--out", "soft.csv")
    assert done.code == 0, done.err
    votes = pd.read_csv(folder / "soft.csv").set_index("item")["votes"]
    kept = annotations[~np.isin(annotations.users, out)]
    items, counts = np.unique(kept.items, return_counts=True)
    assert votes.loc[items].tolist() == counts.tolist()
    done = run(folder, *asked, "--without", "lazy")
    assert done.code == 2
    assert "constant, random" in done.err


@pytest.mark.seconds
def test_labels_without_an_order(tmp_path):
    rows = [(u, i, "pqr"[(i + (u == "d")) % 3]) for u in "abcd" for i in range(12)]
    frame = pd.DataFrame(rows, columns=["user", "item", "label"])
    frame[:40].to_csv(tmp_path / "first.csv", index=False)
    frame[40:].to_csv(tmp_path / "rest.csv", index=False)
    data, model = ("--annotations", "first.csv", "--nominal"), "model.likeminds"
    done = run(tmp_path, "fit", *data, "--holdout", "0.25", "--out", model, "--jobs", "1")
    assert done.code == 0
    assert "40 labels of 3 classes" in done.out
    assert "Accuracy, held-out classes" in done.out
    assert load(tmp_path / model).classes_.tolist() == list("pqr")
    judged = json.loads(
        run(tmp_path, "evaluate", model, "--annotations", "first.csv", "--json").out
    )
    said = Annotations.from_csv(tmp_path / "first.csv", nominal=True)
    expected = score_choices(said, row_chances(said, load(tmp_path / model).predict_proba(said)))
    assert judged["class_accuracy"] == pytest.approx(expected.accuracy.mean)
    assert run(tmp_path, "export", model, "--out", "soft.csv").code == 0
    soft = pd.read_csv(tmp_path / "soft.csv")
    assert soft.columns.tolist() == ["item", "votes", "share_p", "share_q", "share_r"]
    np.testing.assert_allclose(soft.iloc[:, 2:].sum(axis=1), 1.0)
    more = run(tmp_path, "update", model, "--annotations", "rest.csv")
    assert "added 8 labels of 3 classes" in more.out
    assert load(tmp_path / model).rankers_["p"].n_labels_ == 48
    found = json.loads(run(tmp_path, "agreement", *data, "--n-bootstrap", "0", "--json").out)
    expected = agreement(Annotations.from_frame(frame[:40], nominal=True), n_bootstrap=0)
    assert [row["value"] for row in found["coefficients"]] == pytest.approx(
        [one.value for one in expected.coefficients]
    )
    wrong = run(tmp_path, "fit", *data, "--positive", "p", "--out", "other.likeminds")
    assert wrong.code == 2
    assert "--nominal" in wrong.err
