"""Tables from files, arrays and databases, and back to files."""

import io
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import postgres
from likeminds import Annotations
from likeminds.data.sources import databases, read_table, write_table
from likeminds.data.sources.reading import spread

LABELS = {
    "person": ["ann", "ann", "bob", "bob"],
    "item": ["cat", "dog", "cat", "dog"],
    "label": [1, 0, 0, 1],
    "size": [0.5, 2.0, 0.5, 2.0],
}
QUERY = "SELECT person, item, label, size FROM labels ORDER BY person, item"


@pytest.fixture(scope="module")
def labels():
    return pa.table(LABELS)


@pytest.fixture(scope="module")
def address():
    pytest.importorskip("psycopg")
    try:
        with postgres.server() as url:
            yield url
    except postgres.NoServerError as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("ending", ["csv", "parquet", "pq", "arrow", "feather"])
def test_what_is_written_is_read(labels, ending, tmp_path):
    path = tmp_path / f"labels.{ending}"
    write_table(labels, path)
    assert read_table(path).to_pydict() == LABELS
    assert read_table(str(path)).to_pydict() == LABELS
    assert list(tmp_path.iterdir()) == [path]


def test_json_is_written_for_other_programs(tmp_path):
    path = tmp_path / "a.json"
    write_table(pa.table({"item": ["cat"], "auc": [float("nan")]}), path)
    assert json.loads(path.read_text()) == [{"item": "cat", "auc": None}]


def test_a_stream_of_arrow_batches_is_a_file_too(labels, tmp_path):
    path = tmp_path / "labels.arrow"
    with pa.ipc.new_stream(path, labels.schema) as writer:
        writer.write_table(labels)
    assert read_table(path).to_pydict() == LABELS


def test_numpy_files(tmp_path):
    np.save(tmp_path / "features.npy", np.arange(6.0).reshape(3, 2))
    table = read_table(tmp_path / "features.npy")
    assert table.to_pydict() == {"item": [0, 1, 2], "x0": [0.0, 2.0, 4.0], "x1": [1.0, 3.0, 5.0]}
    rows = np.array([("ann", 1), ("bob", 0)], dtype=[("user", "U3"), ("label", "i4")])
    np.save(tmp_path / "rows.npy", rows)
    assert read_table(tmp_path / "rows.npy").to_pydict() == {
        "user": ["ann", "bob"],
        "label": [1, 0],
    }
    np.savez(tmp_path / "all.npz", item=np.array(["cat", "dog"]), f=np.eye(2))
    assert read_table(tmp_path / "all.npz").to_pydict() == {
        "item": ["cat", "dog"],
        "f0": [1.0, 0.0],
        "f1": [0.0, 1.0],
    }


def test_numpy_files_that_are_no_tables_are_refused(tmp_path):
    np.save(tmp_path / "cube.npy", np.zeros((2, 2, 2)))
    with pytest.raises(
        ValueError, match=r"cube\.npy holds an array of float64 of shape \(2, 2, 2\)"
    ):
        read_table(tmp_path / "cube.npy")
    np.savez(tmp_path / "short.npz", item=np.arange(3), x=np.zeros((2, 2)))
    with pytest.raises(ValueError, match="one length, but item has 3, x has 2"):
        read_table(tmp_path / "short.npz")
    np.savez(tmp_path / "objects.npz", item=np.array(["a", None], dtype=object))
    with pytest.raises(ValueError, match="pickled objects, which are never read"):
        read_table(tmp_path / "objects.npz")
    (tmp_path / "bad.npy").write_text("nothing")
    with pytest.raises(ValueError, match="cannot be read as NumPy's"):
        read_table(tmp_path / "bad.npy")
    with pytest.raises(FileNotFoundError, match=r"There is no file .*none\.npz"):
        read_table(tmp_path / "none.npz")


def test_standard_input_and_output(labels, monkeypatch, capsys):
    write_table(labels, "-")
    written = capsys.readouterr().out
    assert written.splitlines()[:2] == ["person,item,label,size", "ann,cat,1,0.5"]

    class Stdin:
        buffer = io.BytesIO(written.encode())

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert read_table("-").to_pydict() == LABELS


def test_lists_of_numbers_are_spread_out():
    table = pa.table({"item": ["a", "b"], "x": [[1.0, 2.0], [3.0, 4.0]]})
    assert spread(table).to_pydict() == {"item": ["a", "b"], "x0": [1.0, 3.0], "x1": [2.0, 4.0]}
    with pytest.raises(ValueError, match="lists of different lengths"):
        spread(pa.table({"x": [[1.0], [1.0, 2.0]]}))


def test_unknown_files_are_refused_with_what_there_is(tmp_path):
    with pytest.raises(ValueError, match=r"labels\.txt is no table.*\.csv, \.parquet.*sqlite:///"):
        read_table("labels.txt")
    with pytest.raises(ValueError, match=r"end its name in \.csv"):
        write_table(pa.table({"a": [1]}), tmp_path / "table")
    with pytest.raises(FileNotFoundError, match="no folder"):
        write_table(pa.table({"a": [1]}), tmp_path / "none" / "a.csv")
    (tmp_path / "b.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_table(pa.table({"a": [1]}), tmp_path / "b.csv")


@pytest.fixture(scope="module")
def sqlite_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("sqlite") / "my crowd.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE labels (person, item, label, size)")
        rows = zip(*LABELS.values(), strict=True)
        connection.executemany("INSERT INTO labels VALUES (?, ?, ?, ?)", rows)
    return path


