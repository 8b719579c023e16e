"""Exports of labelling tools: what is taken, and what is left out, counted and named."""

import contextlib
import json

import pytest

from likeminds.data.connectors import CONNECTORS, read_export
from likeminds.data.connectors.labelling_tools import ExportQuestion, return_to


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def lines(*records):
    return "\n".join(json.dumps(record) for record in records)


def reasons(export):
    return {left.reason: left.count for left in export.left_out}


def annotation(person, *results, **more):
    return {"completed_by": person, "result": list(results), **more}


def chose(*choices, control="mood"):
    return {"from_name": control, "to_name": "t", "type": "choices", "value": {"choices": choices}}


def label_studio(tmp_path, *tasks):
    return read_export("label-studio", write(tmp_path / "export.json", json.dumps(tasks)))


def test_label_studio_choices_and_ratings(tmp_path):
    rating = {"from_name": "stars", "type": "rating", "value": {"rating": 4}}
    export = label_studio(
        tmp_path,
        {
            "id": 7,
            "data": {"text": "What a day!"},
            "annotations": [
                annotation({"id": 1, "email": "a@b.c"}, chose("glad"), rating),
                annotation(2, chose("sad")),
                annotation(3, was_cancelled=True),
                annotation(4),
                annotation(None, chose("sad")),
            ],
        },
    )
    assert export.labels == [
        (1, 7, "stars", 4),
        (1, 7, "mood", "glad"),
        (2, 7, "mood", "sad"),
    ]
    assert export.texts == {7: "What a day!"}
    assert export.attributes == ["stars", "mood"]
    assert reasons(export) == {
        "since the annotator skipped the task": 1,
        "since it is empty": 1,
        "since it does not have completed_by": 1,
    }
    assert "record 1, annotation 3" in str(export)


def test_label_studio_several_ticks_become_yes_or_no_attributes(tmp_path):
    export = label_studio(
        tmp_path,
        {"id": 1, "data": {}, "annotations": [annotation(5, chose("rude", "sad"))]},
        {"id": 2, "data": {}, "annotations": [annotation(5, chose("sad"))]},
    )
    assert export.labels == [
        (5, 1, "mood: rude", True),
        (5, 1, "mood: sad", True),
        (5, 2, "mood: rude", False),
        (5, 2, "mood: sad", True),
    ]


def test_label_studio_pairs(tmp_path):
    def pair(selected):
        return {"from_name": "pw", "type": "pairwise", "value": {"selected": selected}}

    both = {"left": "long", "right": "short"}
    export = label_studio(
        tmp_path,
        {"id": 1, "data": both, "annotations": [annotation(5, pair("right"))]},
        {"id": 2, "data": both, "annotations": [annotation(6, pair("left"))]},
        {"id": 3, "data": both, "annotations": [annotation(6, pair(None))]},
        {"id": 4, "data": {"one": "long"}, "annotations": [annotation(6, pair("left"))]},
    )
    assert export.comparisons == [(5, "short", "long"), (6, "long", "short")]
    assert reasons(export) == {
        "since neither side was selected": 1,
        "since the task does not have exactly two texts to compare": 1,
    }


def test_label_studio_regions_are_named_and_left_out(tmp_path):
    box = {"from_name": "tag", "type": "rectanglelabels", "value": {"rectanglelabels": ["cat"]}}
    export = label_studio(tmp_path, {"id": 1, "data": {}, "annotations": [annotation(5, box)]})
    assert reasons(export) == {"since rectanglelabels is not a label of a whole item": 1}
    with pytest.raises(ValueError):
        export.to_table()


def test_the_same_judged_again_counts_once_and_later(tmp_path):
    first, second = annotation(5, chose("glad")), annotation(5, chose("sad"))
    export = label_studio(tmp_path, {"id": 1, "data": {}, "annotations": [first, second]})
    assert export.labels == [(5, 1, "mood", "sad")]
    assert reasons(export) == {"since the same user labelled the same item again later": 1}


