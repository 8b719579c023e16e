"""Counts, lists and verbs: explanations read like English, for one user and for several."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likeminds import Annotations
from likeminds._util.text_format import LIKE, RATE, Verb, counted, join_words, read_verb

VERBS = ("like", "buy", "choose", "watch", "miss", "fix", "try", "find", "agree with", "would buy")
objects = st.text("abcxyz ", min_size=1, max_size=12).map(str.strip).filter(bool)


@given(st.sampled_from(VERBS), st.sampled_from(["", "rude", "fit for children"]), objects)
def test_every_sentence_has_its_object_once_and_no_double_blank(
    infinitive: str, complement: str, what: str
) -> None:
    verb = Verb.of(f"{infinitive} it {complement}")
    what = f"<{what}>"
    for say in (verb.one, verb.many, verb.one_not, verb.would, verb.question, verb.more, verb.less):
        sentence = say(what)
        assert sentence.count(what) == 1
        assert "  " not in sentence.replace(what, "x")
        assert complement in sentence
    assert "it" not in verb.most().split()


@pytest.mark.parametrize("infinitive", ["find", "consider", "would find"])
def test_a_complement_follows_the_object(infinitive: str) -> None:
    said, put = Verb.of(f"{infinitive} rude"), Verb.of(f"{infinitive} it rude")
    assert said == put == Verb.of(said.many())
    assert said.many("tea") == f"{infinitive} tea rude"
    assert said.most(many=True) == f"{infinitive} most rude"


@pytest.mark.parametrize(
    ("said", "one", "many", "neither", "most"),
    [
        ("like", "likes tea", "like tea", "dislikes tea", "likes best"),
        ("would like", "would like tea", "would like tea", "would not like tea", "would like best"),
        ("agree with", "agrees with tea", "agree with tea", "disagrees with tea", None),
        ("would buy", "would buy tea", "would buy tea", "would not buy tea", "would buy most"),
        ("try", "tries tea", "try tea", "does not try tea", "tries most"),
        ("watch", "watches tea", "watch tea", "does not watch tea", "watches most"),
        ("rate it high", "rates tea high", "rate tea high", "rates tea low", "rates highest"),
    ],
)
def test_examples(said: str, one: str, many: str, neither: str, most: str | None) -> None:
    verb = Verb.of(said)
    assert (verb.one("tea"), verb.many("tea"), verb.one_not("tea")) == (one, many, neither)
    assert most is None or verb.most() == most


def test_the_default_is_neutral_and_other_forms_than_infinitives_are_errors() -> None:
    rate = Verb.of(None)
    assert (rate, rate.wishes, rate.question()) == (RATE, False, "How do you rate this?")
    assert (rate.more("tea", even=True), rate.less("tea")) == (
        "rates tea even higher",
        "rates tea lower",
    )
    assert rate.conditional.most() == "would rate highest"
    assert LIKE.wishes
    assert Verb.of("would buy").wishes
    assert not Verb.of("find rude").wishes
    assert read_verb("discuss") == "discuss"
    for bad in ("", "  ", "likes", 3):
        with pytest.raises(ValueError, match="infinitive"):
            read_verb(bad)  # type: ignore[arg-type]


def test_counts_and_lists() -> None:
    assert counted(1, "feature") == "1 feature"
    assert counted(0, "feature") == "0 features"
    assert join_words(["a"]) == "a"
    assert join_words(["a", "b"]) == "a and b"


def test_annotations_have_a_verb() -> None:
    rows = {"users": ["a", "b"], "items": ["x", "x"]}
    assert Annotations(**rows, labels=["rude", "fine"], positive="rude").verb is None
    assert Annotations(**rows, labels=["agree", "disagree"]).verb == "agree with"
    said = Annotations(**rows, labels=[1, 0], verb="find funny")
    assert said[:1].verb == said.concat(said).verb == "find funny"
    several = Annotations(**rows, labels=[1, 0], attributes=["comfortable", "agree"])
    assert several.of_attribute("comfortable").verb == "find comfortable"
    assert several.of_attribute("agree").verb == "agree with"
    assert several.with_verb("call {}").of_attribute("agree").verb == "call agree"
    with pytest.raises(ValueError):
        several.with_verb(" ")


@pytest.mark.parametrize(
    ("column", "verb"), [("vote", "agree with"), ("choice", "choose"), ("offensive", None)]
)
def test_the_column_of_labels_of_votes_and_choices_has_a_verb(
    column: str, verb: str | None
) -> None:
    pa = pytest.importorskip("pyarrow")
    frame = pa.table({"user": ["a", "b"], "item": ["x", "x"], column: [1, 0]})
    assert Annotations.from_frame(frame, label=column).verb == verb
    assert Annotations.from_frame(frame, label=column, verb="mock").verb == "mock"
