"""What errors say, in one table: the place to change when a sentence changes.

Other tests check the type of an error, and at most one keyword. A row is a call and a regular
expression that its message must contain, after the type if it is not a ValueError. Calls run in an
empty folder. Tests of a new error go to the folder of the code; its sentence, if users rely on it,
comes here.
"""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from crowds import make_choices
from likeminds import (
    Annotations,
    AttributeModel,
    HierarchicalRanker,
    LatentClassRanker,
    RankerCV,
    ThreeLevelRanker,
    ThreeLevelRankerCV,
    compare,
    diagnose,
    find_schools,
    leaderboard,
    load,
    load_electricity,
    make_schools,
    make_simulation,
    make_sketch_shoes,
    plots,
    read_card,
    read_export,
    save,
    split_within_users,
    wide_to_long,
    write_report,
)
from likeminds.baselines import (
    CMTL,
    JFL,
    ConsensusOnly,
    Factorisation,
    PooledLogistic,
    Popularity,
    PopularityWithFeatures,
    RidgeToConsensus,
)
from likeminds.features import GIST, Reduce, TextFeatures, read_image
from likeminds.laplacian import laplacian_form, laplacian_product
from likeminds.metrics import (
    absolute_distance_by_user,
    agreement,
    auc_by_user,
    error_rate_by_user,
    manhattan_distance,
    ndcg_at_k,
    soft_labels,
    wasserstein_distance,
)
from likeminds.theory import generalization_bound

TABLE = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]])
FEATURES = {"a": [0.0, 1.0], "b": [1.0, 0.5], "c": [2.0, -1.0]}
WORDS = ["bad", "fair", "good"]


def said(**changes):
    """Five labels by three people about three of four items."""
    arguments = {
        "users": ["zoe", "ann", "zoe", "bob", "ann"],
        "items": ["c", "a", "a", "b", "c"],
        "labels": [1, 0, 0, 1, 1],
        "features": TABLE,
        "item_ids": ["a", "b", "c", "d"],
    }
    return Annotations(**arguments | changes)


ANNOTATIONS = [
    ({"features_per": "both"}, '"auto", "item" or "row"'),
    ({"features_per": "row"}, "per item: leave out"),
    ({"features_per": "row", "item_ids": None}, "4 rows, but there are 5 annotations"),
    ({"items": None}, "pass items="),
    ({"items": None, "item_ids": None}, "4 rows, but there are 5 annotations"),
    ({"items": None, "item_ids": None, "features_per": "item"}, "pass items="),
    ({"items": None, "item_ids": None, "features": None}, "neither features nor items"),
    ({"item_ids": ["a", "b", "a", "b"]}, "item_ids must be distinct.* a, b"),
    ({"item_ids": ["a", "b"]}, "item_ids has 2, features has 4"),
    ({"items": ["c", "a", "q", "z", "c"]}, r"no features for item\(s\) q, z"),
    ({"item_ids": None}, "not row numbers: 'a', 'b', 'c'.*item_ids="),
    ({"items": [0, 1, 9, -1, 2], "item_ids": None}, "0 to 3, but there are also -1, 9"),
    ({"features": {"a": [1.0]}}, "leave item_ids out"),
    ({"features": {"a": [1.0], "b": [1.0, 2.0]}, "item_ids": None}, "features must be numbers"),
    ({"features": TABLE[:, 0]}, "must be two-dimensional"),
    ({"features": np.where(TABLE == 5, np.nan, TABLE)}, r"NaN or infinity in row\(s\) 2"),
    ({"features": [["x", "y"]] * 4}, "features must be numbers"),
    ({"feature_names": ["only one"]}, "2 features, but 1 feature names"),
    ({"feature_names": ["twice", "twice"]}, "repeated: twice"),
    ({"users": ["a"]}, "Lengths differ: users has 1, labels has 5"),
    ({"users": "zoeyx"}, "TypeError: users must be a list or an array"),
    ({"choice_sets": [1, 2]}, "Lengths differ.*choice_sets has 2"),
    ({"attributes": [1, 2]}, "Lengths differ.*attributes has 2"),
    ({"weights": [1, 2]}, "weights must have length 5, but has length 2"),
    ({"weights": [1, 1, -1, 1, 1]}, r"must not be negative.* 2"),
    ({"weights": [1, 1, np.inf, 1, 1]}, r"weights contains NaN or infinity in row\(s\) 2"),
    ({"users": ["a", None, "b", None, "a"]}, r"users must not be missing.*row\(s\) 1, 3"),
    ({"labels": [0, 1, np.nan, 0, 1]}, r"labels must not be missing.*row\(s\) 2"),
    ({"labels": [1, 2, 1, 1, 2]}, r"2 values \(1, 2\).*positive=.*threshold="),
    ({"labels": ["a", "b", "c", "a", "a"], "positive": "a"}, "but positive= needs two"),
    ({"nominal": True, "positive": 1}, "Pass nominal= .* or positive=, threshold= or grades="),
    ({"labels": list("abcab"), "nominal": ["a", "b"]}, "has 'c', but the classes are 'a', 'b'"),
    ({"nominal": ["a", "b", "a"]}, "nominal must list two or more .*classes, but 'a' occurs twice"),
    ({"nominal": "ab"}, "TypeError: nominal must be a list of classes, or True, not 'ab'"),
    ({"nominal": True, "labels": [1] * 5}, "2 to 100 classes, but labels has 1: 1. Merge rare"),
    ({"nominal": True, "attributes": list("ababa")}, "leave out choice_sets= and attributes="),
    ({"positive": "yes"}, "positive='yes' does not occur"),
    ({"positive": 1, "threshold": 0}, "not both"),
    ({"threshold": "mean"}, "a number or \"median\", not 'mean'"),
    ({"users": ["zoe"] * 5, "duplicates": "error"}, "Keep one"),
]

