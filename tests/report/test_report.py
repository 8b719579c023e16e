"""The report: whole, safe, self-contained, and right in its first paragraph."""

import re
from html.parser import HTMLParser

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot

from likeminds import (
    Annotations,
    AttributeModel,
    HierarchicalRanker,
    ThreeLevelRanker,
    ThreeLevelRankerCV,
    find_schools,
    leaderboard,
    make_schools,
    split_within_users,
    write_report,
)
from likeminds.rankers.baselines import JFL

pytestmark = pytest.mark.seconds

mpl.use("Agg")

_VOID = {"source", "br", "img", "meta"}


class Outline(HTMLParser):
    """Checks that elements close as they open, and collects what matters."""

    def __init__(self, content):
        super().__init__()
        self.open, self.headings, self.alts, self.links, self.said = [], [], [], [], []
        self.feed(content)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag not in _VOID:
            self.open.append(tag)
        values = dict(attrs)
        if tag == "img":
            self.alts.append(values["alt"])
            assert values["src"].startswith("data:image/png;base64,")
        self.links += [values[key] for key in ("href", "src") if key in values]
        assert tag not in {"script", "link", "iframe"}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.said.append(data)
        if self.open and re.fullmatch(r"h\d", self.open[-1]):
            self.headings.append((self.open[-1], data))


@pytest.mark.slow
def test_names_that_look_like_formulas_are_drawn_as_they_are(crowd, tmp_path):
    names = [r"$\frac{$", "$5 to $10", "$", "a_b^c$$", "{", r"\$"]
    said = Annotations(
        users=[f"$\\frac{{${user}" for user in crowd.users],
        items=[f"${item}$\\sqrt{{$" for item in crowd.items],
        labels=crowd.labels,
        features=crowd.X,
        feature_names=names,
    )
    model = HierarchicalRanker().fit(said)
    page = write_report(model, tmp_path / "a.html", said, diagnostics=False)
    outline = Outline(page.read_text())
    assert len(outline.alts) >= 2
    assert any(names[0] in piece for piece in outline.said)


@pytest.fixture(scope="module")
def crowd():
    return make_schools(50, 40, 60, 6, 2, contested=0.5, random_state=0).annotations


@pytest.fixture(scope="module")
def ranker(crowd):
    return ThreeLevelRanker(n_groups=1).fit(crowd)


def outline(path):
    content = path.read_text()
    assert not re.search(r"(src|href)=\"https?:", content)
    return Outline(content)


def test_a_report_about_one_ranker(tmp_path, crowd, ranker):
    path = write_report(ranker, tmp_path / "page.html", crowd, title="Shoes & <boots>")
    found = outline(path)
    finding = "50 people form two schools of thought on what they rate high"
    assert found.headings[0] == ("h1", finding)
    assert '<p class="kicker">Shoes &amp; &lt;boots&gt;</p>' in path.read_text()
    assert path.read_text().count("screen and (prefers-color-scheme: dark)") >= 3
    assert "<boots>" not in path.read_text()
    assert re.search("(Different|Random|Constant): [0-9]+ p", path.read_text())
    assert len(re.findall("<th[^>]*>verdict<", path.read_text())) == 2  # of counts, and of all
    # The map, the heat map and the AUCs are drawn for phones, too, light and dark.
    assert path.read_text().count("and (max-width: 40rem)") >= 6
    sections = [words for level, words in found.headings if level == "h2"]
    assert sections == [
        "Schools of thought",
        "Items that every school rates high",
        "Most divisive items",
        "Shares of the levels",
        "Accuracy",
        "Annotators",
        "Details of the fit",
    ]
    assert all(found.alts)
    lead = re.search(r'<p class="lead">(.*?)</p>', path.read_text()).group(1)
    assert lead.startswith("50 people gave 2,000 labels about 60 distinct items.")
    assert "2 schools of thought (50%, 50% of the people)" in lead
    assert "rankings per user are better" in lead
    assert pyplot.get_fignums() == []


