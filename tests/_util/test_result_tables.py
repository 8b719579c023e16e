"""Tables come back as the caller works with them, and notebooks show what objects are."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import likeminds
from likeminds import (
    Agreement,
    Annotations,
    ClassShares,
    Comparison,
    Diagnostics,
    FewShotTable,
    GradePredictions,
    HierarchicalRanker,
    Leaderboard,
    MetricByUser,
    Ranking,
    Schools,
    ScoreDecomposition,
    Similarity,
    SoftLabels,
    Table,
    agreement,
    auc_by_user,
    compare,
    diagnose,
    find_schools,
    leaderboard,
    score_shots,
)
from likeminds._util.result_tables import ResultTable, html_table


def columns():
    rng = np.random.default_rng(0)
    person, item = np.nonzero(rng.random((24, 20)) < 0.6)
    size = rng.normal(size=20)
    taste = np.where(np.arange(24) < 12, 2.0, -2.0)
    label = taste[person] * size[item] + rng.logistic(size=len(item)) > 0
    return {
        "person": [f"p{i}" for i in person],
        "item": [f"i{j}" for j in item],
        "label": label.astype(int),
        "size": size[item],
    }


@pytest.fixture(
    scope="module",
    params=[(pd.DataFrame, pd.DataFrame), (pl.DataFrame, pl.DataFrame), (pa.table, pa.Table)],
)
def told(request):
    make, kind = request.param
    said = Annotations.from_frame(make(columns()))
    return said, HierarchicalRanker(n_groups=1, n_item_factors=0).fit(said), kind


@pytest.mark.slow
def test_the_same_kind_comes_back(told):
    said, ranker, kind = told
    schools = find_schools(ranker)
    found = diagnose(ranker, said, n_folds=2)
    compared = compare(said, ["ConsensusOnly", "Popularity"], repeats=2, progress=False)
    tables = [
        ranker.rank("p1").table(),
        ranker.explain("p1", "i3").table(),
        ranker.similar_users("p1").table(),
        ranker.similar_items("i3").table(),
        schools.users(),
        schools.soft_labels.table(),
        found.table(),
        compared.table(),
        compared.summary(),
        compared.paired(),
    ]
    assert [type(table) for table in tables] == [kind] * len(tables)
    for shown in (said, ranker):
        assert shown._repr_html_().startswith("<div><strong>")
    assert "<Comparison of" in repr(compared)


RESULTS = {
    Agreement: lambda said, _: agreement(said),
    ClassShares: lambda *_: ClassShares(
        np.array(["tea"]), np.array(["calm", "merry"]), np.array([2]), np.array([[0.4, 0.6]])
    ),
    Comparison: lambda said, _: compare(said, ["Popularity"], repeats=1, progress=False),
    Diagnostics: lambda said, ranker: diagnose(ranker, said, n_folds=2),
    Leaderboard: lambda said, ranker: leaderboard(ranker),
    FewShotTable: lambda said, ranker: score_shots(ranker, said, shots=[0]),
    GradePredictions: lambda *_: GradePredictions(np.array([1, 2]), np.eye(2), np.array([1, 2])),
    MetricByUser: lambda *_: auc_by_user([0, 1, 1], [0.1, 0.2, 0.3], ["ann", "ann", "bob"]),
    Ranking: lambda _, ranker: ranker.rank("p1"),
    Schools: lambda _, ranker: find_schools(ranker),
    ScoreDecomposition: lambda _, ranker: ranker.explain("p1", "i3"),
    Similarity: lambda _, ranker: ranker.similar_users("p1"),
    SoftLabels: lambda _, ranker: find_schools(ranker).soft_labels,
    Table: lambda *_: Table("Prices", [{"item": "tea", "costs": 2.0}], frames="polars"),
}


@pytest.fixture(scope="module")
def learned():
    said = Annotations.from_frame(pd.DataFrame(columns()))
    return said, HierarchicalRanker(n_groups=1, n_item_factors=0).fit(said)


def test_each_kind_of_result_is_listed():
    assert set(ResultTable.__subclasses__()) == set(RESULTS)


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.__name__)
def test_results_are_tables_of_each_kind_and_html(kind, learned):
    result = RESULTS[kind](*learned)
    assert isinstance(result, kind)
    frames = {"pyarrow": result.to_arrow(), "pandas": result.to_pandas()}
    frames["polars"] = result.to_polars()
    assert isinstance(frames["pyarrow"], pa.Table)
    assert isinstance(frames["pandas"], pd.DataFrame)
    assert isinstance(frames["polars"], pl.DataFrame)
    assert len({frame.shape for frame in frames.values()}) == 1
    assert frames["pyarrow"].num_rows
    assert type(result.table()) is type(frames[result.frames])
    assert result._repr_html_().startswith("<div><strong>")
    assert "<table>" in result._repr_html_()


def test_parts_and_files_know_it_or_forget_it(told, tmp_path):
    said, ranker, _ = told
    assert said[:10].frames == said.concat(said[:5]).frames == said.frames
    again = likeminds.load(likeminds.save(ranker, tmp_path / "model", with_data=True))
    assert again.training_annotations_.frames == "pyarrow"


def test_only_public_names_are_offered():
    offered = set(dir(likeminds))
    assert offered == {*likeminds.__all__, *likeminds._PUBLIC}
    assert not any(name.startswith("_") and name != "__version__" for name in offered)


def test_nothing_that_is_shown_is_taken_for_markup():
    assert "<script>" not in html_table([{"item": "<script>", "score": float("nan")}])
    assert "<td>-</td>" in html_table([{"score": float("nan")}])
    assert html_table([]) == ""


def test_cells_are_escaped_and_numbers_rounded():
    assert html_table([{"item": "<b>", "score": 0.5}]) == (
        "<table><thead><tr><th>item</th><th>score</th></tr></thead>"
        "<tbody><tr><td>&lt;b&gt;</td><td>0.500</td></tr></tbody></table>"
    )


def test_html_of_a_table_is_escaped():
    html = Table("<b>", [{"a&b": "<script>"}], ("x < y",))._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<p>x &lt; y</p>" in html
