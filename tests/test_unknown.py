"""Unknown users and items are an error wherever they are named, unless the consensus is asked for.

The model has no features, so nothing describes an item that it was not fitted to.
"""

from copy import copy

import numpy as np
import pytest
from sklearn.base import clone

from commands import run
from likeminds import Annotations, AttributeModel, HierarchicalRanker, RankerCV, save
from likeminds.baselines import Factorisation, Popularity, PopularityWithFeatures

PEOPLE, ITEMS = [f"u{n}" for n in range(12)], [f"i{n}" for n in range(6)]
STRANGER, NEW = "stranger", "novel"


def stars(users, items):
    return Annotations(users, items, [1 + n % 5 for n in range(len(users))])


def crowd():
    return stars(np.repeat(PEOPLE, len(ITEMS)), ITEMS * len(PEOPLE))


@pytest.fixture(scope="module")
def ranker():
    return HierarchicalRanker(loss="cumulative", n_item_factors=1, n_groups=0).fit(crowd())


@pytest.fixture(scope="module")
def folder(ranker, tmp_path_factory):
    """A model file, and tables with known and unknown users and items."""
    folder = tmp_path_factory.mktemp("unknown")
    save(ranker, folder / "m.likeminds", with_data=True)
    (folder / "items.csv").write_text(f"item\n{ITEMS[0]}\n{NEW}\n")
    (folder / "new.csv").write_text(f"item,label\n{ITEMS[0]},5\n{NEW},1\n")
    for name, who, what in (("who", STRANGER, ITEMS[1]), ("what", PEOPLE[0], NEW)):
        lines = f"person,item,label\n{PEOPLE[0]},{ITEMS[0]},5\n{who},{what},1\n"
        (folder / f"{name}.csv").write_text(lines)
    return folder


def rows_of(user, item):
    """Return five ratings of one user, of four known items and of another one."""
    return stars([user] * 5, [*ITEMS[2:], item])


def asked(method):
    return lambda model, user, item: getattr(model, method)(rows_of(user, item))


def for_one(method):
    return lambda model, user, item: getattr(model, method)(user, rows_of(PEOPLE[0], item))


def pairs(method):
    def ask(model, user, item):
        return getattr(model, method)(rows_of(user, item), rows_of(user, ITEMS[1]))

    return ask


def with_items(method, *more):
    """Call a method of a user, with a mapping of items."""

    def ask(model, user, item):
        return getattr(model, method)(user, *more, items={ITEMS[0]: [], item: []})

    return ask


BASIC = {
    "decision_function": asked("decision_function"),
    "arrays": lambda model, user, item: model.decision_function(
        np.empty((2, 0)), [user] * 2, [ITEMS[0], item]
    ),
    "score": asked("score"),
    "rank": with_items("rank"),
}
ASKED = BASIC | {
    "standard_error": asked("standard_error"),
    "predict_proba": asked("predict_proba"),
    "predict_grades": asked("predict_grades"),
    "probability_above": pairs("probability_above"),
    "probability_preferred": pairs("probability_preferred"),
    "rank_interval": for_one("rank_interval"),
    "next_items": for_one("next_items"),
    "explain": with_items("explain", ITEMS[0]),
    "similar_users": with_items("similar_users", 3),
}
# Methods of posteriors: of new users, and of one known user.
OF_BELIEFS = {
    "decision_function": asked("decision_function"),
    "standard_error": asked("standard_error"),
    "predict_grades": asked("predict_grades"),
    "probability_above": pairs("probability_above"),
    "rank_interval": lambda new, _, item: new.rank_interval(rows_of(PEOPLE[0], item)),
    "next_items": lambda new, _, item: new.next_items(rows_of(PEOPLE[0], item)),
}
BASELINES = [
    Popularity(),
    Factorisation(1),
    Factorisation(1, item_features=False),
    PopularityWithFeatures(),
    RankerCV(Popularity(), n_folds=2),
]