LONG = pd.DataFrame(
    {
        "id": np.arange(12) // 6,
        "chid": np.arange(12) // 3,
        "alt": [1, 2, 3] * 4,
        "chosen": [1, 0, 0] * 4,
        "price": np.arange(12) % 5 / 2,
    }
)
VOTES = pd.DataFrame({"voter": [*"aabb"], "comment-id": [*"xyxy"], "rude": [1, 0, 0, 1]})


def written(name, text):
    Path(name).write_text(text)
    return name


FRAMES = [
    (lambda: Annotations.from_frame(LONG, base=5), "base"),
    (lambda: Annotations.from_frame(LONG.assign(av=[0] + [1] * 11)), "not available"),
    (lambda: Annotations.from_frame(LONG.assign(av=range(12))), "Availability"),
    (lambda: Annotations.from_frame(LONG.drop(columns="chid")), "choice set"),
    *(
        (lambda frame=frame: Annotations.from_frame(frame), "to name the column of the label")
        for more in ({}, {"timestamp": 1_000_000})
        for frame in (
            VOTES.assign(size=1.0, **more),
            VOTES.assign(**more).drop(columns="comment-id"),
        )
    ),
    *(
        (
            lambda name=name: Annotations.from_frame(
                pd.DataFrame({"userId": [*"aabb"], "rating": [1, 0, 0, 1], name: range(4)})
            ),
            "No numeric column is left as a feature",
        )
        for name in ("timestamp", "created_at", "Unnamed: 0")
    ),
    (
        lambda: Annotations.from_frame(
            pd.DataFrame({"usr": [*"aabb"], "item": [*"xyxy"], "label": [1, 0, 0, 1]})
        ),
        "to name the column of the user.* Is it usr",
    ),
    (
        lambda: Annotations.from_csv(
            written("l.csv", "user,item,label\nann,cat,1\n"), worker="user"
        ),
        "TypeError: .*worker",
    ),
    *(
        (lambda text=text: read_export("sawtooth", written("s.csv", text)), sentence)
        for text, sentence in (
            ("id,task,a\n1,1,2\n", "s.csv needs one column for the response .called response"),
            ("id,task,a,response\n1,1,2,40\n", "row 1: the response '40' is not 1 .best.*export"),
            ("id,best,worst\n1,2,3\n", "Item 1, Item 2.*Join the design"),
            ("id,item1,item2,best,worst\n1,2,1,1,2\n", "numbers of items or positions.*Replace"),
        )
    ),
    (
        lambda: read_export("qualtrics", written("q.csv", "ResponseId\nid\nR_1\n")),
        "third row has no import ids.*Export the responses",
    ),
]


def pairs(winners, losers, **options):
    users = ["ann"] * len(winners)
    return Annotations.from_comparisons(users, list(winners), list(losers), **options)


USE = [
    (lambda: said(users=[], items=[], labels=[]), "There are no annotations"),
    (lambda: said().take([True, False]), "mask has 2 entries, but there are 5"),
    (lambda: said().take([0, 5, -6]), "IndexError: .*5, -6 do not exist: there are 5 rows"),
    (lambda: said().take([0.0, 1.0]), "TypeError: .*mask of true/false"),
    (lambda: said().take([[0, 1]]), "TypeError: .*2 dimension"),
    (lambda: said().take(slice(5, 9)), "None of the 5 rows"),
    (lambda: said().of_user("eve"), "KeyError: .*No label is by 'eve'"),
    (lambda: said().of_users(["ann", "eve", 3]), "KeyError: .*No label is by 'eve', 3"),
    (lambda: said().of_attribute("soft"), "have no attributes"),
    (
        lambda: said(attributes=list("ababa")).of_attribute("c"),
        "KeyError: .*about 'c'; the attributes are a, b",
    ),
    (lambda: said().with_enough_labels(), "No user gave 8 labels of each kind; the most is 1"),
    (
        lambda: said().concat(said(features=TABLE + 1)),
        r"Item\(s\) a, b, c, d have different features",
    ),
    (lambda: said().concat(said(feature_names=["p", "q"])), "x0, x1 and p, q"),
    (lambda: said().concat(said(choice_sets=[1] * 5)), "Only one of the two has choice_sets"),
    (lambda: said().concat(said(attributes=[1] * 5)), "Only one of the two has attributes"),
    (lambda: split_within_users(said(), 1.5), "between 0 and 1"),
    (lambda: said().choices(), "not grades, so they cannot become choices"),
]

