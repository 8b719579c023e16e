"""Components of pictures are shown by pictures: in maps, heat maps and cards."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.offsetbox import AnnotationBbox

from likeminds import Annotations, HierarchicalRanker, find_schools, make_schools, plots
from likeminds.plots.thumbnails import ThumbnailItems
from likeminds.schools.population import items_of

mpl.use("Agg")
N_ITEMS = 80
# Every item has a picture of its own grey.
PICTURES = {j: np.full((12, 10, 3), j, dtype=np.uint8) for j in range(N_ITEMS)}


def crowd_of(names):
    """Return a crowd of two schools whose features have these names."""
    said = make_schools(40, 30, N_ITEMS, 8, 2, contested=0.5, random_state=0).annotations
    return Annotations(
        said.users,
        said.items,
        said.labels,
        features=said.features,
        item_ids=said.item_ids,
        feature_names=names,
    )


@pytest.fixture(scope="module")
def shown():
    crowd = crowd_of([f"component_{j}" for j in range(8)])
    ranker = HierarchicalRanker(item_effects=False).fit(crowd)
    schools = find_schools(ranker, crowd)
    assert len(schools) == 2
    return ranker, schools, items_of(ranker, crowd), crowd


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


def greys(axes):
    """Return the pictures beside some axes: the items that they are of."""
    boxes = axes.findobj(AnnotationBbox)
    return [int(box.offsetbox.get_data().flat[0]) for box in boxes]


def test_ends_of_the_map(shown):
    _, schools, items, _ = shown
    axes = plots.people_map(schools, items=items, images=PICTURES)
    axes.figure.canvas.draw()
    axis = schools.axes[0]
    order = np.argsort(items.features @ axis.weights, kind="stable")
    told = greys(axes)
    assert set(items.ids[order[-3:]].tolist() + items.ids[order[:3]].tolist()) <= set(told)
    legend = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert legend[0] == f"school 1: {schools[1].size} people"
    assert not [text for text in axes.texts if "item" in text.get_text()]
    # What people at the high end add to their scores is highest for the items shown there.
    high = schools.coordinates[:, 0] > np.quantile(schools.coordinates[:, 0], 0.8)
    ends = [items.features[order[-3:]] @ shown[0].coef_[who].mean(axis=0) for who in (high, ~high)]
    assert ends[0].mean() > ends[1].mean()


def test_rows_of_the_heat_map_and_of_a_card(shown):
    ranker, schools, items, crowd = shown
    figure = plots.heatmap(ranker, schools, items, PICTURES)
    figure.canvas.draw()
    most = int(items.ids[items.features[:, 0].argmax()])
    least = int(items.ids[items.features[:, 0].argmin()])
    told = greys(figure.axes[0])
    assert most in told
    assert least in told
    assert {tick.get_text() for tick in figure.axes[0].get_yticklabels()} == {""}
    card = plots.user_card(ranker, 3, crowd, PICTURES)
    assert most in greys(card)


def test_features_with_names_are_told_in_words():
    crowd = crowd_of([*"abcdefg", "component_7"])
    ranker = HierarchicalRanker(item_effects=False).fit(crowd)
    items = items_of(ranker, crowd)
    pictured = ThumbnailItems.of(items, PICTURES)
    assert [pictured.shows(j) for j in range(8)] == [False] * 7 + [True]
    assert ThumbnailItems.of(items, None) is None
    # An item without a picture is passed over for the next one.
    few = {j: PICTURES[j] for j in range(10)}
    best = max(range(10), key=lambda j: items.features[j, 0])
    assert int(ThumbnailItems(items, few).ends_of(0)[0][0].flat[0]) == best