def test_names_and_words_are_escaped(tmp_path):
    plain = make_schools(30, 30, 40, 4, 2, contested=1.0, random_state=0).annotations
    names = ["<i>soft</i>", 'a"b', "c&d", "e"]
    crowd = Annotations(
        users=[f"<b>{user}</b>" for user in plain.users],
        items=plain.items,
        labels=plain.labels,
        features=plain.features,
        feature_names=names,
        features_per="item",
    )
    ranker = ThreeLevelRanker(n_groups=1).fit(crowd)
    path = write_report(ranker, tmp_path / "page.html", crowd)
    content = path.read_text()
    Outline(content)
    assert "<b>" not in content
    assert "<i>" not in content
    assert "&lt;i&gt;soft" in content


@pytest.mark.slow
def test_several_attributes_and_thumbnails(tmp_path, crowd):
    both = Annotations(
        users=np.tile(crowd.users, 2),
        items=np.tile(crowd.items, 2),
        labels=np.concatenate([crowd.labels, ~crowd.labels]),
        features=crowd.features,
        attributes=np.repeat(["open", "shut"], len(crowd)),
        features_per="item",
    )
    model = AttributeModel(ThreeLevelRanker(n_groups=1)).fit(both)
    pictures = np.zeros((60, 20, 20, 3), dtype=np.uint8)
    path = write_report(model, tmp_path / "page.html", both, images=pictures, diagnostics=False)
    found = outline(path)
    assert ("h2", "open") in found.headings
    assert ("h2", "shut") in found.headings
    assert {"#part-1", "#part-2"} <= set(found.links)
    assert sum(alt in {str(item) for item in crowd.item_ids} for alt in found.alts) >= 20
    with pytest.raises(KeyError):
        write_report({"wide": model.rankers_["open"]}, path, both)
    with pytest.raises(TypeError):
        write_report("model.likeminds", path)


def test_a_model_alone_and_one_without_groups(tmp_path, crowd, ranker):
    alone = outline(write_report(ranker, tmp_path / "alone.html"))
    assert [words for level, words in alone.headings if level == "h2"] == [
        "Schools of thought",
        "Shares of the levels",
        "Details of the fit",
    ]
    flat = outline(write_report(JFL().fit(crowd), tmp_path / "flat.html", crowd, diagnostics=False))
    assert any("no group level" in words for words in flat.said)


@pytest.mark.slow
def test_held_out_labels_and_a_tuned_ranker(tmp_path, crowd):
    train, test = split_within_users(crowd, 0.4, 0)
    grid = {"alpha_group": [0.3, 1.0], "n_groups": [1, 2]}
    tuned = ThreeLevelRankerCV(grid, n_folds=2).fit(train)
    found = outline(write_report(tuned, tmp_path / "page.html", train, held_out=test))
    assert any(words.startswith("Labels that the model was not fitted to.") for words in found.said)
    assert "Cross-validated scores over the parameters searched" in found.alts
    assert any(words.startswith("alpha_group (chosen)") for words in found.said)


@pytest.mark.slow
def test_a_hierarchical_ranker_brings_its_own_annotations(tmp_path, crowd):
    ranker = HierarchicalRanker(n_groups=1).fit(crowd)
    found = outline(write_report(ranker, tmp_path / "page.html", diagnostics=False))
    assert any("2,000 labels" in words for words in found.said)


@pytest.mark.parametrize("n_users", [1, 3])
@pytest.mark.slow
def test_very_small_crowds(tmp_path, n_users):
    few = make_schools(n_users, 20, 40, 4, 1, random_state=0).annotations
    found = outline(write_report(HierarchicalRanker().fit(few), tmp_path / "page.html", few))
    assert any(words.startswith(f"{n_users} p") for words in found.said)


@pytest.mark.slow
def test_equal_reports_are_equal_files(tmp_path, crowd, ranker):
    first, second = (
        write_report(ranker, tmp_path / name, crowd, diagnostics=False).read_bytes()
        for name in ("a.html", "b.html")
    )
    assert first == second