COMPARISONS = [
    (lambda: pairs("ab", "cb"), r"Comparison\(s\) 1, counted from 0, have the same item \(b\)"),
    (lambda: pairs("", ""), "There are no comparisons"),
    (lambda: pairs("ax", "bc", features=FEATURES), r"no features for item\(s\) x"),
    (lambda: pairs(["a", None], "bc"), r"winners .*1"),
    (lambda: pairs(["a", "b"], ["b", float("nan")]), r"losers .*1"),
    (lambda: pairs("ab", "bc", strength=[1, np.nan]), "strength"),
    (lambda: pairs("ab", "bc", strength=[1, -1]), "strength must not be negative"),
    (lambda: pairs("ab", "bc", ties=[0, 2]), "ties must be true or false"),
    (lambda: pairs("abc", "bc"), "losers has 2"),
    (lambda: pairs("ab", "bc", features=(np.eye(2), np.eye(3))), "one row for each pair"),
    (lambda: Annotations.from_rankings(["ann"], ["ab"]), "TypeError: .*not the text 'ab'"),
    (lambda: Annotations.from_choices(["ann"], ["ab"], ["a"]), "TypeError: .*not the text 'ab'"),
    (
        lambda: Annotations.from_comparisons(["ann"], "a", ["b"]),
        "TypeError: .*winners must be a list",
    ),
    (lambda: Annotations.from_rankings(["ann"], [["a"]]), "puts no item above another"),
    (lambda: Annotations.from_rankings(["ann"], [["a", "b", "a"]]), "an item twice: a"),
    (lambda: Annotations.from_rankings([], []), "There are no choices"),
    (
        lambda: Annotations.from_rankings(["ann"], [["a", "b"]], shown=[["a", "c"]]),
        "not shown: b. The items shown are a, c",
    ),
    (lambda: Annotations.from_choices(["ann"], [["a", "b"]], ["c"]), "not shown: c"),
    (lambda: Annotations.from_choices(["ann"], [["a", "b"]], [None]), "Pass none="),
    (lambda: Annotations.from_choices(["ann"], [["a"]], ["a"]), "among one item only"),
    (
        lambda: Annotations.from_choices(["ann"], [[*"abc"]], ["c"], availability=[[1, 1, 0]]),
        "not shown",
    ),
    (
        lambda: Annotations.from_choices(["ann"], [[*"abc"]], ["a"], availability=[[1, 1]]),
        "availability",
    ),
    (
        lambda: Annotations.from_choices(["ann"], [["a", "b"]], ["a"], worker="user"),
        "TypeError: .*worker",
    ),
    (
        lambda: Annotations.from_best_worst(["ann"], [["a", "b"]], ["a"], ["a"]),
        "the same item, a, as best and worst",
    ),
    (
        lambda: Annotations.from_best_worst(["ann"], [["a", "b"]], ["a"], ["c"]),
        "without its best item, .* not shown: c. The items shown are b",
    ),
]


def graded(labels, **options):
    n = len(labels)
    return Annotations((["ann", "bob"] * n)[:n], None, labels, np.arange(n)[:, None], **options)


GRADES = [
    (lambda: graded(["a", "b", "c"]), "'a', 'b', 'c' are words without an order. Pass grades="),
    (lambda: graded(["Agree", "Disagree", "Pass"]), "neither yes nor no, such as passes."),
    (
        lambda: graded(["bad", "best"], grades=WORDS),
        "has 'best', but the grades .* are 'bad', 'fair'",
    ),
    (
        lambda: graded([1, 6], grades=[1, 2, 3]),
        "has 6.0, but the grades from worst to best are 1, 2, 3",
    ),
    (lambda: graded([4, 4]), "the value 4, not one of .* grades=True"),
    (lambda: graded([1.0, 1.0000001, 1.0000002]), "one grade only.*Multiply them"),
    (lambda: graded([1.0, np.nan, 3.0]), r"missing.*row\(s\) 1"),
    (lambda: graded([1.0, np.inf, 3.0, 2.0]), r"infinity in row\(s\) 1"),
    (lambda: graded([1, 2, 3], grades=True, threshold=2), "Pass grades= "),
    (lambda: graded([True, False], grades=True), "true and false, which are not grades"),
    (lambda: graded([1, 2, 3], grades=[1, 2, 2.0]), "2.0 occurs twice"),
    (lambda: graded([1, 2, 3], grades=[1]), "two or more different grades, but there are 1"),
    (
        lambda: HierarchicalRanker().fit(graded([4, 4, 4], grades=True)),
        "All grades are the same, so a ranking cannot be learned",
    ),
    (
        lambda: HierarchicalRanker(loss="cumulative").fit(graded([0, 1, 1])),
        'loss="cumulative" needs grades, but these labels',
    ),
]

WIDE = pd.DataFrame({"id": [7, 8], "A_TT": [3, 4], "B_TT": [2, 0], "CHOICE": [2, 1]})


def to_long(**changes):
    options = {"alternatives": {1: "A", 2: "B"}, "choice": "CHOICE", "user": "id"}
    return wide_to_long(WIDE, **{"columns": "{alternative}_{feature}"} | options | changes)


WIDE_TABLES = [
    ({"alternatives": {1: "A", 3: "B"}}, "'CHOICE' has 2, which is not one of"),
    ({"alternatives": ["A"]}, "two or more"),
    ({"columns": "{alternative}"}, "must contain {alternative} and {feature}"),
    ({"columns": "{feature}:{alternative}"}, "No column fits"),
    ({"columns": None, "alternatives": {1: "X", 2: "Y"}}, "No column fits"),
    ({"availability": "{alternative}_THERE"}, "KeyError: .*no such column"),
    ({"choice": "chosen"}, "KeyError: .*no such column"),
    ({"user": "who"}, "KeyError: .*no such column"),
]

SHOES = {"n_pictures": 24, "users_per_attribute": 2, "pictures_each": 20}

