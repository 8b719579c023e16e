"""Tables from files, arrays and databases, and back to files."""

import gzip
import io
import json
import os
import sqlite3
import sys
import traceback
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import postgres
from likeminds import Annotations
from likeminds._util.text_format import mask
from likeminds.data.sources import databases, files, read_csv, read_table, write_table
from likeminds.data.sources.files import spread

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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet", "a.arrow", "a.npy", "a.npz"])
def test_a_named_pipe_is_refused(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match="standard input"):
        read_table(tmp_path / name)


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="this system has no /dev/fd")
def test_a_process_substitution_is_told_to_use_standard_input():
    reading, writing = os.pipe()
    try:
        with pytest.raises(ValueError, match="standard input"):
            read_table(f"/dev/fd/{reading}")
    finally:
        os.close(reading)
        os.close(writing)


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
    with pytest.raises(ValueError):
        read_table(tmp_path / "cube.npy")
    np.savez(tmp_path / "short.npz", item=np.arange(3), x=np.zeros((2, 2)))
    with pytest.raises(ValueError):
        read_table(tmp_path / "short.npz")
    np.savez(tmp_path / "objects.npz", item=np.array(["a", None], dtype=object))
    with pytest.raises(ValueError, match="pickled"):
        read_table(tmp_path / "objects.npz")
    (tmp_path / "bad.npy").write_text("nothing")
    with pytest.raises(ValueError):
        read_table(tmp_path / "bad.npy")
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.npz")


def test_standard_input_and_output(labels, monkeypatch, capsys):
    write_table(labels, "-")
    written = capsys.readouterr().out
    assert written.splitlines()[:2] == ["person,item,label,size", "ann,cat,1,0.5"]

    class Stdin:
        buffer = io.BytesIO(written.encode())

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert read_table("-").to_pydict() == LABELS