def test_argilla_of_both_versions(tmp_path):
    new = {
        "id": "r1",
        "fields": {"text": "hello"},
        "responses": {
            "label": [
                {"value": "rude", "user_id": "u1"},
                {"value": "kind", "user_id": "u2", "status": "submitted"},
                {"value": "kind", "user_id": "u3", "status": "discarded"},
            ],
            "topics": [{"value": ["a", "b"], "user_id": "u1"}],
            "order": [{"value": [{"value": "x", "rank": 1}], "user_id": "u1"}],
        },
    }
    old = {
        "external_id": "r2",
        "fields": {"text": "bye"},
        "responses": [
            {"user_id": "u1", "status": "submitted", "values": {"stars": {"value": 3}}},
            {"user_id": None, "status": "submitted", "values": {"stars": {"value": 5}}},
        ],
    }
    export = read_export("argilla", write(tmp_path / "r.jsonl", lines(new, old)))
    assert set(export.labels) == {
        ("u1", "r1", "label", "rude"),
        ("u2", "r1", "label", "kind"),
        ("u1", "r1", "topics: a", True),
        ("u1", "r1", "topics: b", True),
        ("u1", "r2", "stars", 3),
    }
    assert export.texts == {"r1": "hello", "r2": "bye"}
    assert reasons(export) == {
        "since the response is discarded": 1,
        "since it is neither a label nor a rating": 1,
        "since it does not have a user": 1,
    }


def test_prodigy(tmp_path):
    path = write(
        tmp_path / "db.jsonl",
        lines(
            {
                "text": "a",
                "_input_hash": 1,
                "label": "RUDE",
                "answer": "accept",
                "_session_id": "x",
            },
            {
                "text": "a",
                "_input_hash": 1,
                "label": "RUDE",
                "answer": "reject",
                "_annotator_id": "y",
            },
            {
                "text": "b",
                "_input_hash": 2,
                "label": "RUDE",
                "answer": "ignore",
                "_annotator_id": "y",
            },
            {"text": "c", "_input_hash": 3, "label": "RUDE", "answer": "accept"},
            {
                "text": "d",
                "_input_hash": 4,
                "options": [{"id": "p"}, {"id": "q"}],
                "accept": ["q"],
                "answer": "accept",
                "_annotator_id": "y",
            },
        )
        + "\n{broken\n[1]\n",
    )
    export = read_export("prodigy", path)
    assert export.labels == [
        ("x", "1", "RUDE", True),
        ("y", "1", "RUDE", False),
        ("y", "4", "choice", "q"),
    ]
    assert reasons(export) == {
        "since the annotator ignored it": 1,
        "since it has no _annotator_id and no _session_id": 1,
        "since it is not valid JSON": 1,
        "since it is not a JSON object": 1,
    }
    assert "line 6" in str(export)


def test_lewidi_of_both_editions(tmp_path):
    records = {
        "1": {"text": "one", "annotators": "Ann1,Ann2", "annotations": "0,1"},
        "2": {"text": {"context": "c", "response": "r"}, "annotations": {"Ann1": "5", "Ann2": "x"}},
        "3": {"text": "three", "annotators": "Ann1", "annotations": "0,1"},
        "4": {"text": "four"},
    }
    export = read_export("lewidi", write(tmp_path / "train.json", json.dumps(records)))
    assert export.labels == [
        ("Ann1", "1", "label", 0),
        ("Ann2", "1", "label", 1),
        ("Ann1", "2", "label", 5),
        ("Ann2", "2", "label", "x"),
    ]
    assert export.texts["2"] == "c"
    assert reasons(export) == {
        "since its numbers of annotators and annotations differ": 1,
        "since it has no annotations": 1,
    }
    with pytest.raises(ValueError):
        read_export("lewidi", write(tmp_path / "list.json", "[]"))


VOTES = """timestamp,datetime,comment-id,voter-id,vote
3,c,0,8,-1
1,a,0,8,1
2,b,1,8,0
4,d,1,9,1
"""
COMMENTS = """timestamp,datetime,comment-id,author-id,agrees,disagrees,moderated,comment-body
1,a,0,3,1,1,1,"Cars, and less of them"
"""