DATASETS = [
    (lambda: make_simulation(n_users=0), "n_users must be at least 1, but is 0"),
    (lambda: make_simulation(n_positive=5, n_samples=5), "n_samples must be at least 6, but is 5"),
    (lambda: make_schools(n_items=10), "n_items must be at least 50, but is 10"),
    (lambda: make_schools(n_labels=1), "n_labels must be at least 2"),
    (lambda: make_schools(n_loners=201), "n_users must be at least 201"),
    (lambda: make_schools(label_noise=1.5), "label_noise must be between 0 and 1, but is 1.5"),
    (lambda: make_schools(n_features=4), "3 schools cannot all differ on 1 contested"),
    (
        lambda: make_sketch_shoes(**SHOES, attributes=["shiny"]),
        r"attributes must be some of brown, .* but are \['shiny'\]",
    ),
    (lambda: make_sketch_shoes(**SHOES, attributes=[]), "attributes must be some of"),
    (lambda: make_sketch_shoes(19), "n_pictures must be at least 50, but is 19"),
    (lambda: make_sketch_shoes(**SHOES | {"pictures_each": 1}), "must be at least 2, but is 1"),
    (
        lambda: make_sketch_shoes(**SHOES | {"users_per_attribute": 0}),
        "users_per_attribute must be at least 1, but is 0",
    ),
    (lambda: make_sketch_shoes(**SHOES, n_components=0), "n_components must be at least 1"),
    (lambda: make_sketch_shoes(**SHOES, loners=1.2), "loners must be between 0 and 1, but is 1.2"),
    (lambda: make_sketch_shoes(**SHOES, label_noise=-0.1), "label_noise must be between 0 and 1"),
]

PICTURES = [np.zeros((8, 8, 3), dtype=np.uint8)]
PIXELS = np.arange(144, dtype=np.uint8).reshape(6, 8, 3)

FEATURE_MAKERS = [
    (lambda: GIST(size=0).fit(PICTURES), "'size' parameter of GIST must be an int in the range"),
    (lambda: GIST(size=16.5).fit(PICTURES), "must be an int in the range .* Got 16.5"),
    (lambda: GIST(orientations=()).fit(PICTURES), "a positive integer per scale"),
    (lambda: GIST(orientations=(8, 0)).fit(PICTURES), "a positive integer per scale"),
    (lambda: GIST(size=3).fit(PICTURES), "blocks must be at most size=3, but is 4"),
    (lambda: GIST(batch_size=0).fit(PICTURES), "'batch_size' parameter of GIST must be"),
    (lambda: GIST().fit("a.png"), r"TypeError: Pass a list of pictures, not one path \(a.png\)"),
    (lambda: GIST().fit([]), "list of pictures is empty"),
    (lambda: GIST().fit(["nowhere.png"]), "FileNotFoundError: There is no picture nowhere.png"),
    (lambda: GIST().fit(PIXELS[:, :, 0]), r"not \(6, 8\)"),
    (lambda: GIST().fit([PIXELS, PIXELS[:, :, :2]]), r"Picture 1 .* shape \(6, 8, 2\)"),
    (lambda: GIST().fit([PIXELS.astype(int)]), "int64 from 0 to 143"),
    (lambda: GIST().fit([PIXELS / 100]), r"float64 from 0\.0 to 1\.43"),
    (lambda: GIST().fit([np.full((2, 2), np.nan)]), "from nan to nan"),
    (lambda: read_image("nowhere.png"), "FileNotFoundError: There is no picture"),
    (lambda: TextFeatures().fit("one text"), "TypeError: Pass a list of texts"),
    (lambda: TextFeatures().fit([]), "list of texts is empty"),
    (
        lambda: TextFeatures().fit(["a", None, 3]),
        r"TypeError: .*position\(s\) 1, 2 are not \(the first is None\)",
    ),
    (lambda: TextFeatures().fit(["", "!"]), "No words are left in the 2 texts"),
    (lambda: Reduce(1.5).fit(TABLE), "share must lie above 0 and up to 1"),
    (lambda: Reduce(0.9).fit(np.ones((4, 2))), "All 4 rows of features are equal"),
]

METRICS = [
    (
        lambda: auc_by_user([0, 1, 2], [1, 2, 3], [1, 1, 1]),
        r"two values, but has 0, 2 and 1 \(in row\(s\) 1\)",
    ),
    (lambda: auc_by_user([3, 3], [1, 2], [1, 1]), "labels are all 3"),
    (
        lambda: auc_by_user([0, np.nan], [1, 2], [1, 1]),
        r"labels contains NaN or infinity in row\(s\) 1",
    ),
    (
        lambda: auc_by_user([0, 1], [1, np.inf], [1, 1]),
        r"scores contains NaN or infinity in row\(s\) 1",
    ),
    (
        lambda: auc_by_user([0, 1], [1, 2], [1, 1, 1]),
        "labels has 2, scores has 2, users has 3",
    ),
    (lambda: auc_by_user([[0, 1]], [1, 2], [1, 1]), "labels must be one-dimensional"),
    (lambda: auc_by_user([], [], []), "no rows"),
    (lambda: ndcg_at_k([0, 1], [1, 2], [1, 1], k=0), "k must be at least 1, but is 0"),
    (lambda: soft_labels([1, 9], ["a", "b"], levels=[1, 2]), "grades has 9.0, not in levels"),
    (lambda: manhattan_distance([[0.5, 0.5]], [[1.0]]), "must have one shape"),
    (lambda: manhattan_distance([[0.5, 0.6]], [[1.0, 0.0]]), r"Row\(s\) 0 of first must be shares"),
    (
        lambda: wasserstein_distance([[1.0]], [[1.0]], [1, 2]),
        "levels must have length 1, but has length 2",
    ),
    (lambda: agreement(Annotations(["a", "b"], ["x", "y"], [1, 0])), "two users"),
    (lambda: agreement(Annotations(["a", "b"], None, [1, 0], [[1.0], [2.0]])), "items"),
    (lambda: agreement(said(), ["ratio"]), "ratio"),
    (lambda: absolute_distance_by_user([3, 3], [1, 2], ["ann", "bob"]), "levels="),
    (lambda: error_rate_by_user([1, 2], [1], ["ann", "bob"]), "predicted"),
]

