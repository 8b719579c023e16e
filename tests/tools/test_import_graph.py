"""The picture of the imports: every import is in it, and points one way."""

from collections import Counter
from itertools import pairwise

from tools.import_graph import WIDTH, arrange, count_imports, layers

ROWS = [["top", "door"], ["middle", "aside"], ["low"], ["support"]]
IMPORTS = Counter(
    {("top", "low"): 3, ("middle", "low"): 2, ("top", "aside"): 1, ("middle", "support"): 7}
)


def test_streams_flow_together():
    places = arrange(ROWS, IMPORTS)
    (low,) = (place for place in places[2] if not place.lane)
    assert low.name == "low"
    assert sorted((source.name, source.lane) for source in low.above) == [
        ("low", True),
        ("middle", False),
    ]
    assert sum(source.flow("low", IMPORTS) for source in low.above) == 5
    # What everybody imports is counted, not drawn.
    assert not places[3][0].above


def test_folders_keep_their_order_and_nothing_overlaps():
    for names, row in zip(ROWS, arrange(ROWS, IMPORTS), strict=True):
        assert [place.name for place in row if not place.lane] == names
        for one, other in pairwise(row):
            assert one.x + one.width / 2 <= other.x - other.width / 2
        assert row[-1].x + row[-1].width / 2 <= WIDTH


def test_imports_of_the_package_point_down_or_to_the_right():
    places = [name for row in layers() for name in row]
    imports = count_imports()
    assert imports["rankers", "losses"] > 0
    assert all(places.index(one) < places.index(other) for one, other in imports)
