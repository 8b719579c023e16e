"""What verdicts on the paper depend on: paths, crowds, tuning, scaling and sizes."""

from itertools import pairwise

import numpy as np
import pytest

from likeminds import make_schools, make_simulation
from likeminds.comparing.runs import ResultStore
from likeminds.losses.statistics import Statistics
from likeminds.paper.experiments import ablation, claims, data_sets, table1
from likeminds.paper.experiments.command import _with_options
from likeminds.paper.experiments.fig3 import BEST, CHOSEN, TRUE_KAPPA, _compare, score_structure
from likeminds.paper.experiments.path_search import (
    ExtendedCV,
    PathCV,
    at_edge,
    beyond_edges,
)
from likeminds.paper.experiments.report_page import make_part, phrase
from likeminds.paper.experiments.setting import SCALES, ExperimentSetting
from likeminds.paper.experiments.table2 import rows_by_user
from likeminds.paper.experiments.trials import (
    FINE_PATH,
    OURS,
    ComparedRanker,
    Trials,
    compared_rankers,
    paper_search,
    penalty_rows,
)
from likeminds.rankers.baselines import COMT, ConsensusOnly
from likeminds.rankers.search import RankerCV


@pytest.fixture(scope="module")
def crowd():
    return make_schools(10, 24, 50, 8, 2, random_state=0).annotations


class TestPaths:
    def test_kappa_reaches_eight_and_lambda3_is_dense_where_it_matters(self):
        search = paper_search(make_simulation(10, 30, 8, 5, random_state=0).annotations, 3)
        assert {5, 8} <= set(search.param_grid["n_groups"])
        window = [value for value in search.fine_path if 0.12 <= value <= 0.3]
        assert len(window) >= 6
        assert max(a / b for a, b in pairwise(window)) < 1.25

    @pytest.mark.seconds
    def test_an_edge_that_wins_is_passed(self, crowd):
        grid = {
            "alpha_consensus": [1e-3],
            "alpha_group": [1e-4, 1e-3],  # far below what suits so few labels
            "alpha_personal": [1e3],
            "n_groups": [1],
        }
        search = PathCV(grid, n_folds=2).fit(crowd)
        assert search.extended_ == ["alpha_group"]
        assert search.best_params_["alpha_group"] > 1e-3
        assert at_edge(search.cv_results_["params"], search.best_params_) == []
        tried = {each["alpha_group"] for each in search.cv_results_["params"]}
        assert max(tried) > search.best_params_["alpha_group"]

    @pytest.mark.seconds
    def test_the_fit_is_that_of_the_winner(self, crowd):
        search = paper_search(crowd, 2).fit(crowd)
        again = search.with_parameters(search.best_params_).fit(crowd)
        np.testing.assert_allclose(search.coef_, again.coef_, rtol=1e-5, atol=1e-8)

    def test_steps_beyond_both_edges(self):
        tried = [
            {"alpha_group": 1.0, "alpha_personal": 1.0},
            {"alpha_group": 2.0, "alpha_personal": 0.1},
        ]
        found = beyond_edges(tried, tried[1])
        assert len(found) == 8
        assert {round(each["alpha_group"], 2) for each in found} == {2.0, 6.32, 20.0}
        assert {round(each["alpha_personal"], 3) for each in found} == {0.1, 0.032, 0.01}

    def test_penalties_that_are_equal_in_the_grid_are_extended_together(self):
        tried = [{"alpha_mean": a, "alpha_group": a, "n_groups": 1} for a in (3.0, 10.0)]
        found = beyond_edges(tried, tried[1])
        assert [each["alpha_mean"] for each in found] == pytest.approx([10 * 10**0.5, 100.0])
        assert all(each["alpha_mean"] == each["alpha_group"] for each in found)

    def test_numbers_of_clusters_are_doubled_up_to_a_limit(self):
        tried = [{"n_clusters": n} for n in (1, 2, 5)]
        assert beyond_edges(tried, tried[2], most=10) == [{"n_clusters": 10}]
        assert beyond_edges(tried, tried[2], most=9) == []
        assert beyond_edges(tried, tried[0], most=10) == []

    @pytest.mark.seconds
    @pytest.mark.parametrize("name", ["RMTL", "CMTL", "COMT", "Consensus only"])
    def test_grids_of_baselines_are_extended_too(self, crowd, tmp_path, name):
        setting = ExperimentSetting(SCALES["quick"], ResultStore(tmp_path))
        rankers = compared_rankers(crowd, setting)
        searches = [each.ranker for key, each in rankers.items() if key.startswith(name)]
        assert searches
        assert all(isinstance(search, ExtendedCV) for search in searches)

    @pytest.mark.seconds
    def test_a_baseline_passes_an_edge_that_wins(self, crowd):
        kind, grid = COMT(n_groups=1), {"alpha_mean": [1e-3, 1e-2], "alpha_group": [1e-3, 1e-2]}
        narrow = RankerCV(kind, grid, n_folds=2).fit(crowd)
        search = ExtendedCV(kind, grid, n_folds=2).fit(crowd)
        assert search.best_score_ > narrow.best_score_
        assert search.extended_
        assert search.cv_results_["params"][search.best_index_] == search.best_params_
        again = search.with_parameters(search.best_params_).fit(crowd)
        np.testing.assert_allclose(search.coef_, again.coef_)

    def test_the_report_marks_edges_and_extended_paths(self):
        chosen = {"parameters": {"alpha_group": 3.0, "n_groups": 8}}
        chosen |= {"at_edge": ["n_groups"], "extended": ["alpha_group"]}
        trials = Trials({}, {OURS: chosen, "COMT": chosen, "other": {}}, {})
        assert penalty_rows({"open": trials}) == [
            [OURS, "λ2 3 (extended), κ 8 (edge)"],
            ["COMT", "alpha_group 3 (extended), n_groups 8 (edge)"],
        ]