class TestCsv:
    def test_texts_that_look_like_others_come_back(self, tmp_path):
        users = ["a\rb", 'say "x"', "a,b", "two\nlines", " x ", "NA", "null", "nan", "007"]
        table = pa.table({"person": users, "size": [float(k) for k in range(len(users))]})
        write_table(table, tmp_path / "a.csv")
        found = read_table(tmp_path / "a.csv", lambda columns: {"person"} & set(columns))
        assert found.to_pydict() == table.to_pydict()

    def test_missing_values_are_without_quotes(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_text('person,size\nNA,1\n"NA",2\n,3\n')
        assert read_table(path)["person"].to_pylist() == [None, "NA", None]

    def test_numbers_in_quotes_may_have_gaps(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_text('"person","size"\n"ann","1.5"\n"bob",""\n')
        assert read_table(path)["size"].to_pylist() == [1.5, None]

    @pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
    @pytest.mark.parametrize(
        ("encoding", "where"),
        [("LATIN1", r"0xfc in line 3 \(byte 21"), ("UTF-16", r"0xff in line 1 \(byte 1")],
    )
    def test_other_encodings_are_named_at_once(self, tmp_path, ending, encoding, where):
        path = tmp_path / f"a{ending}"
        opened = gzip.open if ending.endswith("gz") else open
        with opened(path, "wb") as file:
            file.write(
                "person,label\nann,1\nM\N{LATIN SMALL LETTER U WITH DIAERESIS}ller,0\n".encode(
                    encoding
                )
            )
        told = rf"not encoded as UTF-8: see byte {where} of .* iconv -f {encoding} -t UTF-8"
        with pytest.raises(ValueError, match=told):
            read_table(path)

    def test_a_closed_standard_input_is_told(self, monkeypatch):
        monkeypatch.setattr(sys, "stdin", None)
        with pytest.raises(ValueError):
            read_table("-")

    def test_lines_longer_than_a_block(self, tmp_path):
        path = tmp_path / "wide.csv"
        first, second = "0." + 600 * "1", "0." + 6000 * "2"
        names = ",".join(f"x{k}" for k in range(2000))
        rows = [f"{row % 7}," + ",".join(2000 * [value]) for row, value in enumerate([first] * 9)]
        rows += ["text," + ",".join(1999 * [second]) + ",text"]
        path.write_text("\n".join([f"item,{names}", *rows]))
        table = read_table(path)
        assert (table.num_rows, table.num_columns) == (10, 2001)
        assert table["x0"].to_pylist() == 9 * [float(first)] + [float(second)]
        assert table["x1999"].to_pylist()[-1] == "text"


def test_lists_of_numbers_are_spread_out():
    table = pa.table({"item": ["a", "b"], "x": [[1.0, 2.0], [3.0, 4.0]]})
    assert spread(table).to_pydict() == {"item": ["a", "b"], "x0": [1.0, 3.0], "x1": [2.0, 4.0]}
    with pytest.raises(ValueError):
        spread(pa.table({"x": [[1.0], [1.0, 2.0]]}))


def test_unknown_files_are_refused_with_what_there_is(tmp_path):
    with pytest.raises(ValueError):
        read_table("labels.txt")
    with pytest.raises(ValueError):
        write_table(pa.table({"a": [1]}), tmp_path / "table")
    with pytest.raises(FileNotFoundError):
        write_table(pa.table({"a": [1]}), tmp_path / "none" / "a.csv")
    (tmp_path / "b.csv").mkdir()
    with pytest.raises(IsADirectoryError):
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
        said = Annotations.from_source(f"sqlite:///{sqlite_file} {QUERY}", features=["size"])
        assert len(said) == 4
        assert said.n_users == 2

    def test_it_is_opened_for_reading_only(self, sqlite_file):
        address = f"sqlite:///{sqlite_file} WITH a AS (SELECT 1) DELETE FROM labels"
        with pytest.raises(ValueError, match="not authorized"):
            read_table(address)

    def test_it_is_only_asked(self, sqlite_file, tmp_path):
        for query in (
            "SELECT 1; DELETE FROM labels",
            "SELECT load_extension('more')",
            f"WITH a AS (SELECT 1) INSERT INTO labels SELECT * FROM '{tmp_path / 'a.db'}'",
        ):
            with pytest.raises(ValueError):
                read_table(f"sqlite:///{sqlite_file} {query}")
        assert read_table(f"sqlite:///{sqlite_file} {QUERY}").num_rows == 4

    def test_mistakes_are_sentences(self, sqlite_file, tmp_path):
        with pytest.raises(ValueError):
            read_table(f"sqlite:///{sqlite_file} SELECT * FROM lables")
        with pytest.raises(FileNotFoundError):
            read_table(f"sqlite:///{tmp_path / 'none.db'} SELECT 1")
        assert not (tmp_path / "none.db").exists()
        with pytest.raises(ValueError):
            read_table(f"sqlite:///{sqlite_file}")
        with pytest.raises(ValueError):
            read_table(f"sqlite:///{sqlite_file} SELECT 1 AS a, 2 AS a")
        with pytest.raises(ValueError):
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
        with pytest.raises(ValueError):
            read_table(f"duckdb:///{duckdb_file} SELECT * FROM lables")

    def test_nothing_else_is_reached(self, duckdb_file, tmp_path):
        import duckdb

        other, written = tmp_path / "other.duckdb", tmp_path / "written.csv"
        with duckdb.connect(str(other)) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS a")
        for query, why in (
            (f"SELECT 1; ATTACH '{other}' AS o; DROP TABLE o.kept", "read only"),
            (f"FROM labels; COPY labels TO '{written}'", "read only"),
            ("SELECT 1; INSTALL httpfs", "read only"),
            ("SELECT 1; SET enable_external_access = true", "read only"),
            (f"SELECT * FROM '{tmp_path / 'labels.csv'}'", "The query on"),
            (f"SELECT * FROM read_text('{other}')", "The query on"),
        ):
            with pytest.raises(ValueError, match=why):
                read_table(f"duckdb:///{duckdb_file} {query}")
        assert not written.exists()
        assert read_table(f"duckdb:///{other} FROM kept").to_pydict() == {"a": [1]}

    def test_a_missing_package_is_asked_for(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "duckdb", None)
        with pytest.raises(ImportError):
            read_table("duckdb:///crowd.duckdb SELECT 1")


@pytest.fixture(scope="module")
def filled(address):
    import psycopg

    with psycopg.connect(address) as connection:
        connection.execute("CREATE TABLE labels (person text, item text, label int, size numeric)")
        connection.execute("CREATE TABLE items (item uuid, embedding float8[])")
        connection.execute("CREATE SEQUENCE places")
        rows = list(zip(*LABELS.values(), strict=True))
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO labels VALUES (%s, %s, %s, %s)", rows)
        connection.execute(
            "INSERT INTO items VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{0.5, 2}')"
        )
    return address


@pytest.mark.slow
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
        with pytest.raises(ValueError, match="data-modifying"):
            read_table(address)
        assert read_table(f"{filled} {QUERY}").num_rows == 4

    def test_the_transaction_cannot_be_left(self, filled, tmp_path):
        written = tmp_path / "written"
        for query in (
            "SELECT 1; COMMIT; DROP TABLE labels",
            f"SELECT 1; COPY labels TO PROGRAM 'cat > {written}'",
            f"TABLE labels; COPY labels TO '{written}'",
            "SELECT * INTO copied FROM labels",
        ):
            with pytest.raises(ValueError):
                read_table(f"{filled} {query}")
        with pytest.raises(ValueError, match="read-only"):
            read_table(f"{filled} SELECT nextval('places')")
        # What the server lets pass at first is not kept.
        read_table(f"{filled} SELECT lo_from_bytea(0, 'kept')")
        kept = read_table(f"{filled} SELECT count(*) AS n FROM pg_largeobject_metadata")
        assert kept.to_pydict() == {"n": [0]}
        with pytest.raises(ValueError, match=r"must be set before any query|read-write mode"):
            read_table(f"{filled} SELECT set_config('transaction_read_only', 'off', false)")
        assert read_table(f"{filled} {QUERY}").num_rows == 4
        found = read_table(f"{filled} SELECT to_regclass('copied') IS NULL AS none")
        assert found.to_pydict() == {"none": [True]}
        assert not written.exists()

    def test_mistakes_are_sentences_without_the_password(self, filled):
        password = filled.split(":")[2].partition("@")[0]
        with pytest.raises(ValueError) as caught:
            read_table(f"{filled} SELECT * FROM lables")
        assert password not in str(caught.value)
        nowhere = filled.rpartition("/")[0] + "/nowhere"
        with pytest.raises(ValueError) as caught:
            read_table(f"{nowhere} SELECT 1")
        assert password not in str(caught.value)


SECRET = "pig/let"


@pytest.mark.parametrize(
    "source",
    [
        "postgresql://ann:SECRET@127.0.0.1:1/shop SELECT 1",
        "postgresql://ann:p@SECRET@127.0.0.1:1/shop SELECT 1",
        "postgresql://ann:p SECRET@127.0.0.1:1/shop SELECT 1",
        "postgresql://ann@127.0.0.1:1/shop?password=SECRET SELECT 1",
        "postgresql://127.0.0.1:1?password=p@SECRET SELECT 1",
        "postgresql://ann:SECRET@127.0.0.1:1/shop?sslmod=SECRET SELECT 1",
        "postgresql:/ann:SECRET@127.0.0.1:1/shop SELECT 1",
        "postgresql://ann:SECRET@127.0.0.1:1/shop",
        "postgresql://ann:SECRET@127.0.0.1:1/shop DELETE FROM labels",
        "postgrsql://ann:SECRET@127.0.0.1/shop SELECT 1",
        "mysql+driver://ann:SECRET@127.0.0.1/shop SELECT * FROM 'labels.csv'",
        "sqlite://ann:SECRET@127.0.0.1/shop SELECT 1",
        "ann:SECRET@127.0.0.1/shop SELECT 1",
        "host=127.0.0.1 password=SECRET SELECT 1",
    ],
)
@pytest.mark.parametrize("secret", [SECRET, SECRET.replace("/", "%2F"), "piglet"])
def test_passwords_never_appear(source, secret):
    if source.startswith("postgres"):
        pytest.importorskip("psycopg")
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        read_table(source.replace("SECRET", secret))
    # As --debug shows it: with the errors that it came from.
    shown = "".join(traceback.format_exception(caught.value))
    said = shown[shown.rindex("Error: ") :] if "During handling" not in shown else shown
    assert "pig" not in said
    assert "piglet" not in mask(str(caught.value))
    assert "direct cause" not in shown


def test_a_missing_postgres_driver_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ImportError):
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


# More than a block of the reader has, of which the types are found in the first.
N_ROWS = 40_000


def written(path, last):
    rng = np.random.default_rng(0)
    sizes = [f"{number}" for number in rng.integers(9, size=N_ROWS - 1)]
    columns = {
        "user": [f"{number:030}" for number in range(N_ROWS)],
        "label": rng.integers(2, size=N_ROWS),
        "size": [*sizes, last],
    }
    csv.write_csv(pa.table(columns), path, csv.WriteOptions(quoting_style="none"))
    return path


@pytest.mark.parametrize("last", ["7", "7.5", "", "large"])
def test_types_that_a_later_batch_has_are_found(tmp_path, monkeypatch, last):
    path = written(tmp_path / "labels.csv", last)
    assert path.stat().st_size > files._BLOCK
    whole = read_csv(path)
    monkeypatch.setattr(files, "_LARGE", 1)
    assert read_csv(path).equals(whole)
    with path.open("rb") as file:
        assert read_csv(file).equals(whole)


def test_labels_are_the_same(tmp_path, monkeypatch):
    path = written(tmp_path / "labels.csv", "7")
    whole = Annotations.from_csv(path)
    monkeypatch.setattr(files, "_LARGE", 1)
    batches = Annotations.from_csv(path)
    assert batches.user_ids[0] == "0" * 30
    np.testing.assert_array_equal(batches.users, whole.users)
    np.testing.assert_array_equal(batches.features, whole.features)