class TestSqlite:
    def test_a_query_is_a_table(self, sqlite_file):
        assert read_table(f"sqlite:///{sqlite_file} {QUERY}").to_pydict() == LABELS

    def test_annotations_come_from_a_query(self, sqlite_file):
        said = Annotations.from_frame(f"sqlite:///{sqlite_file} {QUERY}", features=["size"])
        assert len(said) == 4
        assert said.n_people == 2

    def test_it_is_opened_for_reading_only(self, sqlite_file):
        address = f"sqlite:///{sqlite_file} WITH a AS (SELECT 1) DELETE FROM labels"
        with pytest.raises(ValueError, match="could not answer the query: attempt to write"):
            read_table(address)

    def test_mistakes_are_sentences(self, sqlite_file, tmp_path):
        with pytest.raises(ValueError, match="no such table: lables"):
            read_table(f"sqlite:///{sqlite_file} SELECT * FROM lables")
        with pytest.raises(FileNotFoundError, match=r"There is no database .*none\.db"):
            read_table(f"sqlite:///{tmp_path / 'none.db'} SELECT 1")
        assert not (tmp_path / "none.db").exists()
        with pytest.raises(ValueError, match="say what to read from it"):
            read_table(f"sqlite:///{sqlite_file}")
        with pytest.raises(ValueError, match="two columns of one name: a, a"):
            read_table(f"sqlite:///{sqlite_file} SELECT 1 AS a, 2 AS a")
        with pytest.raises(ValueError, match="Column 'a' of the query holds values of different"):
            read_table(f"sqlite:///{sqlite_file} SELECT 1 AS a UNION SELECT 'b'")

    def test_no_rows_are_a_table_without_rows(self, sqlite_file):
        assert read_table(f"sqlite:///{sqlite_file} {QUERY} LIMIT 0").num_rows == 0


@pytest.fixture(scope="module")
def duckdb_file(tmp_path_factory):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path_factory.mktemp("duckdb") / "crowd.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE labels (person TEXT, item TEXT, label INT, size DECIMAL(4, 2))"
        )
        rows = [list(row) for row in zip(*LABELS.values(), strict=True)]
        connection.executemany("INSERT INTO labels VALUES (?, ?, ?, ?)", rows)
    return path


class TestDuckdb:
    def test_a_query_is_a_table(self, duckdb_file):
        assert read_table(f"duckdb:///{duckdb_file} {QUERY}").to_pydict() == LABELS

    def test_mistakes_are_sentences(self, duckdb_file):
        with pytest.raises(ValueError, match="could not answer the query: Catalog Error"):
            read_table(f"duckdb:///{duckdb_file} SELECT * FROM lables")

    def test_a_missing_package_is_asked_for(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "duckdb", None)
        with pytest.raises(ImportError, match=r"needs duckdb: install likeminds\[duckdb\]"):
            read_table("duckdb:///crowd.duckdb SELECT 1")


@pytest.fixture(scope="module")
def filled(address):
    import psycopg

    with psycopg.connect(address) as connection:
        connection.execute("CREATE TABLE labels (person text, item text, label int, size numeric)")
        connection.execute("CREATE TABLE items (item uuid, embedding float8[])")
        rows = list(zip(*LABELS.values(), strict=True))
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO labels VALUES (%s, %s, %s, %s)", rows)
        connection.execute(
            "INSERT INTO items VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{0.5, 2}')"
        )
    return address


class TestPostgres:
    def test_a_query_is_a_table(self, filled):
        assert read_table(f"{filled} {QUERY}").to_pydict() == LABELS
        short = filled.replace("postgresql:", "postgres:")
        assert read_table(f"{short} select 1 as one").to_pydict() == {"one": [1]}

    def test_arrays_and_ids_of_its_own_kinds(self, filled):
        table = read_table(f"{filled} SELECT item, embedding AS x FROM items")
        assert table.column_names == ["item", "x0", "x1"]
        assert table["item"].to_pylist() == ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]

    def test_it_is_only_read(self, filled):
        address = f"{filled} WITH gone AS (DELETE FROM labels RETURNING *) SELECT * FROM gone"
        with pytest.raises(ValueError, match="read-only transaction"):
            read_table(address)
        assert read_table(f"{filled} {QUERY}").num_rows == 4

    def test_mistakes_are_sentences_without_the_password(self, filled):
        password = filled.split(":")[2].partition("@")[0]
        with pytest.raises(ValueError, match=r'tester:\*\*\*@.*"lables" does not exist') as caught:
            read_table(f"{filled} SELECT * FROM lables")
        assert password not in str(caught.value)
        nowhere = filled.rpartition("/")[0] + "/nowhere"
        with pytest.raises(ValueError, match='database "nowhere" does not exist') as caught:
            read_table(f"{nowhere} SELECT 1")
        assert password not in str(caught.value)


def test_a_missing_postgres_driver_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ImportError, match=r"needs psycopg: install likeminds\[postgres\]"):
        read_table("postgresql://ann@localhost/shop SELECT 1")


@pytest.mark.parametrize(
    ("source", "file"),
    [
        ("sqlite:///here.db SELECT 1", "here.db"),
        ("sqlite:////data/there.db SELECT 1", "/data/there.db"),
        ("sqlite:here.db select 1", "here.db"),
        ("duckdb:///a%20b.db FROM t", "a b.db"),
    ],
)
def test_addresses_of_files(source, file):
    assert Path(databases.split(source).file) == Path(file)
