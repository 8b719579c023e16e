"""The paper's experiments at a tiny size: everything runs, is kept, and is judged."""

import base64
import json
import re

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from image_folders import SHOES, SUN, write_features, write_table
from likeminds import Annotations, make_schools, make_simulation, make_sketch_shoes
from likeminds.cli import app
from likeminds.comparing import runs
from likeminds.comparing.runs import Job, ResultStore
from likeminds.paper.experiments import (
    ablation,
    claims,
    command,
    data_sets,
    drawings,
    published,
    table2,
)
from likeminds.paper.experiments.data_sets import read_data
from likeminds.paper.experiments.fig3 import (
    BEST,
    CHOSEN,
    FULL_SIZE,
    TRUE_KAPPA,
    split_by_distance,
)
from likeminds.paper.experiments.report_page import ReportPart, markdown_table, write_report
from likeminds.paper.experiments.setting import SCALES, ExperimentSetting
from likeminds.paper.experiments.table2 import rows_by_user
from likeminds.paper.experiments.table3 import DataSetTrials, results
from likeminds.paper.experiments.trials import (
    INTERCEPT,
    OURS,
    RAW,
    ComparedRanker,
    Trials,
    paper_search,
    run_compared,
    run_trials,
)
from likeminds.plots.figures import new_figure
from likeminds.rankers.baselines import JFL, ConsensusOnly
from likeminds.rankers.registry import PAPER_BASELINES
from likeminds.rankers.search import RankerCV
from likeminds.rankers.three_level import ThreeLevelRanker

pytestmark = pytest.mark.slow


def setting_of(folder):
    return ExperimentSetting(SCALES["tiny"], ResultStore(folder / "kept"))