THEORY = [
    *(
        (lambda delta=delta: generalization_bound(three_levels(), crowd(), delta), "delta")
        for delta in (0.0, 1.0, -0.5)
    ),
    (lambda: laplacian_product(np.ones((2, 1)), [True, True]), "both classes"),
    (lambda: laplacian_product(np.ones((2, 1)), [False, False]), "both classes"),
    (lambda: laplacian_product(np.ones((3, 1)), [True, False]), "Lengths"),
    (
        lambda: laplacian_form(np.ones((3, 1)), np.ones((2, 1)), [True, False, True]),
        "Lengths",
    ),
]

Y, WHO = [0, 1, 0, 1], [0, 0, 1, 1]
NOT_FINITE = np.where(TABLE == 5, np.nan, TABLE)


def fit(X=TABLE, y=Y, params=None, **more):
    return ThreeLevelRanker(**(params or {})).fit(X, y, **more)


FITS = [
    ({"X": NOT_FINITE, "users": WHO}, r"NaN or infinity in row\(s\) 2"),
    ({"y": [0.0, np.inf, 0.0, 1.0]}, r"row\(s\) 1"),
    ({"sample_weight": [1, 1, 1, np.nan]}, r"sample_weight .* row\(s\) 3"),
    ({"users": [0, 0, 1]}, "users"),
    ({"y": Y[:3], "users": WHO}, "labels|y"),
    ({"sample_weight": [1.0]}, "sample_weight"),
    ({"sample_weight": [1, 1, 1, -1]}, "sample_weight must not be negative.*3"),
    ({"sample_weight": [0, 0, 0, 0]}, "all zero"),
    ({"X": np.empty((0, 2)), "y": []}, "0 feature|empty|0 sample"),
    ({"X": [["a", "b"]] * 4}, "could not convert|numbers"),
    ({"y": None}, "y"),
    ({"y": [0, 1, 2, 1]}, "two classes.*0, 1, 2"),
    ({"y": [1, 1, 1, 1]}, "one class"),
    ({"users": [0, None, 1, 1]}, "missing"),
    ({"users": WHO, "params": {"n_groups": 3}}, "2 directions"),
    ({"params": {"alpha_group": 0.1, "group_shrinkage": 0.2}}, "group_shrinkage"),
    ({"users": WHO, "params": {"user_column": 0}}, "not both"),
    ({"params": {"user_column": "who"}}, "user_column='who'"),
    ({"params": {"user_column": 5}}, "outside X's 2 columns"),
    ({"X": TABLE[:, :1], "params": {"user_column": 0}}, "no feature"),
    (
        {"X": pd.DataFrame({"who": WHO, "of": list("rbrr")}), "params": {"user_column": "who"}},
        "numeric except for the user_column",
    ),
    *(
        ({"params": {name: value}}, f"'{name}' parameter of ThreeLevelRanker")
        for name, value in [
            ("alpha_consensus", -1.0),
            ("alpha_group", -0.1),
            ("alpha_group", np.nan),
            ("alpha_personal", -1),
            ("group_shrinkage", -1.0),
            ("n_groups", 1.5),
            ("tol", -1.0),
            ("max_iter", 0),
            ("solver", "fastest"),
            ("unknown", "guess"),
            ("standardize", "yes"),
        ]
    ),
    ({"X": said()}, "Leave out y"),
    ({"X": said(attributes=list("ababa")), "y": None}, "A ranker learns one attribute, but"),
]


@cache
def choices():
    return make_choices([-1.0, 0.8, 0.4], np.diag([0.3, 0.6, 0.2]), n_users=10, n_sets=4)[0]


def learn(**parameters):
    return HierarchicalRanker(**parameters).fit(choices())


LOGS = {"signs": {"price": -1}, "distributions": {"price": "lognormal"}}

SPECIFICATIONS = [
    ({"distributions": {"price": "ln"}}, "must be one of normal, censored, lognormal"),
    ({"distributions": {"weight": "lognormal"}}, "distributions names 'weight'"),
    ({"distributions": {"price": "lognormal"}}, r"signs=\{'price': 1\} or -1"),
    ({"distributions": {"price": "censored"}}, "has one sign"),
    ({"distributions": {"price": "normal"}, "signs": {"price": -1}}, "either sign"),
    ({**LOGS, "draws": 0}, "draws cannot be 0"),
    ({**LOGS, "loss": "auc"}, "needs choices or yes-no labels"),
    ({**LOGS, "item_effects": True}, "Leave out item_effects=True"),
    ({"fixed": ["prize"]}, "Did you mean price"),
    ({"fixed": ["weight"]}, "fixed names 'weight', but the features are price, size, speed"),
    ({"signs": {"price": 2}}, "must be 1 or -1"),
    ({"signs": {"price": -1}, "fixed": ["price"]}, "both in fixed and in signs"),
    ({"fixed": ["price", "size", "speed"]}, "Leave out at least one"),
    ({"fixed": ["price"], "draws": 0}, "draws cannot be 0"),
    ({"fixed": ["price"], "loss": "auc"}, "needs choices or yes-no labels"),
    ({"n_groups": 9}, "n_groups is 9, but the items differ in only 3 direction"),
    ({"loss": "hinge"}, "'loss' parameter"),
    ({"consensus": np.ones(4)}, "there are 3 features"),
    ({"consensus": np.full(3, np.nan)}, "NaN"),
    ({"consensus": 3.0}, "consensus"),
]