def test_polis_takes_the_later_vote_and_no_passes(tmp_path):
    write(tmp_path / "votes.csv", VOTES)
    without = read_export("polis", tmp_path / "votes.csv")
    assert without.labels == [("8", "0", "agree", False), ("9", "1", "agree", True)]
    assert not without.texts
    assert reasons(without) == {
        "since it is a pass": 1,
        "since the same user labelled the same item again later": 1,
    }
    write(tmp_path / "comments.csv", COMMENTS)
    assert read_export("polis", tmp_path).texts == {"0": "Cars, and less of them"}
    with pytest.raises(ValueError):
        read_export("polis", tmp_path / "comments.csv")


def test_preferences(tmp_path):
    chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    path = write(
        tmp_path / "pairs.jsonl",
        lines(
            {"prompt": "hi", "chosen": "hello", "rejected": "no", "user_id": "ann"},
            {"prompt": "hi", "chosen": chat, "rejected": "go"},
            {"prompt": "hi", "chosen": "same", "rejected": "same"},
            {"prompt": "hi", "chosen": "alone"},
        ),
    )
    export = read_export("preferences", path)
    assert export.comparisons == [
        ("ann", "answer 1", "answer 2"),
        ("all users", "answer 1", "answer 3"),
    ]
    assert export.texts["answer 3"] == "go"
    assert reasons(export) == {
        "since an item was compared with itself": 1,
        "since it lacks a chosen or a rejected answer": 1,
    }


def test_crowdkit_labels_and_comparisons(tmp_path):
    path = write(tmp_path / "labels.csv", "task,worker,label\n1,a,0\n1,b,1\n2,b,\n")
    export = read_export("crowd-kit", path)
    assert export.labels == [("a", "1", "label", 0), ("b", "1", "label", 1)]
    assert reasons(export) == {"since a value is missing": 1}
    path = write(tmp_path / "pairs.csv", "worker,left,right,label\na,x,y,y\na,x,y,z\n")
    export = read_export("crowd-kit", path)
    assert export.comparisons == [("a", "y", "x")]
    assert reasons(export) == {"since its label is neither of the two items": 1}
    with pytest.raises(ValueError):
        read_export("crowd-kit", write(tmp_path / "no.csv", "a,b\n1,2\n"))


def test_labels_become_annotations(tmp_path):
    tasks = [
        {"id": n, "data": {}, "annotations": [annotation(p, chose("yes" if n > p else "no"))]}
        for n in range(4)
        for p in range(3)
    ]
    said = label_studio(tmp_path, *tasks).annotations(positive="yes")
    assert len(said) == 12
    assert said.labels.sum() == 6
    assert said.attribute_ids is None


def test_one_of_several_attributes(tmp_path):
    export = label_studio(
        tmp_path,
        {"id": 1, "data": {}, "annotations": [annotation(5, chose("a"), chose("b", control="c"))]},
    )
    assert export.to_table().column_names == ["user", "item", "label", "attribute"]
    assert export.to_table("c").to_pylist() == [{"user": 5, "item": 1, "label": "b"}]
    with pytest.raises(ValueError):
        export.to_table("d")


@pytest.mark.parametrize("kind", ["label-studio", "argilla", "lewidi"])
def test_a_document_that_was_cut_short_is_refused_with_the_place(tmp_path, kind):
    text = json.dumps([{"id": 1}]) if kind != "lewidi" else json.dumps({"1": {}})
    with pytest.raises(ValueError):
        read_export(kind, write(tmp_path / "cut.json", text[:-2]))


def test_what_is_no_text_is_refused(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError):
        read_export("prodigy", path)


def test_an_unknown_tool_is_named(tmp_path):
    with pytest.raises(ValueError):
        read_export("doccano", tmp_path)
    assert len(CONNECTORS) == 10


