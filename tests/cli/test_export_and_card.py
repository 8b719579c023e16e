"""Soft labels go back into the labelling tool, and a model has a card."""

import csv
import json

import numpy as np
import pytest

from commands import run, told

N_PEOPLE, N_ITEMS = 14, 10


def answers():
    rng = np.random.default_rng(0)
    gladness = np.linspace(-3, 3, N_ITEMS)
    return np.where(rng.logistic(size=(N_PEOPLE, N_ITEMS)) < gladness, "glad", "sad")


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    said = answers()

    def result(choice):
        about = {"from_name": "mood", "to_name": "day", "type": "choices"}
        return about | {"value": {"choices": [str(choice)]}}

    tasks = [
        {
            "id": 100 + j,
            "data": {"day": f"Day {j}"},
            "annotations": [
                {"completed_by": i, "result": [result(said[i, j])]} for i in range(N_PEOPLE)
            ],
        }
        for j in range(N_ITEMS)
    ]
    (folder / "export.json").write_text(json.dumps(tasks))
    source = ("--from", "label-studio", "export.json")
    done = run(folder, "fit", *source, "--positive", "glad", "--out", "mood.likeminds")
    assert done.code == 0, done.err
    return folder


def test_predictions_for_label_studio(studio):
    shares = {}
    assert told(studio, "export", "mood.likeminds", "--out", "soft.csv")["items"] == 10
    with (studio / "soft.csv").open() as file:
        shares = {int(row["item"]): float(row["share"]) for row in csv.DictReader(file)}
    back = ("--back-to", "label-studio", "export.json", "--out", "back.json")
    assert run(studio, "export", "mood.likeminds", *back).code == 0
    tasks = json.loads((studio / "back.json").read_text())
    assert [task["id"] for task in tasks] == [100 + j for j in range(N_ITEMS)]
    for task in tasks:
        [prediction] = task["predictions"]
        [result] = prediction["result"]
        share = shares[task["id"]]
        assert result["value"]["choices"] == ["glad" if share >= 0.5 else "sad"]
        assert prediction["score"] == pytest.approx(max(share, 1 - share))
        assert (result["from_name"], result["to_name"]) == ("mood", "day")
        assert task["data"]["day"].startswith("Day ")
    assert tasks[0]["predictions"][0]["result"][0]["value"]["choices"] == ["sad"]
    assert tasks[-1]["predictions"][0]["result"][0]["value"]["choices"] == ["glad"]
    # What single people said stays where it was.
    assert "completed_by" not in (studio / "back.json").read_text()


@pytest.mark.parametrize("version", [1, 2])
def test_suggestions_for_argilla(tmp_path, version):
    said = answers()

    def responses(j):
        if version == 2:
            given = [{"value": str(said[i, j]), "user_id": f"u{i}"} for i in range(N_PEOPLE)]
            return {"mood": given}
        return [
            {
                "user_id": f"u{i}",
                "status": "submitted",
                "values": {"mood": {"value": str(said[i, j])}},
            }
            for i in range(N_PEOPLE)
        ]

    records = [
        {"id": f"r{j}", "fields": {"text": f"Day {j}"}, "responses": responses(j)}
        for j in range(N_ITEMS)
    ]
    (tmp_path / "records.json").write_text(json.dumps(records))
    source = ("--from", "argilla", "records.json", "--positive", "glad")
    assert run(tmp_path, "fit", *source, "--out", "mood.likeminds").code == 0
    back = ("--back-to", "argilla", "records.json", "--out", "back.json")
    assert run(tmp_path, "export", "mood.likeminds", *back).code == 0
    first, *_, last = json.loads((tmp_path / "back.json").read_text())
    suggestions = first["suggestions"]
    found = suggestions["mood"] if version == 2 else suggestions[0]
    assert found["value"] == "sad"
    assert 0.5 <= found["score"] <= 1
    assert found["agent"].startswith("likeminds ")
    assert version == 2 or found["question_name"] == "mood"
    assert last["fields"] == {"text": "Day 9"}


def test_what_cannot_go_back_is_said(studio, tmp_path):
    ask = ("export", "mood.likeminds", "--out", "x.json", "--back-to")
    assert "choose label-studio or argilla" in run(studio, *ask, "prodigy", "export.json").err
    (tmp_path / "other.json").write_text(json.dumps([{"id": 1, "data": {}}]))
    done = run(studio, *ask, "label-studio", str(tmp_path / "other.json"))
    assert done.code == 2
    assert "None of the records is an item of this model" in done.err


@pytest.mark.seconds
def test_annotators_as_json_lines(studio):
    ask = ("export", "mood.likeminds", "--out", "soft.jsonl")
    assert told(studio, *ask, "--annotators", "people.jsonl")["users"] == N_PEOPLE
    rows = [json.loads(line) for line in (studio / "people.jsonl").read_text().splitlines()]
    assert {"user", "verdict", "readiness", "consensus_auc"} <= set(rows[0])
    soft = [json.loads(line) for line in (studio / "soft.jsonl").read_text().splitlines()]
    assert len(soft) == N_ITEMS


def test_a_model_has_a_card(studio):
    ask = ("card", "mood.likeminds", "--out", "README.md", "--license", "cc0-1.0")
    assert run(studio, *ask, "--name", "Moods: of days").code == 0
    text = (studio / "README.md").read_text()
    head, body = text.removeprefix("---\n").split("\n---\n", 1)
    assert head.splitlines()[:3] == ["library_name: likeminds", 'license: "cc0-1.0"', "tags:"]
    assert "# Moods: of days" in body
    assert "14 people" in body
    assert "140 labels" in body
    assert "The file holds the training labels" in body
    assert "Not measured" in body
    assert told(studio, "card", "mood.likeminds")["card"].startswith("---\n")


def test_a_card_tells_what_was_measured():
    from likeminds.report.model_card import model_card

    known = {
        "ranker": "HierarchicalRanker", "users": 3, "labels": 9, "features": ["a|b"],
        "version": "0.1.0", "scores": {"held_out": 0.2, "auc": 0.8123, "error": 0.01},
        "parameters": {"n_groups": "auto", "tol": 1e-5}, "takes_updates": False,
        "attributes": None, "label_reading": None, "fingerprint": "f",
    }  # fmt: skip
    text = model_card(known, 'A "name"', file="m.likeminds")
    assert text.splitlines()[1] == "library_name: likeminds"
    assert '- name: "A \\"name\\""' in text
    assert '    - type: "auc"\n      value: 0.8123' in text
    assert "| auc | 0.812 |" in text
    assert "20% of each person's labels" in text
    assert "a\\|b" in text
    assert "holds no labels" in text
