"""Pictures: they draw what they say, into the axes they are given."""

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.text import Text

from likeminds import (
    Annotations,
    HierarchicalRanker,
    RankerCV,
    ThreeLevelRanker,
    ThreeLevelRankerCV,
    diagnose,
    find_schools,
    leaderboard,
    make_schools,
    make_simulation,
    plots,
)
from likeminds.features.images import picture_of, thumbnail
from likeminds.paper import PersonalPath, cocluster_recovery
from likeminds.plots.figures import COLOURS, INK, PAPER, darken, new_axes, set_title
from likeminds.rankers.baselines import Popularity, RidgeToConsensus

pytestmark = pytest.mark.seconds

mpl.use("Agg")


@pytest.fixture(scope="module")
def simulation():
    return make_schools(60, 30, 80, 8, 2, contested=0.5, random_state=0)


@pytest.fixture(scope="module")
def ranker(simulation):
    return ThreeLevelRanker(n_groups=2).fit(simulation.annotations)


@pytest.fixture(scope="module")
def schools(simulation, ranker):
    return find_schools(ranker, simulation.annotations)


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_the_map_has_a_dot_for_everybody(schools):
    axes = plots.people_map(schools)
    axes.figure.canvas.draw()
    assert [len(dots.get_offsets()) for dots in axes.collections] == [30, 30]
    assert axes.get_title(loc="left").startswith("60 people form 2 schools")
    labels = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert labels[0].startswith(f"1. (30) {schools[1].name}"[:40])
    drawn = sum(axis.share >= 0.1 for axis in schools.axes)
    assert len(texts(axes)) == 2 * drawn  # what people at the ends of axes want
    colours = {tuple(dots.get_facecolor()[0]) for dots in axes.collections}
    assert len(colours) == 2


def test_the_map_of_one_direction_and_of_none(simulation):
    line = find_schools(ThreeLevelRanker(n_groups=0).fit(simulation.annotations))
    axes = plots.people_map(line, ax=pyplot.figure().add_subplot())
    assert "no difference between rankings" in axes.get_title(loc="left")
    assert not axes.collections
    assert texts(axes) == []


def test_the_map_of_one_direction_heaps_dots_up(simulation):
    found = find_schools(ThreeLevelRanker(n_groups=1).fit(simulation.annotations))
    line = replace(found, coordinates=found.coordinates[:, :1], axes=found.axes[:1])
    axes = plots.people_map(line)
    dots = np.concatenate([part.get_offsets() for part in axes.collections])
    assert len(dots) == 60
    assert np.ptp(dots[:, 1]) > 2
    assert len(np.unique(dots, axis=0)) == 60  # none hides another
    both = tuple(replace(axis, share=0.5) for axis in found.axes[:2])
    flat = replace(found, axes=both, labels=np.arange(60) % 2)
    assert axes.figure.get_figheight() < plots.people_map(flat).figure.get_figheight()


def _light(colour):
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    return np.array([0.2126, 0.7152, 0.0722]) @ linear


def test_dark_pictures_turn_greys_around_and_dots_stand_out(ranker, schools):
    axes = plots.people_map(schools)
    darken(axes.figure)
    assert to_hex(axes.figure.get_facecolor()) == PAPER
    assert to_hex(axes.title.get_color()) == to_hex(axes._left_title.get_color()) == INK
    several = new_axes().scatter(*np.zeros((2, len(COLOURS))), color=COLOURS, alpha=0.7)
    darken(several.figure)
    *colour, alpha = several.get_facecolor().T
    seen = alpha * colour + (1.0 - alpha) * np.array(to_rgb(PAPER))[:, None]
    contrast = (_light(seen) + 0.05) / (_light(np.array(to_rgb(PAPER))) + 0.05)
    assert contrast.min() > 3.0  # as pictures need it, by the usual guidelines
    figure = darken(plots.heatmap(ranker, schools))
    middle = figure.axes[0].images[0].get_cmap()(0.5)
    assert max(middle[:3]) < 0.2
    figure.canvas.draw()


def test_loners_are_ringed(simulation):
    ranker = ThreeLevelRanker(alpha_personal=0.05, n_groups=1).fit(simulation.annotations)
    found = find_schools(ranker)
    axes = plots.people_map(found, ax=pyplot.figure().add_subplot())
    assert len(axes.collections[-1].get_offsets()) == found.outlier.sum()
    assert axes.get_legend() is not None


def test_many_people_are_thinned_out(schools):
    from likeminds.plots.figures import evenly_spaced

    kept = evenly_spaced(100_000, 3_000)
    assert len(kept) == 3_000
    assert kept == sorted(set(kept))
    assert (kept[0], kept[-1]) == (0, 99_999)