def lenient(ranker):
    return copy(ranker).set_params(unknown="consensus")


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_methods(ranker, ask):
    ask(ranker, PEOPLE[0], ITEMS[1])
    for who, what in ((STRANGER, ITEMS[1]), (PEOPLE[0], NEW)):
        with pytest.raises((ValueError, KeyError), match=f"{STRANGER}|{NEW}"):
            ask(ranker, who, what)
    ask(lenient(ranker), PEOPLE[0], NEW)


def test_rankings_of_all_users(ranker):
    shown = {ITEMS[0]: [], NEW: []}
    with pytest.raises(ValueError, match=NEW):
        next(ranker.rank_all(shown))
    assert len(next(lenient(ranker).rank_all(shown))) == 2


def test_items_without_labels_are_not_ranked_by_themselves():
    said = crowd()
    ranker = HierarchicalRanker(loss="cumulative", n_item_factors=0, n_groups=0)
    ranker.fit(said[said.items != ITEMS[5]])
    assert set(ranker.rank(PEOPLE[0]).items) == set(ITEMS[:5])


def test_names_that_are_not_in_the_model(ranker):
    for ask in (ranker.rank, ranker.similar_users, ranker.user_posterior):
        with pytest.raises(KeyError, match=STRANGER):
            ask(STRANGER)
    with pytest.raises(KeyError, match=STRANGER):
        ranker.explain(STRANGER, ITEMS[0])
    for ask in (ranker.similar_items, lambda item: ranker.newcomer({item: 5})):
        with pytest.raises(KeyError, match=NEW):
            ask(NEW)
    assert ranker.rank().user is ranker.explain(None, ITEMS[0]).user is None


@pytest.mark.parametrize("ask", OF_BELIEFS.values(), ids=OF_BELIEFS)
def test_posteriors_of_known_and_new_users(ranker, ask):
    for model in (ranker, lenient(ranker)):
        for posterior in (model.newcomer({ITEMS[2]: 5}), model.user_posterior(PEOPLE[0])):
            ask(posterior, PEOPLE[0], ITEMS[1])
            if model is ranker:
                with pytest.raises(ValueError, match=NEW):
                    ask(posterior, PEOPLE[0], NEW)
            else:
                ask(posterior, PEOPLE[0], NEW)


def test_new_users(ranker):
    new = ranker.newcomer(rows_of(STRANGER, ITEMS[1]))
    shown = {ITEMS[0]: [], NEW: []}
    with pytest.raises(ValueError, match="other"):
        new.rank("other")
    with pytest.raises(ValueError, match=NEW):
        new.rank(items=shown)
    with pytest.raises(ValueError, match=NEW):
        ranker.newcomer(rows_of(STRANGER, NEW))
    assert len(lenient(ranker).newcomer(rows_of(STRANGER, ITEMS[1])).rank(items=shown)) == 2


@pytest.mark.parametrize("ranker", BASELINES, ids=repr)
@pytest.mark.parametrize("ask", BASIC.values(), ids=BASIC)
def test_baselines(ranker, ask):
    fitted = clone(ranker).fit(crowd())
    ask(fitted, PEOPLE[0], ITEMS[1])
    for who, what in ((STRANGER, ITEMS[1]), (PEOPLE[0], NEW)):
        with pytest.raises((ValueError, KeyError), match=f"{STRANGER}|{NEW}"):
            ask(fitted, who, what)
    ask(lenient(fitted._best_model), PEOPLE[0], NEW)


def test_items_that_popularity_knows_by_their_features():
    X, users = np.arange(8.0)[:, None] % 4, np.repeat(["a", "b"], 4)
    ranker = Popularity().fit(X, [0, 1, 0, 1, 1, 1, 0, 0], users)
    with pytest.raises(ValueError, match="row"):
        ranker.decision_function([[9.0]], ["a"])
    assert lenient(ranker).decision_function([[9.0]], ["a"]) == ranker.overall_share_


def test_attributes():
    said, ranker = crowd(), HierarchicalRanker(loss="cumulative", n_item_factors=0, n_groups=0)
    model = AttributeModel(ranker).fit({"a": said, "b": said})
    assert model.decision_function(said).shape == (len(said), 2)
    for who, what in ((STRANGER, ITEMS[1]), (PEOPLE[0], NEW)):
        with pytest.raises(ValueError, match=f"{STRANGER}|{NEW}"):
            model.decision_function(rows_of(who, what))


