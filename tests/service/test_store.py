"""The store keeps the same promises on SQLite and on PostgreSQL."""

import threading

import pytest

from likeminds.service.database import StoreDownError
from likeminds.service.store import (
    STEPS,
    KeyReusedError,
    add_key,
    hashed,
    open_store,
    write_labels,
)
from postgres import NoServerError, server


@pytest.fixture(scope="module")
def postgres():
    try:
        with server() as address:
            yield address
    except NoServerError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def address(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'a b.db'}"
    found = request.getfixturevalue("postgres")
    import psycopg

    with psycopg.connect(found, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return found


@pytest.fixture
def store(address):
    store = open_store(address)
    yield store
    store.close()


def test_labels_come_back_and_the_last_word_counts(store):
    store.put_labels("zoe", [("", "boot", True), ("open", "boot", False), ("", "clog", True)])
    store.put_labels("zoe", [("", "boot", False), ("", "clog", None)])
    store.put_labels("ann", [("", "boot", True)])
    found = {(one.attribute, one.item): one.label for one in store.labels_of("zoe")}
    assert found == {("", "boot"): False, ("open", "boot"): False, ("", "clog"): None}
    assert len(store.all_labels()) == 4


def test_a_person_is_added_once_and_forgotten_whole(store):
    assert store.add_user("zoe", "x")
    assert not store.add_user("zoe", "y")
    assert store.user("zoe").token_hash == "x"
    store.put_labels("zoe", [("", "boot", True)])
    before = store.version()
    assert store.forget("zoe", hashed("zoe")) == 1
    assert store.user("zoe") is None
    assert store.labels_of("zoe") == []
    assert store.forgotten() == {hashed("zoe")}
    assert store.version() != before


def test_a_write_is_done_once(store):
    done = []

    def write(session):
        write_labels(session, "zoe", [("", "boot", True)])
        done.append(1)
        return {"answer": "first"}

    assert store.once("ann", "key", "a", write) == ({"answer": "first"}, False)
    assert store.once("ann", "key", "a", write) == ({"answer": "first"}, True)
    assert store.once("bob", "key", "a", write)[1] is False
    assert len(done) == 2
    with pytest.raises(KeyReusedError):
        store.once("ann", "key", "b", write)


def test_a_write_that_fails_leaves_no_trace(store):
    def write(session):
        write_labels(session, "zoe", [("", "boot", True)])
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.once("ann", "key", "a", write)
    assert store.all_labels() == []
    assert store.once("ann", "key", "a", lambda _: {"answer": "now"}) == ({"answer": "now"}, False)


def test_threads_with_one_key_write_once(store):
    done, answers = [], []

    def write(_):
        done.append(1)
        return {"done": len(done)}

    def ask():
        answers.append(store.once("ann", "key", "a", write)[0]["done"])

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [1] * 6


def test_keys_are_kept_as_hashes(store, address):
    secret = add_key(address, "gateway", "read")
    [key] = store.api_keys()
    assert (key.name, key.role, key.key_hash) == ("gateway", "read", hashed(secret))
    assert secret not in str(store.api_keys())
    assert store.drop_key(key.key_id)
    assert not store.drop_key(key.key_id)


def test_an_earlier_database_is_brought_up_to_date(address, monkeypatch):
    monkeypatch.setattr("likeminds.service.store.STEPS", STEPS[:1])
    first = open_store(address)
    first.database.write("INSERT INTO labels VALUES ('zoe', '', 'boot', 1, 0)")
    first.close()
    monkeypatch.undo()
    second = open_store(address)
    second.set_state("refreshed", "x")
    assert second.state("refreshed") == "x"
    second.put_labels("zoe", [("", "clog", 4.5)])
    assert [one.label for one in second.labels_of("zoe")] == [1.0, 4.5]
    assert second.migrate() == 0
    second.close()
    monkeypatch.setattr("likeminds.service.store.STEPS", STEPS[:1])
    with pytest.raises(ValueError, match="newer"):
        open_store(address)


def test_a_database_that_is_away_says_so_without_its_password(tmp_path):
    with pytest.raises(StoreDownError) as told:
        open_store("postgresql://ann:secret@127.0.0.1:1/shop")
    assert "secret" not in str(told.value)
    with pytest.raises(StoreDownError):
        open_store(f"sqlite:///{tmp_path / 'no' / 'such' / 'folder.db'}")


@pytest.mark.parametrize("address", ["duckdb:///x", "sqlite:x", "here.db", "mysql://ann:pw@host/x"])
def test_other_databases_are_refused(address):
    with pytest.raises(ValueError, match="sqlite:///FILE") as told:
        open_store(address)
    assert "pw" not in str(told.value)