def test_the_heat_map_is_ordered_by_school(ranker, schools):
    figure = plots.heatmap(ranker, schools)
    figure.canvas.draw()
    consensus, group = figure.axes[0].images[0], figure.axes[1].images[0]
    assert np.asarray(consensus.get_array()).shape == (8, 1)
    drawn = np.asarray(group.get_array())
    assert drawn.shape == (8, 60)
    ticks = figure.axes[0].get_yticklabels()
    assert min(tick.get_fontsize() for tick in ticks) * 110 / 72 >= 11  # pixels on the page
    names = [tick.get_text() for tick in ticks]
    strongest = max(schools[1].features, key=lambda name: abs(schools[1].features[name]))
    column = drawn[names.index(strongest)]
    assert np.sign(column[:30].mean()) == np.sign(schools[1].features[strongest])
    assert np.sign(column[30:].mean()) == -np.sign(schools[1].features[strongest])
    assert [tick.get_text() for tick in figure.axes[1].get_xticklabels()] == [
        "school 1",
        "school 2",
    ]


def test_a_person_s_card(simulation, ranker):
    figure = plots.user_card(ranker, 7, simulation.annotations)
    bars = figure.subfigs[0].axes[0]
    names = [tick.get_text() for tick in bars.get_yticklabels()]
    own = dict(zip(names, [bar.get_width() for bar in bars.containers[0]], strict=True))
    spread = simulation.annotations.features.std(axis=0)
    for j in range(8):
        assert own[f"x{j}"] == pytest.approx(ranker.coef_[7, j] * spread[j])
    assert figure.get_suptitle().startswith("7: ")
    seen = simulation.annotations.of_user(7).items
    best = np.argsort(-simulation.annotations.features @ ranker.coef_[7])[:5]
    title = figure.subfigs[1].axes[0].get_title(loc="left")
    assert not np.isin(best, seen).all()
    assert title.endswith("would rate highest")
    assert title.startswith("7 rates high or") == np.isin(best, seen).any()
    alone = plots.user_card(ranker, 7)
    assert len(alone.axes) == 1
    with pytest.raises(KeyError):
        plots.user_card(ranker, "nobody")


def test_a_card_with_pictures(simulation, ranker):
    pictures = np.zeros((80, 40, 30, 3), dtype=np.uint8)
    figure = plots.user_card(ranker, 7, simulation.annotations, images=pictures)
    shown = [axes for axes in figure.subfigs[1].axes if axes.images]
    assert len(shown) == 10
    best = int(np.argmax(simulation.annotations.features @ ranker.coef_[7]))
    assert shown[0].get_xlabel() == str(best)


def test_pictures_of_items():
    images = np.arange(3 * 4 * 4).reshape(3, 4, 4).astype(np.uint8)
    assert picture_of(None, "a", 0) is None
    assert picture_of({"a": images[1]}, "a", 0) is not None
    assert picture_of({"a": images[1]}, "b", 1) is None
    assert (picture_of(images, "a", 2) == images[2]).all()
    with pytest.raises(ValueError, match="3 pictures, but item 'a' is in row 3"):
        picture_of(images, "a", 3)


@pytest.mark.parametrize("shape", [(300, 200), (5, 400), (96, 96, 3), (1, 1)])
def test_thumbnails_are_small_and_keep_the_mean(shape):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 255, shape).astype(np.uint8)
    small = thumbnail(pixels, 96)
    assert max(small.shape[:2]) <= 96
    assert small.shape[2] == 3
    if min(shape[:2]) > 50:
        assert small.mean() == pytest.approx(pixels.mean(), abs=1.5)


def test_accuracy_by_person(simulation, ranker):
    found = diagnose(ranker, simulation.annotations)
    axes = plots.auc_by_user(found)
    drawn = np.concatenate([d.get_offsets()[:, 1] for d in axes.collections[1:]])
    np.testing.assert_allclose(np.sort(drawn), np.sort(found.own_auc))
    assert f"held-out labels: {found.own_auc.mean():.2f}" in axes.get_title(loc="left")


def test_convergence(ranker):
    axes = plots.convergence(ranker)
    assert len(axes.lines[0].get_ydata()) == len(ranker.objective_trace_)
    both = plots.convergence({"a": [3.0, 2.0, 1.0], "b": [3.0, 1.5]})
    assert both.get_legend() is not None
    np.testing.assert_allclose(both.lines[0].get_ydata()[:2], [2.0, 1.0])
    with pytest.raises(TypeError):
        plots.convergence(Popularity())


def test_cv_surface(simulation):
    grid = {"alpha_group": [0.3, 1.0], "n_groups": [0, 1, 2], "group_shrinkage": [0.0, 0.1]}
    tuned = ThreeLevelRankerCV(grid, n_folds=2, halving=False).fit(simulation.annotations)
    axes = plots.cv_surface(tuned, "alpha_group", "n_groups")
    surface = np.asarray(axes.images[0].get_array())
    assert surface.shape == (3, 2)
    assert surface.max() == 0
    results = tuned.cv_results_
    best = results["mean_test_score"].max()
    for candidate, score in zip(results["params"], results["mean_test_score"], strict=True):
        row = [0, 1, 2].index(candidate["n_groups"])
        column = [0.3, 1.0].index(candidate["alpha_group"])
        assert surface[row, column] >= 100 * (score - best) - 1e-9
    assert texts(axes).count("chosen") == 1
    assert plots.cv_surface(tuned).images  # finds two parameters by itself