class TestScaling:
    def test_components_keep_their_ratios_if_they_are_not_standardised(self, crowd):
        plain = ComparedRanker(ConsensusOnly(standardize=False), share=1.0, rescale=True)
        plain.fit(crowd)
        variance = plain._reduced(crowd).features.var(axis=0)
        ratio = plain.reduce_.explained_variance_ratio_
        np.testing.assert_allclose(variance / variance.sum(), ratio, rtol=0.05)
        assert variance.mean() == pytest.approx(1.0)

    def test_the_common_unit_is_kept_for_other_rows(self, crowd):
        plain = ComparedRanker(ConsensusOnly(standardize=False), share=1.0, rescale=True)
        plain.fit(crowd)
        whole, part = plain.decision_function(crowd), plain.decision_function(crowd[:20])
        np.testing.assert_allclose(whole[:20], part)


class TestTuning:
    def test_every_repeat_is_the_default_of_the_papers_scale(self):
        assert SCALES["paper"].tuned == "in every repeat"
        assert _with_options(SCALES["quick"], "every", None).tuned == "in every repeat"
        assert _with_options(SCALES["quick"], None, None) is SCALES["quick"]

    def test_the_report_says_how_candidates_are_dropped(self):
        for scale in ("quick", "paper"):
            assert "successive halving" in phrase("search", SCALES[scale])
        assert "--tuned every" in phrase("search", SCALES["quick"])
        assert "--tuned" not in phrase("search", SCALES["paper"])

    def test_other_words_are_refused(self):
        with pytest.raises(ValueError, match="first or every"):
            _with_options(SCALES["quick"], "always", None)

    def test_the_command_that_makes_a_part_has_the_option(self, tmp_path):
        scale = _with_options(SCALES["quick"], "every", None)
        made_by = ExperimentSetting(scale, ResultStore(tmp_path)).command("table1")
        assert "--tuned every" in made_by


class TestRepeats:
    def test_the_report_gives_them_next_to_those_of_the_paper(self, tmp_path):
        usual = SCALES["paper"]
        fewer = _with_options(usual, None, 4)
        assert "4 repeats (the paper: 15)" in phrase("difference", fewer)
        assert "repeats" not in phrase("difference", usual)
        assert "--repeats 4" in ExperimentSetting(fewer, ResultStore(tmp_path)).command("all")
        assert "--repeats" not in ExperimentSetting(usual, ResultStore(tmp_path)).command("all")

    def test_the_forecast_follows_them(self):
        usual = SCALES["paper"]
        fewer = _with_options(usual, None, 5).minutes
        assert fewer["table3"] == usual.minutes["table3"] / 3
        assert fewer["ablation"] == usual.minutes["ablation"]

    def test_fewer_than_two_are_refused(self):
        with pytest.raises(ValueError, match="at least 2"):
            _with_options(SCALES["paper"], None, 1)


