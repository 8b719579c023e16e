"""Examples of `likeminds.schools.school_names`."""

import numpy as np

from likeminds._util.text_format import Verb
from likeminds.schools.school_names import (
    are_named,
    is_made,
    leading,
    name_by_items,
    name_deviation,
    name_feature,
    shorten,
    strengths,
    wish,
    wishes,
    without_columns,
)


def test_wish():
    assert (wish("contract_length", False, True), wish("local_company", True, False)) == (
        "high contract length",
        "no local company",
    )
    assert wish("heel", True, False, Verb.of("find comfortable")) == "what has no heel"
    assert wish("text: damn, hell", False, True) == 'texts with "damn, hell"'


def test_without_columns():
    assert without_columns(
        ["genres: Drama", "heel", "upper: felt", "sole: felt"], np.ones(4) > 0
    ) == ["Drama", "heel", "upper: felt", "sole: felt"]
    assert without_columns(["alt: 2", "alt: 3"], np.ones(2) > 0) == ["alt: 2", "alt: 3"]


def test_wishes():
    assert wishes(
        np.array([-2.0, 0.5, 0.0]), ["price", "green", "local"], np.array([False, True, True])
    ) == [("low price", -2.0), ("green", 0.5)]


def test_name_deviation():
    deviation, consensus = np.array([-1.0, 0.9, -0.5]), np.array([-2.0, 0.0, 0.8])
    assert (
        name_deviation(
            deviation,
            consensus,
            strengths(deviation[None], np.eye(3))[0],
            ["price", "green", "local"],
            np.array([False, True, True]),
        )
        == "insists on low price, wants green, cares less about local"
    )
    assert (
        name_deviation(
            deviation,
            consensus,
            strengths(deviation[None], np.eye(3))[0],
            ["swearing", "irony", "quote"],
            np.array([False, True, True]),
            Verb.of("find rude"),
        )
        == "finds low swearing even more rude, finds irony rude, finds quote less rude"
    )


def test_are_named():
    assert (are_named(["price", "local_company"]), are_named(["price", "component_3"])) == (
        True,
        False,
    )


def test_is_made():
    assert (is_made("component_3"), is_made("price")) == (True, False)


def test_name_feature():
    drinks, values = ["tea", "milk", "coffee"], np.array([0.9, 0.1, -0.7])
    assert name_feature("learned_1", values, drinks.__getitem__) == "tea rather than coffee"
    assert name_feature("contract_length", values, drinks.__getitem__) == "contract length"


def test_shorten():
    assert shorten("A statement that goes on and on", 20) == "A statement that ..."


def test_name_by_items():
    own, others = np.array([0.9, 0.6, 0.1, 0.5]), np.array([0.2, 0.5, 0.8, 0.5])
    drinks = ["tea", "milk", "coffee", "water"]
    assert (
        name_by_items(own, others, np.zeros(4), drinks.__getitem__) == "likes tea, dislikes coffee"
    )
    assert name_by_items(own / 2, others / 2, np.zeros(4), drinks.__getitem__) == "dislikes coffee"
    assert (
        name_by_items(own, others, np.zeros(4), drinks.__getitem__, liked_only=True) == "likes tea"
    )


def test_strengths():
    found = strengths(np.array([[3.0, -4.0]]), np.diag([1.0, 4.0]))
    assert found.round(3).tolist() == [[3.0, -8.0]]


def test_leading():
    assert leading(np.array([0.1, -3.0, 2.9, 0.0])).tolist() == [1, 2]