@cache
def learned():
    """Two features, item effects, people p0 to p7 and items i0 to i9."""
    rng = np.random.default_rng(0)
    users, items = np.divmod(np.arange(80), 10)
    return HierarchicalRanker(n_groups=1, n_item_factors=0).fit(
        Annotations(
            [f"p{one}" for one in users],
            [f"i{one}" for one in items],
            rng.random(80) < 0.5,
            rng.standard_normal((10, 2)),
            item_ids=[f"i{one}" for one in range(10)],
        )
    )


def crowd():
    return learned().annotations_


@cache
def three_levels():
    return ThreeLevelRanker(n_groups=1, tol=1e-2).fit(crowd())


@cache
def aspects():
    """Two attributes, a and b, of the items of `learned`."""
    return AttributeModel(ThreeLevelRanker(n_groups=1, tol=1e-2)).fit({"a": crowd(), "b": crowd()})


@cache
def voted():
    """Items i0 to i9 without features."""
    said = Annotations(crowd().users, crowd().items, crowd().labels)
    return HierarchicalRanker(n_item_factors=0).fit(said)


@cache
def stars():
    """Grades from 1 to 3."""
    grades = crowd().labels + np.arange(80) % 2 + 1
    said = Annotations(crowd().users, crowd().items, grades)
    return HierarchicalRanker(0, "cumulative", n_item_factors=0).fit(said)


def star(users):
    return Annotations(users, ["i1"] * len(users), [1] * len(users), reading=stars().label_reading_)


@cache
def several():
    """A belief about two people, a and b."""
    return learned().newcomer(TABLE, Y, users=["a", "a", "b", "b"])


@cache
def priced():
    return HierarchicalRanker(n_groups=0).fit(choices())


@cache
def one_class():
    return LatentClassRanker(1).fit(choices())


def without_differences():
    return choices()._with(features=np.zeros_like(choices().features))