class TestSizes:
    def test_as_many_labels_as_in_the_paper(self):
        scale = SCALES["paper"]
        for size, labels in ((scale.shoes, 90_000), (scale.sun, 64_900)):
            mine = size.n_users * size.pictures_each * len(size.attributes)
            assert abs(mine - labels) < 0.002 * labels
        assert (len(scale.shoes.attributes), len(scale.sun.attributes)) == (7, 5)

    @pytest.mark.seconds
    def test_random_attributes_stand_in_for_sun(self, tmp_path):
        setting = ExperimentSetting(SCALES["tiny"], ResultStore(tmp_path))
        shoes, sun = data_sets.data_sets(setting)
        assert (shoes.stands_in_for, sun.stands_in_for) == ("Shoes", "SUN")
        assert sun.share == 0.9
        assert "RMTL" in sun.paper
        assert sun.attributes["modern"].n_users > 0


class TestPersonalLevel:
    def test_loners_are_in_the_crowd_with_loners(self):
        shape = (20, 6, 2, 8)
        calls = []
        original = ablation.make_schools

        def spied(*sizes, **options):
            calls.append(options["n_loners"])
            return original(*sizes, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ablation, "make_schools", spied)
            train, test = ablation._split(ablation.LONERS, 20, 0, shape)
        assert calls == [8]
        assert (len(train), len(test)) == (20 * 20, 20 * 50)

    def test_the_papers_simulation_has_two_per_cent_of_positives(self):
        train, test = ablation._split(ablation.SIMULATION, 100, 0, (5, 6, 0, 0))
        assert (len(train) + len(test), train.n_users) == (5 * 600, 5)
        assert train.labels.sum() + test.labels.sum() == 5 * 12

    def test_crowds_are_judged_one_by_one(self, tmp_path):
        gains = {ablation.SCHOOLS: [[0.0, 0.0, 0.0]], ablation.LONERS: [[0.005, 0.003, 0.007]]}
        facts = {"labels": [20], "steps": {ablation.PERSONAL_STEP: [[0.0, 0.0, 0.0]]}}
        facts["personal"] = {
            name: {"labels": [20], "gains": values} for name, values in gains.items()
        }
        found = claims.judge_claims({"ablation": facts})
        assert [verdict.verdict for verdict in found] == ["does not hold", "holds"]
        facts["steps"][ablation.GROUP_STEP] = [[0.01, 0.0, 0.02]]
        setting = ExperimentSetting(SCALES["tiny"], ResultStore(tmp_path))
        part = make_part("ablation", setting, facts | {"auc": {}}, rows=[])
        assert "Schools and loners: +0.50 points" in part.found
        assert "| Schools and loners | 20 | +0.50 [+0.30, +0.70] |" in "".join(part.blocks)

    @pytest.mark.slow
    def test_lambda3_finds_people_in_a_window_between_a_tenth_and_one(self):
        drawn = make_simulation(*SCALES["paper"].simulation, random_state=0)
        statistics = Statistics.from_annotations(drawn.annotations)
        parameters = {"n_groups": 5, "alpha_group": 3.0, "alpha_consensus": 1e-2}
        few, some, many = (
            _compare(drawn, statistics, parameters | {"alpha_personal": alpha})
            for alpha in (1.0, 0.2, 0.1)
        )
        assert few["flagged"] == 0
        assert many["flagged"] == drawn.annotations.n_users
        assert some["flagged"] <= 30
        assert some["right"] >= 10
        assert some["personal"] > 0.3 > max(few["personal"], many["personal"])

    @pytest.mark.seconds
    def test_structure_is_judged_at_the_true_kappa_and_at_the_best_lambda3(self):
        size = [10, 100, 8, 10]
        found = score_structure(size=size, seed=0, n_folds=0, parameters={"n_groups": 2})
        assert found[CHOSEN]["parameters"]["n_groups"] == 2
        assert found[TRUE_KAPPA]["parameters"]["n_groups"] == 5
        assert found[BEST]["parameters"]["alpha_personal"] in FINE_PATH
        assert found[BEST]["personal"] >= found[TRUE_KAPPA]["personal"]
        for each in found.values():
            assert each["right"] <= min(each["flagged"], each["true"])


def test_least_squares_without_an_intercept_fall_behind():
    rows = table1.least_squares(size=[10, 500, 20, 10], seed=0)
    assert [share for share, _, _ in rows] == [0.6, 0.65, 0.75, 0.85]
    assert all(fair > raw + 0.05 for _, raw, fair in rows)
    drawn = make_simulation(10, 500, 20, 10, random_state=0).annotations
    person = rows_by_user(drawn)[0]
    with_ones = np.column_stack([person.rows, np.ones(len(person.rows))])
    expected = np.linalg.lstsq(with_ones, 2.0 * person.positive - 1.0, rcond=None)[0][:-1]
    np.testing.assert_allclose(table1._solve(person, True), expected, rtol=1e-3, atol=1e-5)
