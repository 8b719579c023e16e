"""Rows in Spark: executors reduce them to statistics, and the ranker is that of one process."""

import importlib.util
import os
import shutil
import sys

import numpy as np
import pyarrow as pa
import pytest

from likeminds import Annotations, HierarchicalRanker, ThreeLevelRanker, make_schools
from likeminds.cluster.item_broadcast import ItemBroadcast
from likeminds.cluster.spark import SparkRows, merged_statistics

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.fixture(scope="module")
def said():
    made = make_schools(40, 12, 30, 5, n_schools=2, contested=0.6, random_state=0).annotations
    return made._with(user_ids=np.array([f"p{n:02d}" for n in range(40)], dtype=object))


@pytest.fixture(scope="module")
def here(said):
    return ThreeLevelRanker().fit(said)


def rows_of(said):
    columns = {"user": said.users.tolist(), "item": said.items.tolist()}
    return pa.table(columns | {"label": said.labels.astype(int)})


def crowd_of(frame, said, **more):
    return SparkRows(
        frame, said.features, item_ids=said.item_ids, feature_names=said.feature_names, **more
    )


class Partitions:
    """Partitions that answer as a frame of Spark's does, without Spark and Java."""

    def __init__(self, parts):
        self.parts, self.columns, self._by = parts, parts[0].column_names, None

    def select(self, *names):
        return Partitions([part.select(list(names)) for part in self.parts])

    def groupBy(self, name):  # noqa: N802 - as Spark calls it
        self._by = name
        return self

    def count(self):
        return self

    def collect(self):
        found = pa.concat_tables(self.parts)[self._by].value_counts().to_pylist()
        return [(one["values"], one["counts"]) for one in found]

    def mapInArrow(self, work, schema):  # noqa: N802
        names = [column.split()[0] for column in schema.split(", ")]
        made = [batch for part in self.parts for batch in work(iter(part.to_batches()))]
        assert all(batch.schema.names == names for batch in made)
        return Arrow(made)


class Arrow:
    def __init__(self, batches):
        self._batches = batches

    def toArrow(self):  # noqa: N802
        return pa.Table.from_batches(self._batches)


def same(there, here):
    assert there.users_.tolist() == here.users_.tolist()
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0, atol=1e-6)
    assert there.n_labels_ == here.n_labels_
    assert there.feature_names_.tolist() == here.feature_names_.tolist()


def test_rows_scattered_over_partitions_are_merged(said, here):
    order = np.random.default_rng(0).permutation(len(said))
    rows = rows_of(said)
    parts = Partitions([rows.take(order[:100]), rows[:0], rows.take(order[100:])])
    there = ThreeLevelRanker().fit(crowd_of(parts, said))
    same(there, here)
    few = said[::5]
    assert there.update(few).n_labels_ == len(said) + len(few)


def test_words_are_grades_where_their_order_is_given(said):
    words = ("bad", "fair", "good")
    given = [words[n % 2 + label] for n, label in enumerate(said.labels.astype(int))]
    items = {"features": said.features, "item_ids": said.item_ids, "features_per": "item"}
    here = ThreeLevelRanker().fit(
        Annotations(
            said.users, said.items, given, **items, grades=words, feature_names=said.feature_names
        )
    )
    rows = rows_of(said).set_column(2, "label", [given])
    there = ThreeLevelRanker().fit(crowd_of(Partitions([rows[:50], rows[50:]]), said, grades=words))
    same(there, here)
    assert there.label_reading_ == here.label_reading_
    with pytest.raises(ValueError, match="words without an order"):
        crowd_of(Partitions([rows]), said)


def test_what_is_wrong_is_said(said):
    rows = rows_of(said)
    with pytest.raises(TypeError):
        HierarchicalRanker().fit(crowd_of(Partitions([rows]), said))
    with pytest.raises(TypeError):
        HierarchicalRanker().fit(said).newcomer(crowd_of(Partitions([rows]), said))
    for told, call in (
        ("no column label", lambda: crowd_of(Partitions([rows.drop_columns(["label"])]), said)),
        (
            "one class",
            lambda: ThreeLevelRanker().fit(
                crowd_of(Partitions([rows_of(said[said.labels])]), said)
            ),
        ),
    ):
        with pytest.raises(ValueError, match=told):
            call()
    other = rows.set_column(1, "item", pa.array([99] * len(rows)))
    with pytest.raises(ValueError, match="items without features: 99"):
        ThreeLevelRanker().fit(crowd_of(Partitions([other]), said))
    nulls = rows.set_column(2, "label", pa.array([None, *rows["label"].to_pylist()[1:]]))
    for told, call in (
        ("rows without a label", lambda: crowd_of(Partitions([nulls]), said)),
        (
            "all partitions are empty",
            lambda: merged_statistics([], ItemBroadcast(said.item_ids, said.features, ())),
        ),
    ):
        with pytest.raises(ValueError, match=told):
            call()


def spark_is_there():
    """Say what is missing for a Spark of one's own; nothing if it can be started."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: pip install -c constraints.txt '.[spark]'"
    return None if shutil.which("java") else "Spark needs Java, and there is none"


@pytest.fixture
def spark(monkeypatch):
    from pyspark.sql import SparkSession

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    builder = SparkSession.builder.master("local[2]").appName("likeminds")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.mark.slow
@pytest.mark.skipif(spark_is_there() is not None, reason=str(spark_is_there()))
def test_executors_reduce_rows_and_score(spark, said, here):
    rows = rows_of(said).to_pylist()
    frame = spark.createDataFrame(rows, "user string, item long, label int").repartition(3)
    same(ThreeLevelRanker().fit(crowd_of(frame, said)), here)
    by_user = crowd_of(frame, said, by_user=2)
    same(ThreeLevelRanker().fit(by_user), here)
    assert here.score(by_user) == pytest.approx(here.score(said), abs=1e-9)