WHOLE = {
    "label-studio": [
        {
            "id": 1,
            "data": {"text": "Oh.", "other": "Ah."},
            "annotations": [
                annotation(1, chose("glad", "sad")),
                annotation(
                    {"id": 2},
                    {"from_name": "stars", "type": "rating", "value": {"rating": 4}},
                    {"from_name": "best", "type": "pairwise", "value": {"selected": "left"}},
                ),
            ],
        }
    ],
    "argilla": [
        {
            "id": "a",
            "fields": {"text": "Oh."},
            "responses": {"mood": [{"user_id": "u", "value": "glad", "status": "submitted"}]},
        },
        {
            "id": "b",
            "fields": {"text": "Ah."},
            "responses": [{"user_id": "u", "values": {"mood": {"value": ["sad"]}}}],
        },
    ],
    "prodigy": [
        {"text": "Oh.", "answer": "accept", "_annotator_id": "u", "_input_hash": 1},
        {"text": "Ah.", "answer": "accept", "_session_id": "u", "accept": ["glad"]},
    ],
    "lewidi": {
        "1": {"text": "Oh.", "annotators": "Ann1,Ann2", "annotations": "0,1"},
        "2": {"text": "Ah.", "annotations": {"Ann1": 1}},
    },
    "preferences": [
        {
            "prompt": "Say.",
            "chosen": [{"role": "a", "content": "Oh."}],
            "rejected": "Ah.",
            "user": 1,
        }
    ],
}
BROKEN = (None, 3, "x", [], {}, [1], {"a": 1}, [[]], [{}])


def everywhere(node):
    """Yield copies of a document, each with one node replaced by something broken."""
    yield from BROKEN
    if not isinstance(node, dict | list):
        return
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        for other in everywhere(value):
            copy = dict(node) if isinstance(node, dict) else list(node)
            copy[key] = other
            yield copy


@pytest.mark.parametrize("tool", sorted(WHOLE))
def test_whatever_is_broken_is_counted_or_refused_in_a_sentence(tool, tmp_path):
    path = tmp_path / "export.json"
    tried = 0
    for broken in everywhere(WHOLE[tool]):
        write(path, json.dumps(broken))
        tried += 1
        with contextlib.suppress(ValueError):  # a sentence; anything else is a failure
            export = read_export(tool, path)
            assert str(export)
            assert not export.labels or export.to_table().num_rows == len(export.labels)
    assert tried > 50


def test_questions_that_share_no_answer_are_learned_one_at_a_time(tmp_path):
    stars = {"from_name": "stars", "type": "rating", "value": {"rating": 4}}
    said = annotation(5, chose("glad"), chose("news", control="topic"), stars)
    export = label_studio(tmp_path, {"id": 1, "data": {}, "annotations": [said]})
    with pytest.raises(ValueError):
        export.annotations()
    assert export.to_table("mood")["label"].to_pylist() == ["glad"]


def test_argilla_flat_records_say_who_discarded_what(tmp_path):
    flat = {
        "id": "r1",
        "status": "pending",
        "text": "hello",
        "mood.responses": ["rude", "kind", "kind"],
        "mood.responses.users": ["u1", "u2", "u3"],
        "mood.responses.status": ["submitted", "discarded", None],
        "mood.suggestion": "rude",
    }
    unasked = {"id": "r2", "text": "bye", "mood.responses": None}
    export = read_export("argilla", write(tmp_path / "r.json", json.dumps([flat, unasked])))
    assert export.labels == [("u1", "r1", "mood", "rude"), ("u3", "r1", "mood", "kind")]
    assert export.texts == {"r1": "hello", "r2": "bye"}
    assert reasons(export) == {"since the response is discarded": 1}
    shares = {"r1": 0.75}
    told = json.loads(
        return_to("argilla", tmp_path / "r.json", [ExportQuestion(None, "rude", "kind", shares)])
    )
    assert told[0]["fields"] == {"text": "hello"}
    assert told[0]["suggestions"]["mood"]["value"] == "rude"


def test_label_studio_has_median_response_times(tmp_path):
    tasks = [
        {"id": n, "annotations": [annotation(1, chose("glad"), lead_time=seconds)]}
        for n, seconds in enumerate([2.0, 9.0, 4, 0, None, "soon"])
    ]
    assert label_studio(tmp_path, *tasks).seconds == {1: 4.0}
