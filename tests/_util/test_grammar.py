"""Counts, lists and verbs: what is said reads like English, for one and for many."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likeminds import Annotations
from likeminds._util.grammar import LIKE, Verb, counted, guess_verb, join_words, read_verb

VERBS = (
    *("like", "buy", "choose", "watch", "miss", "fix", "try", "enjoy", "do", "have", "go", "see"),
    *("agree", "find", "consider", "judge", "pass", "wash", "buzz", "carry", "play", "discuss"),
    *("prize", "use", "focus", "approve", "would", "can", "be"),
)
ADJECTIVES = ("offensive", "rude", "as rude as the others", "fit for children")
objects = st.text("abcxyz ", min_size=1, max_size=12).map(str.strip).filter(bool)


@given(st.sampled_from([v for v in VERBS if v not in {"would", "can", "focus"}]))
def test_one_and_many_are_the_same_verb(infinitive: str) -> None:
    verb = Verb.of(infinitive)
    assert Verb.of(verb.one()) == Verb.of(verb.many()) == Verb.of(f"to {infinitive}") == verb


@given(st.text("abcdefghijklmnoprstuvwyz", min_size=2, max_size=9), objects)
def test_what_one_does_differs_from_what_many_do_by_its_ending(word: str, what: str) -> None:
    verb = Verb(f"{word} it")
    one, many = verb.one(what), verb.many(what)
    assert many == f"{word} {what}" or word in {"be", "have", "do"}
    assert one.endswith(f"s {what}")
    assert one.startswith(word[:-1]) or word in {"be", "have"}


@given(st.sampled_from(VERBS), st.sampled_from(["", *ADJECTIVES]), objects)
def test_every_sentence_has_its_object_once_and_no_double_blank(
    infinitive: str, complement: str, what: str
) -> None:
    verb = Verb.of(f"{infinitive} it {complement}")
    what = f"<{what}>"
    told = [verb.one, verb.many, verb.one_not, verb.many_not, verb.would, verb.more, verb.less]
    for say in (*told, verb.more_than_others):
        sentence = say(what)
        assert sentence.count(what) == 1
        assert "  " not in sentence.replace(what, "x")
        assert complement in sentence
    assert "it" not in verb.most().split()


@given(st.sampled_from(["find", "consider", "judge", "would find"]), st.sampled_from(ADJECTIVES))
def test_what_something_is_taken_for_follows_it(infinitive: str, adjective: str) -> None:
    said, put = Verb.of(f"{infinitive} {adjective}"), Verb.of(f"{infinitive} it {adjective}")
    assert said == put
    assert said.many("tea") == f"{infinitive} tea {adjective}"
    assert said.most(many=True) == f"{infinitive} most {adjective}"


@pytest.mark.parametrize(
    ("said", "one", "many", "neither", "most"),
    [
        ("likes", "likes tea", "like tea", "dislikes tea", "likes best"),
        ("agree with", "agrees with tea", "agree with tea", "disagrees with tea", None),
        ("would buy", "would buy tea", "would buy tea", "would not buy tea", None),
        ("is fond of", "is fond of tea", "are fond of tea", "is not fond of tea", None),
        ("try", "tries tea", "try tea", "does not try tea", "tries most readily"),
        ("rate it high", "rates tea high", "rate tea high", "does not rate tea high", None),
    ],
)
def test_examples(said: str, one: str, many: str, neither: str, most: str | None) -> None:
    verb = Verb.of(said)
    assert (verb.one("tea"), verb.many("tea"), verb.one_not("tea")) == (one, many, neither)
    assert most is None or verb.most() == most


def test_nothing_said_is_to_like() -> None:
    assert Verb.of(None) == LIKE
    for bad in ("", "  ", "to"):
        with pytest.raises(ValueError, match="says what people do with items"):
            Verb.of(bad)
    with pytest.raises(TypeError):
        read_verb(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "verb"),
    [
        ("offensiveness", "find offensive"),
        ("Toxicity", "find toxic"),
        ("is_sarcastic", "find sarcastic"),
        ("comfortable", "find comfortable"),
        ("agree", "agree with"),
        ("vote", "agree with"),
        ("purchased", "would buy"),
        ("label", None),
        ("rating", None),
        ("sentiment", None),
        ("table", None),
        (True, None),
    ],
)
def test_verbs_are_guessed_from_names_that_say_something(name: object, verb: str | None) -> None:
    assert guess_verb(name) == verb


def test_counts_and_lists() -> None:
    assert counted(1, "feature") == "1 feature"
    assert counted(0, "feature") == "0 features"
    assert join_words(["a"]) == "a"
    assert join_words(["a", "b"]) == "a and b"


def test_annotations_guess_and_keep_their_verb() -> None:
    rows = {"users": ["a", "b"], "items": ["x", "x"]}
    assert Annotations(**rows, labels=[1, 0]).verb is None
    assert Annotations(**rows, labels=["rude", "fine"], positive="rude").verb == "find rude"
    said = Annotations(**rows, labels=[1, 0], verb="finds funny")
    assert said[:1].verb == said.concat(said).verb == "finds funny"
    several = Annotations(**rows, labels=[1, 0], attributes=["comfortable", "Q7"])
    assert several.of_attribute("comfortable").verb == "find comfortable"
    assert several.of_attribute("Q7").verb is None
    asked = several.with_verb("call {}")
    assert asked.of_attribute("Q7").verb == "call Q7"
    with pytest.raises(ValueError):
        several.with_verb(" ")


def test_the_column_of_labels_may_say_the_verb() -> None:
    pa = pytest.importorskip("pyarrow")
    frame = pa.table({"user": ["a", "b"], "item": ["x", "x"], "offensive": [1, 0]})
    assert Annotations.from_frame(frame, label="offensive").verb == "find offensive"
    assert Annotations.from_frame(frame, label="offensive", verb="mock").verb == "mock"