def reproduce(folder, what="all", **options):
    quiet = Console(quiet=True)
    return command.reproduce(what, "tiny", folder, jobs=1, progress=False, console=quiet, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduced")
    reproduce(out)
    return out


@pytest.fixture(scope="module")
def facts(folder):
    return json.loads((folder / "report.json").read_text())


class TestReport:
    def test_every_part_is_in_it_with_its_command(self, folder):
        text = (folder / "report.md").read_text()
        assert text.startswith("# The paper, rebuilt")
        assert "scale tiny, not at the paper's size" in text.split("\n## ")[0]
        assert text.count("\n## ") == len(command.PARTS) + 2  # the claims, how it was made
        for part in command.PARTS:
            assert f"Made by `likeminds reproduce {part} --scale tiny --seed 0 --out DIR`" in text

    def test_pictures_lie_beside_the_markdown(self, folder):
        named = re.findall(r"\]\((.+?\.png)\)", (folder / "report.md").read_text())
        assert len(named) == len(set(named)) == 9
        for name in named:
            assert (folder / name).read_bytes().startswith(b"\x89PNG")
            drawing = (folder / name).with_suffix(".svg").read_text()
            assert "<svg" in drawing
            for image, points in re.findall(
                r'base64,([^"]+)".*? width="([\d.]+)"', drawing, re.DOTALL
            ):
                pixels = int.from_bytes(base64.b64decode(image)[16:20], "big")
                assert pixels / (float(points) / 72) > 290  # dots per inch

    def test_it_has_a_fingerprint(self, folder, facts):
        made = facts["made"]
        assert {"commit", "date", "likeminds", "Python", "numpy", "scale", "seed"} <= made.keys()
        text = (folder / "report.md").read_text()
        assert all(f"| {name} | {value} |" in text for name, value in made.items())

    def test_the_authors_program_is_compared(self, facts):
        figure, table = facts["fig4"], facts["table2"]
        assert figure["increases"]["the paper's, as printed"] == 0
        assert set(figure["increases"]) == set(figure["steps_to_near"])
        assert "the authors' program" in figure["increases"]
        assert len(figure["theorem_2_claims"]) == 5
        assert len(table["iterations"]["authors"]) == len(table["shares"])

    def test_html_needs_no_other_file(self, folder):
        page = (folder / "report.html").read_text()
        sources = re.findall(r'(?:src|href)="(.+?)"', page)
        outside = [source for source in sources if not source.startswith("#")]
        assert len(outside) == 9
        assert all(source.startswith("data:image/png;base64,") for source in outside)
        for what in ("<table>", "What holds, what does not", "numpy", "seed"):
            assert what in page

    def test_claims_are_judged_by_the_facts_of_the_run(self, folder, facts):
        verdicts = claims.judge_claims(facts)
        text = (folder / "report.md").read_text()
        assert {verdict.part for verdict in verdicts} == set(facts) - {"fig5", "drawings", "made"}
        for verdict in verdicts:
            assert f"| {verdict.claim} | {verdict.paper} | {verdict.measured} |" in text
        for about in (claims.THEIRS, claims.STAND_IN, claims.ADDED):
            assert f"Of {sum(each.about == about for each in verdicts)} {about}: " in text

    def test_all_eight_take_part_both_ways(self, facts):
        auc = facts["table1"]["auc"]
        for name in PAPER_BASELINES:
            for way in (RAW, INTERCEPT):
                assert len(auc[f"{name}, {way}"]) == SCALES["tiny"].repeats
        assert set(auc) == set(facts["table3"]["Sketch shoes"]["attributes"]["open"]["auc"])

    def test_an_intercept_is_what_baselines_lack(self, folder, facts):
        _, auc, _ = facts["table1"]["inference"][0]
        text = (folder / "report.md").read_text()
        assert f"| without an intercept | {100 * auc:.1f} |" in text
        raw, fair = (facts["table1"][way] for way in ("without_an_intercept", "with_an_intercept"))
        assert min(fair.values()) > max(raw.values()) + 0.02

    def test_escapes_and_marks(self, tmp_path):
        blocks = ["in `code`", markdown_table(["x"], [["**1|2**"]]), "c", "![what](p.png)"]
        figures = {"p": new_figure(1, 1, shown=False)}
        part = ReportPart("table1", "a < b", "found", blocks, {}, figures)
        markdown, html = (
            path.read_text() for path in write_report(tmp_path, "r", "t", "lead", [part])
        )
        assert '<h2 id="table1">a &lt; b</h2>' in html
        assert "<td><strong>1|2</strong></td>" in html
        assert "<code>code</code>" in html
        assert '<p class="note">c</p>' in html
        assert "<figcaption>what</figcaption>" in html
        assert "| **1\\|2** |" in markdown


class TestKept:
    def test_a_second_run_fits_nothing(self, folder, monkeypatch):
        before = json.loads((folder / "report.json").read_text())

        def never(*arguments):
            raise AssertionError("computed again")

        monkeypatch.setattr(runs, "_work", never)
        results.cache_clear()
        reproduce(folder)
        after = json.loads((folder / "report.json").read_text())
        # The origin is that of the results, not of the page.
        again = after["made"].pop("written again")
        assert command.fingerprint(setting_of(folder))["commit"] in again
        assert after == before

    def test_what_is_missing_or_damaged_is_computed_again(self, tmp_path):
        jobs = [Job(f"square-{n}", square, {"number": n}) for n in range(4)]
        keep = ResultStore(tmp_path)
        assert keep.all(jobs) == [0, 1, 4, 9]
        for path in tmp_path.glob("square-[23]*"):
            path.write_text("{" if "-2-" in path.name else '{"job": "x"}')
        CALLS.clear()
        assert keep.all(jobs) == [0, 1, 4, 9]
        assert sorted(CALLS) == [2, 3]

    def test_other_arguments_are_another_result(self):
        first, second = (Job("s", square, {"number": n}) for n in (1, 2))
        assert first.fingerprint != second.fingerprint
        assert first.fingerprint == Job("other", square, {"number": 1}).fingerprint

    def test_one_part_has_a_page_of_its_own(self, folder):
        before = (folder / "report.md").read_bytes()
        pages = reproduce(folder, "table1")
        assert [page.name for page in pages] == ["table1.md", "table1.html"]
        assert (folder / "report.md").read_bytes() == before


CALLS = []


def square(number):
    CALLS.append(number)
    return number**2


class TestTrials:
    @pytest.fixture
    def crowd(self):
        return make_schools(12, 30, 60, 6, 2, random_state=0).annotations

    @pytest.mark.parametrize(
        ("tuned", "times"), [("in the first repeat", 1), ("in every repeat", 3)]
    )
    def test_penalties_are_searched_for_as_said(self, crowd, tmp_path, monkeypatch, tuned, times):
        searched = []
        original = RankerCV._fit_annotations

        def counted(self, annotations):
            searched.append(self.ranker)
            original(self, annotations)

        monkeypatch.setattr(RankerCV, "_fit_annotations", counted)
        rankers = {
            "JFL": ComparedRanker(RankerCV(JFL(), n_folds=2)),
            "consensus": ComparedRanker(ConsensusOnly(alpha=0.5)),
        }
        found = run_compared(crowd, rankers, 3, ResultStore(tmp_path), 0, tuned=tuned)
        assert len(searched) == times  # the consensus has a grid, and is left as it is
        assert len(found.by_repeat["JFL"]) == len(found.by_repeat["consensus"]) == 3
        assert "alpha" in found.chosen["JFL"]["parameters"]

    def test_with_parameters_is_what_the_search_would_fit(self, crowd):
        search = ComparedRanker(paper_search(crowd, 2, loss="least_squares"))
        search.fit(crowd)
        again = search.with_parameters(search.best_params_["parameters"]).fit(crowd)
        assert not again.searches
        np.testing.assert_allclose(
            again.decision_function(crowd), search.decision_function(crowd), rtol=1e-6
        )

    def test_components_are_those_of_training_items(self, crowd):
        train = crowd[crowd.item_codes < 40]
        ranker = ComparedRanker(ConsensusOnly(), share=0.9).fit(train)
        labelled = np.unique(train.item_codes)
        np.testing.assert_allclose(ranker.reduce_.mean_, crowd.features[labelled].mean(axis=0))
        assert ranker.decision_function(crowd).shape == (len(crowd),)


class TestClaims:
    @pytest.mark.parametrize(
        ("lead", "verdict"),
        [
            ([0.16, 0.1, 0.2], "holds"),
            ([0.01, 0.005, 0.02], "holds in part"),
            ([0.01, -0.01, 0.03], "does not hold"),
            ([-0.02, -0.03, -0.01], "does not hold"),
        ],
    )
    def test_lead_over_baselines_with_an_intercept(self, facts, lead, verdict):
        found = claims.judge_claims({"table1": facts["table1"] | {"lead": lead}})
        assert found[2].verdict == verdict

    @pytest.mark.parametrize(
        ("ours", "verdict"), [(0.9965, "holds"), (0.985, "holds in part"), (0.9, "does not hold")]
    )
    def test_the_figure_of_the_simulation(self, facts, ours, verdict):
        assert (
            claims.judge_claims({"table1": facts["table1"] | {"ours": ours}})[0].verdict == verdict
        )

    @pytest.mark.parametrize(
        ("leads", "verdict"),
        [
            ([0.01, 0.02], "holds"),
            ([0.01, -0.02], "holds in part"),
            ([0.0, -0.02], "does not hold"),
            ([0.0, 0.0], "cannot be told"),
        ],
    )
    def test_every_attribute_means_every_attribute(self, leads, verdict):
        # The interval of a lead of 0 is wide: neither sign is sure.
        bounds = [[lead, lead - (0.009, 0.1)[lead == 0], lead + 0.009] for lead in leads]
        bounds = [[*each[:2], 0.1 if each[0] == 0 else each[2]] for each in bounds]
        crowd = {
            "stands_in_for": "Shoes",
            "attributes": {str(n): {} for n in range(len(leads))},
            "lead": {
                "closest": {str(n): ["CMTL", *each] for n, each in enumerate(bounds)},
                "other": {"0": ["CMTL", -0.5, -0.6, -0.4]},
            },
            "lead_over_consensus": {str(n): [0.1, 0.05, 0.15] for n in range(len(leads))},
            "paper_lead": "-",
        }
        found = claims.judge_claims({"table3": {"Sketch shoes": crowd}})
        assert [v.verdict for v in found] == [verdict, "holds"]
        assert {v.about for v in found} == {claims.STAND_IN}
        assert found[0].claim.startswith("Sketch shoes (not Shoes)")

    def test_the_personal_level_is_judged_at_the_papers_size(self):
        each = {"flagged": 4, "right": 2, "true": 3, "groups": 1.0, "personal": 0.0}
        structure = {CHOSEN: each, TRUE_KAPPA: each, BEST: each}
        recovery = {OURS: {"labels": [10, 20], "groups": [0.1, 0.9]}}
        facts = {"recovery": recovery, "structure": structure}
        assert [v.verdict for v in claims.judge_claims({"fig3": facts})] == [
            "holds",
            "does not hold",
        ]
        structure[FULL_SIZE] = each | {"personal": 0.3}
        assert claims.judge_claims({"fig3": facts})[1].verdict == "holds in part"

    @pytest.mark.parametrize(
        ("steps", "verdict"),
        [
            ([[0.02, 0.01, 0.03], [0.01, 0.005, 0.02]], "holds"),
            ([[0.02, 0.01, 0.03], [0.0, -0.01, 0.01]], "holds in part"),
            ([[0.02, 0.01, 0.03], [0.02, 0.01, 0.03], [-0.01, -0.03, 0.01]], "holds in part"),
            ([[0.0, -0.001, 0.001], [-0.02, -0.03, -0.01]], "does not hold"),
            ([[0.0, -0.1, 0.1], [-0.02, -0.03, -0.01]], "cannot be told"),
        ],
    )
    def test_what_a_level_adds(self, steps, verdict):
        facts = {"steps": {"a level": steps}, "personal": {}}
        found = claims.judge_claims({"ablation": facts})
        assert [v.verdict for v in found] == [verdict]

    def test_no_part_no_claim(self):
        assert claims.judge_claims({}) == []
        assert claims.lead([]) == ""

    def test_the_papers_tables_are_whole(self):
        for table, attributes in (
            (published.TABLE_3_SHOES, published.SHOES),
            (published.TABLE_3_SUN, published.SUN),
        ):
            assert list(table) == [*PAPER_BASELINES, "Ours"] == list(published.TABLE_1)
            assert {len(row) for row in table.values()} == {len(attributes)}
            for column in zip(*table.values(), strict=True):
                assert max(column) == column[-1]  # the paper prints its own in bold


class TestParts:
    def test_levels_of_figure_1_are_centred(self, folder):
        ranker = ThreeLevelRanker().fit(make_simulation(8, 60, 5, 10, random_state=0).annotations)
        axes = drawings._decomposition(ranker).axes[:3]
        total, consensus, group = (each.images[0].get_array().T for each in axes)
        np.testing.assert_allclose(total, consensus + group + ranker.personal_)
        np.testing.assert_allclose(group.mean(axis=0), 0.0, atol=1e-12)
        assert "levels shown are the centred ones" in (folder / "report.md").read_text()

    def test_pictures_of_the_auc_graph_are_labelled_by_what_they_show(self):
        shoes = make_sketch_shoes(40, 12, 20, attributes=["open"], random_state=0)
        graph = drawings._graph(shoes)
        toe = shoes.traits[:, shoes.trait_names.index("toe_open")]
        for pictures, is_open in zip(graph.pictures, (True, False), strict=True):
            assert pictures
            for picture in pictures:
                (shown,) = (
                    i for i, one in enumerate(shoes.pictures) if np.array_equal(one, picture)
                )
                assert (toe[shown] > 0) == is_open
        n_positive, n_negative = graph.right.shape
        assert graph.affinity.sum() == pytest.approx(2.0)
        assert np.count_nonzero(graph.affinity) == 2 * n_positive * n_negative

    def test_shares_keep_both_kinds_of_everybody(self):
        said = make_simulation(4, 50, 3, 10, random_state=0).annotations
        fifth = table2.share_of_each(said, 20)
        assert [person.positive.sum() for person in rows_by_user(fifth)] == [2] * 4
        assert len(fifth) == 4 * 10

    def test_people_far_from_all_directions_stand_apart(self):
        rng = np.random.default_rng(0)
        coef = np.eye(12)[np.repeat([0, 1], 20)] + 0.01 * rng.normal(size=(40, 12))
        coef[[3, 25]] += rng.normal(size=(2, 12))
        found = split_by_distance(coef, 1)
        assert set(np.flatnonzero(found == found[3])) == {3, 25}

    def test_the_ablation_takes_the_best_candidate(self):
        size = {"n_labels": 12, "seed": 0, "shape": (12, 8, 2, 0), "crowd": ablation.SCHOOLS}
        chosen = ablation.search(model=ablation.CONSENSUS, tuned=True, **size)
        aucs = {}
        for alpha in (chosen["alpha"], 1.0, 0.1, 0.01, 0.001, 0.0001):
            seeds = [ablation._TUNING_SEED + draw for draw in range(ablation._N_TUNING)]
            aucs[alpha] = np.mean(
                [
                    ablation.score(
                        model=ablation.CONSENSUS, parameters={"alpha": alpha}, **size | {"seed": s}
                    )
                    for s in seeds
                ]
            )
        assert chosen == {"alpha": max(aucs, key=aucs.__getitem__)}  # in or beyond the grid

    def test_each_ablation_leaves_out_what_it_says(self):
        said = make_schools(15, 20, 60, 6, 2, random_state=0).annotations
        for model, (group, personal) in {
            ablation.PERSONAL: (False, True),
            ablation.GROUP: (True, False),
        }.items():
            search = ablation.models(0.3)[model]
            middle = {name: grid[len(grid) // 2] for name, grid in search.param_grid.items()}
            parameters = middle | ({"alpha_personal": 0.03} if personal else {})
            fitted = ComparedRanker(search).with_parameters(parameters).fit(said).ranker_
            assert (np.abs(fitted.group_).max() > 1e-3) == group
            assert (np.abs(fitted.personal_).max() > 1e-3) == personal


class TestData:
    def test_sketch_shoes_are_split_as_shoes_are(self):
        shoes = make_sketch_shoes(20, 4, 20, attributes=["open"], n_components=None)
        train, test = shoes.as_crowd(min_labels=1).split("open", 0.3, 0)
        assert train.n_features == test.n_features < 20
        assert shoes.as_crowd(reduce=None, min_labels=1).split("open", 0.3, 0)[0].n_features == 542

    def test_items_without_labels_are_left_out(self):
        said = Annotations(
            users=["a", "a", "b"],
            items=["x", "z", "z"],
            labels=[1, 0, 1],
            features=[[1.0], [2.0], [3.0]],
            item_ids=["x", "y", "z"],
            features_per="item",
        )
        less = data_sets._labelled_items(said)
        np.testing.assert_array_equal(less.X, said.X)
        assert less.features.shape == (2, 1)
        assert less.items.tolist() == said.items.tolist()

    def test_a_users_data_takes_part(self, folder, tmp_path):
        rng = np.random.default_rng(0)
        path = tmp_path / "mine.npz"
        np.savez(
            path,
            X=rng.normal(size=(20, 3)),
            user=np.repeat(np.arange(5), 20),
            item=np.tile(np.arange(20), 5),
            label=rng.integers(0, 2, 100),
        )
        setting = ExperimentSetting(SCALES["tiny"], ResultStore(folder / "kept"), data=(path,))
        mine = data_sets.data_sets(setting)[2]
        assert mine.name == "mine"
        assert mine.share is None
        assert mine.attributes["mine"].n_users == 5
        assert "--data mine.npz" in setting.command("table3")

    def test_tables_and_archives_say_the_same(self, tmp_path):
        columns = {"user": [0, 0, 1, 1], "item": [0, 1, 0, 1], "label": [0, 1, 1, 0]}
        np.savez(tmp_path / "d.npz", X=[[1.0], [2.0]], attribute=["p", "p", "q", "q"], **columns)
        rows = zip(*columns.values(), [1.0, 2.0, 1.0, 2.0], "ppqq", strict=True)
        lines = ["user,item,label,x,attribute", *(",".join(map(str, row)) for row in rows)]
        (tmp_path / "d.csv").write_text("\n".join(lines))
        for kind in ("npz", "csv"):
            parts = read_data(tmp_path / f"d.{kind}")
            assert list(parts) == ["p", "q"]
            assert [part.X.ravel().tolist() for part in parts.values()] == [[1, 2], [1, 2]]

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("a.txt", "end in .csv, .parquet, .npz"),
            ("a.npz", "There is no file"),
            ("b.npz", "has no user"),
        ],
    )
    def test_bad_data_is_told(self, tmp_path, name, message):
        if name == "b.npz":
            np.savez(tmp_path / name, X=[[1.0]])
        error = FileNotFoundError if message.startswith("There") else ValueError
        with pytest.raises(error, match=message):
            read_data(tmp_path / name)


def test_a_threshold_that_caps_nothing_is_counted():
    names = [f"{name}, {way}" for name in ("RMTL", "RAMU") for way in (RAW, INTERCEPT)]
    same = Trials(dict.fromkeys(names, np.array([0.8, 0.7])), {}, {})
    other = Trials(same.by_repeat | {names[-1]: np.array([0.8, 0.71])}, {}, {})
    assert DataSetTrials(None, {"open": same, "pointy": other}).n_equal() == 1
    assert DataSetTrials(None, {"pointy": other}).n_equal() == 0


class TestCommand:
    def test_options_arrive(self, tmp_path, monkeypatch):
        asked = {}

        def run(what, scale, out, **options):
            asked.update(what=what, scale=scale, out=out, **options)
            return [out / "table1.md", out / "table1.html"]

        monkeypatch.setattr(command, "reproduce", run)
        arguments = ["reproduce", "table1", "--scale", "paper", "--out", str(tmp_path)]
        arguments += [
            "--shoes",
            "s",
            "--data",
            "a.npz",
            "--data",
            "b.csv",
            "--jobs",
            "2",
            "--seed",
            "3",
        ]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        assert (asked["what"], asked["scale"], asked["out"]) == ("table1", "paper", tmp_path)
        assert str(asked["shoes"]) == "s"
        assert asked["sun"] is None
        assert [str(path) for path in asked["data"]] == ["a.npz", "b.csv"]
        assert (asked["jobs"], asked["seed"]) == (2, 3)
        assert "table1.html" in result.output

    def test_an_interrupt_says_how_to_go_on(self, tmp_path, monkeypatch):
        def run(*arguments, **options):
            raise KeyboardInterrupt

        monkeypatch.setattr(command, "reproduce", run)
        result = CliRunner().invoke(app, ["reproduce", "--out", str(tmp_path)])
        assert result.exit_code == 130
        assert "run the same command to resume" in result.output

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"what": "table4"}, "There is no part 'table4'; there are table1"),
            ({"scale": "huge"}, "There is no scale 'huge'; there are quick"),
            ({"jobs": 0}, "jobs must be at least 1"),
        ],
    )
    def test_bad_options_are_one_sentence(self, tmp_path, options, message):
        with pytest.raises(ValueError, match=message):
            command.reproduce(**{"what": "table1", "out": tmp_path} | options)

    def test_a_file_is_no_folder(self, tmp_path):
        path = tmp_path / "file"
        path.write_text("")
        with pytest.raises(NotADirectoryError):
            command.reproduce("table1", "tiny", path)

    def test_original_folders_take_the_place_of_sketch_shoes(self, tmp_path, monkeypatch):
        # The rankers run on one attribute, whose results then serve for all.
        done = []

        def run_once(*given, **more):
            done.extend([] if done else [run_trials(*given, **more)])
            return done[0]

        monkeypatch.setattr("likeminds.paper.experiments.table3.run_trials", run_once)
        for name, attributes in (("shoes", SHOES), ("sun", SUN)):
            (tmp_path / name).mkdir()
            write_table(tmp_path / name, attributes)
            write_features(tmp_path / name)
        out = tmp_path / "out"
        reproduce(out, "table3", shoes=tmp_path / "shoes", sun=tmp_path / "sun")
        facts = json.loads((out / "table3.json").read_text())["table3"]
        assert list(facts) == ["Shoes", "SUN"]
        assert set(facts["Shoes"]["attributes"]) == set(SHOES)
        assert set(facts["SUN"]["attributes"]) == set(SUN)
        assert not facts["Shoes"]["stands_in_for"]
        text = (out / "table3.md").read_text()
        assert "(not S" not in text
        assert "opening area" in text
        assert "--shoes FOLDER --sun FOLDER" in text

    @pytest.mark.parametrize("options", [{"shoes": "x"}, {"sun": "x"}, {"data": ["x.csv"]}])
    def test_data_that_is_not_there_is_told_before_any_fit(self, tmp_path, options):
        with pytest.raises(FileNotFoundError):
            reproduce(tmp_path / "out", **options)
        assert not (tmp_path / "out").exists()