def test_written_whole_or_not_at_all(tmp_path, crowd, ranker, monkeypatch):
    target = tmp_path / "page.html"
    target.write_text("as it was")

    def fail(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("likeminds.report.sections.plots.people_map", fail)
    with pytest.raises(KeyboardInterrupt):
        write_report(ranker, target, crowd, diagnostics=False)
    assert target.read_text() == "as it was"
    assert list(tmp_path.iterdir()) == [target]


def test_places_that_cannot_be_written_to(tmp_path, ranker):
    with pytest.raises(IsADirectoryError):
        write_report(ranker, tmp_path)
    with pytest.raises(FileNotFoundError):
        write_report(ranker, tmp_path / "none" / "page.html")


@pytest.mark.usefixtures("no_matplotlib")
def test_without_matplotlib_nothing_is_begun(tmp_path, ranker):
    with pytest.raises(ImportError):
        write_report(ranker, tmp_path / "page.html")


def test_names_of_attributes_are_escaped(tmp_path, ranker):
    content = write_report({'"': ranker, "<": ranker}, tmp_path / "page.html").read_text()
    assert "<td>&lt;</td>" in content
    assert '<td class="number">50</td>' in content
    assert "<h1>Report on &#34;, &lt;</h1>" in content
    assert '<a href="#part-1">&#34;</a>' in content
    Outline(content)


@pytest.mark.slow
def test_numbers_are_those_of_the_data_and_nothing_is_claimed_beyond_them(tmp_path):
    plain = make_schools(40, 12, 90, 4, 1, random_state=1).annotations
    few = plain[plain.item_codes < 60]  # the table still has all items
    ranker = HierarchicalRanker(n_groups=0, item_effects=False).fit(few)
    content = write_report(ranker, tmp_path / "page.html", few, diagnostics=False).read_text()
    n_items = len(np.unique(few.item_codes))
    assert f"{len(few):,} labels about {n_items} distinct items" in content
    assert "40 people rank alike" in content
    assert 'alt="Share of people who say yes to each item, in order"' in content  # a picture first
    for claim in ("divisive", "below", "-0.00", "all agree", "very stable"):
        assert claim not in re.sub("<style>.*?</style>", "", content, flags=re.DOTALL)


@pytest.mark.seconds
def test_people_who_differ_only_in_threshold(tmp_path):
    rng = np.random.default_rng(0)
    users, X = np.repeat(np.arange(30), 30), np.tile(rng.normal(size=(30, 2)), (30, 1))
    said = X[:, 0] + rng.logistic(size=900) > np.linspace(-2, 2, 30)[users]
    crowd = Annotations(users, np.tile(np.arange(30), 30), said, X, features_per="row")
    ranker = HierarchicalRanker(n_groups=0, item_effects=False).fit(crowd)
    content = write_report(ranker, tmp_path / "page.html", crowd, diagnostics=False).read_text()
    assert "as far as these labels show, but differ in threshold" in content
    alike = "Their rankings do not differ as far as these labels show. Only their thresholds do ("
    assert alike in content


def test_comparisons_have_leaderboards_of_everyone_and_schools(tmp_path):
    rng = np.random.default_rng(0)
    worth, judge, a = np.linspace(-1, 1, 5), rng.integers(30, size=1200), rng.integers(5, size=1200)
    b = (a + rng.integers(1, 5, size=1200)) % 5
    ahead = (worth[a] - worth[b]) * np.where(judge % 2, 1, -1)
    first = rng.logistic(size=1200) < ahead
    names = np.array(["lark", "wren", "rook", "swan", "dove"])
    won, lost = names[np.where(first, a, b)], names[np.where(first, b, a)]
    model = HierarchicalRanker(n_item_factors=1).fit(Annotations.from_comparisons(judge, won, lost))
    page = write_report(model, tmp_path / "a.html", diagnostics=False)
    found = outline(page)
    assert ("h2", "Leaderboards") in found.headings
    assert "Scores of items with intervals, for everyone and each school" in found.alts
    schools = find_schools(model)
    board = leaderboard(model, schools.members(1).tolist(), n_next=3)
    told = " ".join(found.said)
    pairs = ", ".join(f"{a} or {b}" for a, b in board.ask_next)
    assert f"Most informative comparisons for school 1: {pairs}." in told
    assert "ranks, school 2" in found.said
    row = found.said.index(board.items[0], found.said.index("ranks, school 2"))
    assert found.said[row + 4] == "1"  # the first place of school 1 is certain