def test_cv_line(simulation):
    search = RankerCV(RidgeToConsensus(), {"alpha": [0.1, 1.0, 10.0]}, n_folds=3, halving=False)
    axes = plots.cv_surface(search.fit(simulation.annotations))
    assert axes.lines[0].get_ydata().max() == 0
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.1", "1", "10"]


def test_reliability():
    rng = np.random.default_rng(0)
    chance = rng.uniform(size=20_000)
    labels = rng.random(20_000) < chance
    axes = plots.reliability(labels, chance, n_bins=5)
    x, y = axes.lines[1].get_data()
    np.testing.assert_allclose(x, y, atol=0.03)
    assert len(x) == 5


def test_learning_curves():
    axes = plots.learning_curves(
        [5, 10], {"a": [[0.6, 0.7], [0.8, 0.9]], "b": [0.5, 0.6]}, title="a is ahead"
    )
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [0.65, 0.85])
    assert len(axes.collections) == 1  # a band for the one with repeats
    assert axes.get_xlabel() == "labels per person"


def test_a_hierarchical_ranker_and_rows_of_features(simulation):
    plain = simulation.annotations
    rows = Annotations(plain.users, None, plain.labels, plain.X, features_per="row")
    ranker = HierarchicalRanker(n_groups=1).fit(rows)
    found = find_schools(ranker)
    assert plots.people_map(found).collections
    assert plots.heatmap(ranker, found).axes
    assert plots.user_card(ranker, 3).subfigs


@pytest.mark.usefixtures("no_matplotlib")
def test_without_matplotlib_the_extra_is_named(schools):
    with pytest.raises(ImportError):
        plots.people_map(schools)


def test_names_are_text_and_powers_of_ten_are_not():
    axes = new_axes()
    axes.set_yscale("log")
    axes.plot([1, 2], [1, 1000], label=r"$\frac{$")
    axes.set_xticks([1, 2], ["$", r"$a$\sqrt{$"])
    axes.legend()
    set_title(axes, "$x$ and $5")
    axes.figure.draw_without_rendering()
    drawn = [text for text in axes.figure.findobj(Text) if "$" in text.get_text()]
    plain = {text.get_text() for text in drawn if not text.get_parse_math()}
    assert plain == {r"$\frac{$", "$", r"$a$\sqrt{$", "$x$ and $5"}
    assert all(r"\mathdefault" in text.get_text() for text in drawn if text.get_parse_math())
    assert len(drawn) > len(plain)


def test_shares_of_items_are_drawn_in_order(schools):
    axes = plots.item_shares(schools)
    drawn = axes.collections[-1].get_offsets()[:, 1]
    soft = schools.soft_labels
    np.testing.assert_allclose(drawn, np.sort(100.0 * soft.share))
    assert f"{(soft.share > 0.5).sum()} of {len(soft.share)} items" in axes.get_title(loc="left")


def test_true_and_learned_weights_share_a_colour_scale():
    drawn = make_simulation(20, 50, 16, n_positive=5, random_state=0)
    figure = plots.cocluster_recovery(cocluster_recovery(drawn, 100 * drawn.coef))
    limits = [image.get_clim() for axes in figure.axes for image in axes.images]
    assert len(limits) == 4
    assert limits[0] == limits[1]
    assert limits[2] == limits[3]
    assert "people 1.00" in figure.get_suptitle()


def test_the_path_counts_true_and_false_personal_parts():
    lengths = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 1, 0]])
    path = PersonalPath(np.array([3.0, 2.0, 1.0]), np.arange(4), lengths, np.zeros(3))
    axes = plots.personal_path(path, [True, False, False, False])
    assert [list(line.get_ydata()) for line in axes.lines[:2]] == [[0, 1, 1], [0, 0, 2]]
    assert "1 users have a personal part, 1 of them rightly" in axes.get_title(loc="left")
    (line,) = plots.personal_path(path).lines
    assert list(line.get_ydata()) == [0, 1, 3]


def test_leaderboards_have_a_dot_and_an_interval_for_each_item_and_group():
    rng = np.random.default_rng(0)
    won = rng.integers(5, size=300)
    lost = (won + rng.integers(1, 5, size=300)) % 5
    votes = Annotations.from_comparisons(rng.integers(6, size=300), won, lost)
    ranker = HierarchicalRanker().fit(votes)
    boards = {"everyone": leaderboard(ranker), "judge 2": leaderboard(ranker, 2)}
    axes = plots.leaderboards(boards)
    lines = [c for c in axes.collections if isinstance(c, LineCollection)]
    dots = [c for c in axes.collections if isinstance(c, PathCollection)]
    for board, line, dot in zip(boards.values(), lines, dots, strict=True):
        order = [board.items.tolist().index(item) for item in boards["everyone"].items]
        np.testing.assert_allclose(dot.get_offsets()[:, 0], board.scores[order])
        ends = np.array(line.get_segments())[:, :, 0]
        np.testing.assert_allclose(ends, np.column_stack([board.low, board.high])[order])
    assert [t.get_text() for t in axes.get_yticklabels()] == boards["everyone"].items.astype(
        str
    ).tolist()