COMMANDS = {
    f"rank --user {STRANGER}": STRANGER,
    "rank --features items.csv": NEW,
    "rank --features items.csv --each-user": NEW,
    "rank --features items.csv --each-user --out folder": NEW,
    f"explain --user {STRANGER}": STRANGER,
    f"explain --item {NEW}": NEW,
    f"explain --item {NEW} --features items.csv": NEW,
    f"explain --user {STRANGER} --item {ITEMS[0]}": STRANGER,
    f"explain --user {PEOPLE[0]} --item {NEW}": NEW,
    f"explain --user {PEOPLE[0]} --item {NEW} --features items.csv": NEW,
    f"similar --user {STRANGER}": STRANGER,
    f"similar --item {NEW}": NEW,
    f"similar --item {NEW} --features items.csv": NEW,
    "newcomer --annotations new.csv": NEW,
    "newcomer --features items.csv": NEW,
    "newcomer --annotations new.csv --features items.csv": NEW,
    "evaluate --annotations who.csv": STRANGER,
    "evaluate --annotations what.csv": NEW,
    "serve --features items.csv --port 0": NEW,
}


@pytest.mark.parametrize("line", COMMANDS)
def test_commands(folder, line):
    command, *options = line.split()
    done = run(folder, command, "m.likeminds", *options)
    assert done.code == 2
    assert COMMANDS[line] in done.err


@pytest.mark.parametrize("line", ["rank", "newcomer", "evaluate --annotations who.csv --shots 0"])
def test_commands_that_ask_for_the_consensus(folder, line):
    command, *options = line.split()
    assert run(folder, command, "m.likeminds", *options).code == 0


ROUTES = {
    "/v1/rank": [{"user": STRANGER}, {"only": [NEW]}, {"exclude": [NEW]}],
    "/v1/rank/batch": [{"requests": [{"user": STRANGER}]}, {"requests": [{"only": [NEW]}]}],
    "/v1/score": [{"user": STRANGER, "items": ITEMS[:1]}, {"items": [NEW]}],
    "/v1/score/batch": [{"requests": [{"items": [NEW]}]}],
    "/v1/explain": [{"user": STRANGER, "item": ITEMS[0]}, {"item": NEW}],
    "/v1/compare": [{"a": PEOPLE[0], "b": STRANGER}],
    f"/v1/users/{STRANGER}/labels": [{"labels": [{"item": ITEMS[0], "label": 5}]}],
    f"/v1/users/{PEOPLE[0]}/labels": [{"labels": [{"item": NEW, "label": 5}]}],
}
PAGES = ["labels", "next", "ranking", "profile", "view", "facts", "data"]


@pytest.fixture(scope="module")
def client(folder):
    pytest.importorskip("fastapi", reason="the service needs likeminds[serve]")
    from fastapi.testclient import TestClient

    from likeminds.service.app import make_app
    from likeminds.service.settings import Settings

    (folder / "state").mkdir()
    settings = Settings(
        model=str(folder / "m.likeminds"),
        state=str(folder / "state"),
        database=f"sqlite:///{folder / 'state' / 'service.db'}",
        refresh_every=0.0,
        rate=0.0,
    )
    app = make_app(settings, watching=False)
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


def test_routes(client):
    for route, bodies in ROUTES.items():
        for body in bodies:
            assert client.post(route, json=body).status_code == 404, (route, body)
    for page in PAGES:
        assert client.get(f"/v1/users/{STRANGER}/{page}").status_code == 404, page
    assert client.delete(f"/v1/users/{STRANGER}/data").status_code == 404
    for page in ("item", "picture"):
        assert client.get(f"/v1/{page}", params={"item": NEW}).status_code == 404
    everyone = client.post("/v1/rank", json={})
    assert everyone.status_code == 200
    assert everyone.json()["user"] is None