RANKERS = [
    (lambda: LatentClassRanker(11).fit(choices()), "only 10 users"),
    (lambda: one_class().predict_proba(choices().X, choices().users), "choice_sets"),
    (lambda: one_class().wtp("cost"), "price names 'cost', but the features are"),
    (lambda: LatentClassRanker(1).fit(without_differences()), "No feature differs"),
    (lambda: leaderboard(voted(), level=90), "level"),
    (lambda: leaderboard(voted(), "p99"), "p99"),
    (lambda: leaderboard(three_levels()), "item effects"),
    (
        lambda: leaderboard(RidgeToConsensus().fit(crowd())),
        "TypeError: .*HierarchicalRanker",
    ),
    (lambda: learned().rank("p11"), "KeyError: .*no user 'p11'.*8 users"),
    (lambda: learned().rank("p1", k=0), "k must be at least 1"),
    (lambda: learned().rank("p1", [[1.0, 2.0]]), "TypeError: items must be a mapping from items"),
    (lambda: learned().rank(unseen=True), "needs a user"),
    (lambda: learned().explain("p1", "I 1"), "KeyError: .*no item 'I 1'.*Did you mean i1"),
    (lambda: learned().explain("P1", "i1"), "KeyError: .*no user 'P1'.*Did you mean p1"),
    (lambda: learned().newcomer(user_features={"zoe": {"age": 3}}), "fitted without covariates"),
    (lambda: several().standard_error(TABLE), "There are 2 users: pass users="),
    (lambda: several().standard_error(TABLE[:1], ["c"]), "Nothing is known about c"),
    (lambda: several().standard_error(TABLE, ["a"]), "users has 1 entries, but X has 4 rows"),
    (
        lambda: several().standard_error(TABLE[:, :1], ["a"] * 4),
        "X has 1 features, but the model has 2",
    ),
    (lambda: several().probability_above(TABLE[:1], TABLE[:2], ["a"]), "a has shape"),
    (lambda: several().rank_interval(TABLE, user="a", level=1.0), "level must lie between 0 and 1"),
    (lambda: learned().next_items("p1", TABLE, n=5), "n must be between 1 and the number of items"),
    (lambda: learned().rank_interval("p1", 3), "2D"),
    (lambda: learned().new_items(crowd()), "already known"),
    *(
        (
            lambda ask=ask: getattr(voted(), ask)(
                np.empty((2, 0)), ["p1"] * 2, items=["i1", "i99"]
            ),
            "i99",
        )
        for ask in ("decision_function", "standard_error", "predict_proba")
    ),
    (lambda: voted().rank("p1", {"i1": [], "i99": []}), "i99"),
    (lambda: stars().newcomer({"i1": 1}, users=["zoe", "ann"]), "one user"),
    (lambda: stars().newcomer(star(["zoe", "ann"])).rank(), "user"),
    (lambda: stars().predict(star(["p1"])), "TypeError: .*predict_grades"),
    (lambda: priced().predict(choices()), "TypeError: .*choices"),
    (lambda: priced().wtp("cost"), "price names 'cost', but the features are"),
    (lambda: priced().shares([[1.0, 2.0]]), "items have 2 features, but the model has 3"),
    (lambda: priced().shares(np.eye(3), available=[False] * 3), "without items"),
    (lambda: priced().shares(np.eye(3), available=[True]), "available has shape"),
    (lambda: priced().shares(np.eye(3), by=["a", "b"]), "by has 2 entries"),
    (lambda: AttributeModel().fit(np.eye(3)), "TypeError: Pass a mapping from attribute to Anno"),
    (lambda: AttributeModel().fit({"open": [1]}), "TypeError: open must be Annotations, but is a"),
    (lambda: AttributeModel().fit(said()), "have no attributes"),
    (lambda: aspects().decision_function(TABLE, ["a99"] * 4), "a99"),
    (
        lambda: aspects().newcomer({"a": said()}).decision_function(TABLE[:1], ["stranger"]),
        "stranger",
    ),
    (lambda: HierarchicalRanker().fit(VOTES), "from_frame"),
    (lambda: HierarchicalRanker().fit(np.ones((3, 4))), "items="),
    (lambda: HierarchicalRanker().fit([["a"], ["b"]], [0, 1], ["ann", "bob"]), "items="),
    (lambda: HierarchicalRanker(wide=True, signs={0: 1}).fit(said()), "single features"),
    (lambda: ThreeLevelRanker().coef_, "NotFittedError: .*coef_"),
    (lambda: ThreeLevelRanker().sorted, "AttributeError: .*sorted"),
    (
        lambda: AttributeModel().fit({"odd": said(labels=[1] * 5)}),
        "odd: All labels are of one class",
    ),
    (
        lambda: HierarchicalRanker().fit(
            Annotations(["a", "a", "b", "b"], ["p", "q", "r", "s"], [1, 0, 1, 0])
        ),
        "several users label",
    ),
    (
        lambda: HierarchicalRanker().fit(said(features=np.ones((4, 2)))),
        "No feature differs between the items",
    ),
    (
        lambda: HierarchicalRanker(covariance="none", item_effects=False).fit(said()),
        'covariance="none" regresses item effects on features. .* Leave covariance at "auto"',
    ),
    (lambda: Popularity().fit(said()).decision_function(TABLE), "identifies items by their ids"),
    (lambda: Factorisation().fit(TABLE, Y), "identifies items by their ids.*Pass Annotations"),
    (lambda: CMTL(rho1=0.0).fit(TABLE, Y), "rho1"),
    (
        lambda: RankerCV("ConsensusOnly").fit(said()),
        "'ranker' parameter of RankerCV must be an ins",
    ),
    (lambda: RankerCV(ConsensusOnly(), n_folds=1).fit(said()), "'n_folds' parameter of RankerCV"),
    (
        lambda: RankerCV(ConsensusOnly(), {"alpha": [-1.0]}).fit(said()),
        "'alpha' parameter of ConsensusOnly",
    ),
    (lambda: RankerCV(ConsensusOnly(), {"beta": [1.0]}).fit(said()), "Invalid parameter 'beta'"),
    (lambda: RankerCV(HierarchicalRanker()).fit(said()), "no default grid. Pass param_grid"),
    (lambda: ThreeLevelRankerCV(n_folds=1).fit(said()), "parameter of ThreeLevelRankerCV"),
    (
        lambda: RankerCV(PooledLogistic(), n_folds=2).update(said()),
        "TypeError: .*PooledLogistic cannot take more labels",
    ),
]


def reloaded(model):
    return load(save(model, "m"))


MODELS = [
    (
        lambda: reloaded(three_levels()).update(crowd()),
        "training data.*loaded from a file.*with_data=True",
    ),
    (
        lambda: reloaded(learned()).update(crowd()),
        "no training data.*loaded from a file.*with_data=True",
    ),
    (lambda: reloaded(aspects()).update({"a": crowd()}), "with_data"),
    (lambda: reloaded(PopularityWithFeatures().fit(crowd())).update(crowd()), "with_data"),
    *(
        (
            lambda read=read, text=text: read(written("l.csv", text)),
            "ModelFileError: .*not a model file",
        )
        for read in (load, read_card)
        for text in ("user,item,label\nann,tea,1\n", "PAR1" + 20 * "x")
    ),
    (
        lambda: save(ConsensusOnly().fit(said()), save(learned(), "m"), if_unchanged=True),
        "needs a model that was loaded from a file",
    ),
    (lambda: save(HierarchicalRanker(), "m", users_per_file=5), "not fitted"),
    (lambda: save(ThreeLevelRanker(), "m"), "not fitted. Call fit before save"),
    (
        lambda: save(learned(), "nowhere/m"),
        "FileNotFoundError: .*no folder nowhere to write the model in",
    ),
    (
        lambda: save(learned(), "."),
        "IsADirectoryError: .*is a folder; name a file in it to write the model to",
    ),
    (lambda: save(learned(), "m", users_per_file=0), "users_per_file must be at least 1"),
    (
        lambda: save(learned(), "m", scores={"auc": set()}),
        "TypeError: scores may be numbers, texts",
    ),
    (lambda: load("nowhere"), "FileNotFoundError: There is no model at nowhere"),
    (lambda: load(__file__), "ModelFileError: .*is not a model file. Load one that save wrote"),
    (lambda: write_report("m", "page.html"), "TypeError: Expected a model of this library, .* str"),
    (
        lambda: write_report(learned(), "nowhere/p.html"),
        "FileNotFoundError: .*no folder nowhere to write the report in",
    ),
    (lambda: write_report({}, "page.html"), "no attributes"),
    (
        lambda: write_report(aspects(), "page.html", crowd()),
        "2 attributes, but the annotations have none",
    ),
    (
        lambda: write_report(aspects().rankers_["a"], "page.html", said(attributes=list("ababa"))),
        "about one attribute, but the annotations are about 2",
    ),
    (
        lambda: find_schools(JFL().fit(said())),
        "TypeError: .*JFL has none; it has shared. Use ThreeLevelRanker, Hierarchical",
    ),
    (
        lambda: find_schools(learned(), load_electricity()),
        "The items have 6 features, but the ranker was fitted to",
    ),
    (lambda: find_schools(learned(), n_schools=9), "1 to the number of users, 8, but is 9"),
    (lambda: find_schools(learned(), n_schools=0), "1 to the number of users, 8, but is 0"),
    (lambda: find_schools(learned(), n_schools="many"), "number of users, 8, but is .?many"),
    (
        lambda: find_schools(learned(), n_schools=2)[3],
        "KeyError: .*no school 3; choose a number from 1 to 2",
    ),
    (lambda: find_schools(learned()).of_user("x"), "KeyError: .*'x' is not among the 8 users"),
    (
        lambda: diagnose(learned(), crowd(), level=2.0),
        "level must lie between 0 and 1, but is 2.0",
    ),
    (lambda: diagnose(learned(), crowd(), level=0), "level must lie between 0 and 1"),
    (lambda: diagnose(learned(), crowd(), n_folds=2).of("lazy"), "lazy"),
    (
        lambda: compare(crowd(), ["Popularty"]),
        "no ranker called 'Popularty'.*mean Popularity?",
    ),
    (lambda: compare(said(), ["RMTL"], n_folds=1), "n_folds must be at least 2"),
    (
        lambda: compare(crowd(), ["ConsensusOnyl"]),
        "no ranker called 'ConsensusOnyl'; choose from hierarchical",
    ),
    (
        lambda: compare(crowd(), ["ConsensusOnly", ConsensusOnly()]),
        "Two rankers are called ConsensusOnly",
    ),
    (lambda: compare(crowd(), []), "rankers is empty"),
    (lambda: compare(crowd(), ["RMTL"], repeats=0), "repeats must be at least 1, but is 0"),
    (lambda: compare(crowd(), ["RMTL"], test_size=1.5), "test_size must lie between 0 and 1"),
    (lambda: compare(crowd(), "ConsensusOnly"), "TypeError: .*a mapping or a list"),
    (lambda: compare(crowd(), [ConsensusOnly]), "TypeError: .*Pass an instance of this class"),
    (lambda: compare(crowd(), {"a": 3}), "TypeError: .*it has no fit, decision_function"),
    (
        lambda: compare(said(attributes=list("ababa"))),
        "about one attribute, but there are 2",
    ),
]


@cache
def tuned():
    return ThreeLevelRankerCV({"alpha_group": [0.3, 1.0]}, n_folds=2).fit(crowd())


PLOTS = [
    (
        lambda: plots.cv_surface(tuned(), "tol"),
        "'tol' was not searched; there are alpha_group",
    ),
    (lambda: plots.cv_surface(ThreeLevelRanker()), "no search results"),
    (lambda: plots.reliability(np.array([0, 1]), np.array([0.5, 1.5])), "between 0 and 1"),
    (
        lambda: plots.learning_curves([5, 10], {"a": [0.6]}, title=""),
        "a has 1 values for 2 sizes",
    ),
    (
        lambda: plots.item_shares(replace(find_schools(learned()), soft_labels=None)),
        "Pass it the annotations",
    ),
]


def with_changes(call, rows):
    return [((lambda changes=changes: call(**changes)), sentence) for changes, sentence in rows]


SECTIONS = {
    "Annotations": with_changes(said, ANNOTATIONS),
    "frames": FRAMES,
    "use": USE,
    "comparisons": COMPARISONS,
    "grades": GRADES,
    "wide": with_changes(to_long, WIDE_TABLES),
    "datasets": DATASETS,
    "features": FEATURE_MAKERS,
    "metrics": METRICS,
    "theory": THEORY,
    "fit": with_changes(fit, FITS),
    "specification": with_changes(learn, SPECIFICATIONS),
    "rankers": RANKERS,
    "models": MODELS,
    "plots": PLOTS,
}


@pytest.mark.filterwarnings("ignore:.*one class only:UserWarning")
@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        pytest.param(*row, id=f"{section}-{number}")
        for section, rows in SECTIONS.items()
        for number, row in enumerate(rows)
    ],
)
def test_error_says(call, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, TypeError, LookupError, OSError, AttributeError)) as caught:
        call()
    kind, message = re.fullmatch(r"(?:(\w+Error): )?(.*)", sentence, re.DOTALL).groups()
    assert (kind or "ValueError") in {base.__name__ for base in caught.type.__mro__}
    assert re.search(message, str(caught.value), re.DOTALL)
