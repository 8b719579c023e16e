"""Model files that were made to do harm: their checksums are right, and what they hold is not."""

import json
import tracemalloc

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from crowds import make_crowd
from likeminds import AttributeModel, ModelFileError, ThreeLevelRanker, load, read_card, save
from likeminds.storage import safetensors
from likeminds.storage.model_tree import first_not_finite
from likeminds.storage.safetensors import LONGEST_HEADER, write_arrays

pytestmark = pytest.mark.filterwarnings("ignore:.*one class only:UserWarning")


def refused(keyword):
    """Expect a model file to be refused, for a reason with this keyword."""
    return pytest.raises(ModelFileError, match=keyword)


@pytest.fixture(scope="module")
def ranker():
    return ThreeLevelRanker(tol=1e-2).fit(make_crowd(np.random.default_rng(0)))


@pytest.fixture
def path(tmp_path, ranker):
    return save(ranker, tmp_path / "crowd.likeminds")


@pytest.fixture(params=["small", "large"])
def size(request, monkeypatch):
    if request.param == "large":
        monkeypatch.setattr(safetensors, "READ_AT_ONCE", 0)
    return request.param


def rewrite(path, change):
    """Let somebody change arrays, card and tree, and write the file with new checksums."""
    arrays = {name: array.copy() for name, array in load_file(path).items()}
    with safe_open(path, framework="numpy") as file:
        texts = {name: file.metadata()[name] for name in ("likeminds", "contents")}
    card, tree = (json.loads(text) for text in texts.values())
    told = change(arrays, card, tree) or {}
    texts = {"likeminds": json.dumps(card), "contents": json.dumps(tree)} | told
    write_arrays(path, arrays, texts)


# Numbers.


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_arrays_with_nan_are_refused(path, ranker, size, value):
    rewrite(path, lambda arrays, card, tree: arrays["coef_"].__setitem__((3, 1), value))
    told = "cannot be used, because coef_.*NaN or infinite numbers. Fit the model again"
    with refused(told):
        load(path, verify=True)
    if size == "small":
        with refused(told):
            load(path)
        return
    again = load(path)
    np.testing.assert_array_equal(again.consensus_, ranker.consensus_)
    for _ in range(2):
        with refused(told):
            again.coef_  # noqa: B018


def test_nan_is_refused_wherever_it_lies(path, size):
    def hide(arrays, card, tree):
        # In an array that is named as if it were the outcome of a search.
        arrays["cv_results_/scores"] = np.full_like(arrays.pop("coef_"), np.nan)
        tree["model"]["fitted"]["coef_"] = {"array": "cv_results_/scores"}

    rewrite(path, hide)
    with refused("coef_.*NaN"):
        load(path).coef_  # noqa: B018


@pytest.mark.parametrize("node", ['{"float": "nan"}', "1e999", "NaN", "[1, {}]", '["x", 1e999]'])
def test_single_numbers_are_refused_too(path, size, node):
    def change(arrays, card, tree):
        tree["model"]["fitted"]["objective_"] = "here"
        return {"contents": json.dumps(tree).replace('"here"', node)}

    rewrite(path, change)
    with pytest.raises(ModelFileError):
        load(path).objective_  # noqa: B018


@pytest.mark.slow
def test_nan_in_one_of_several_attributes_is_refused_when_it_is_read(tmp_path, size):
    crowd = make_crowd(np.random.default_rng(0))
    model = AttributeModel(ThreeLevelRanker(tol=1e-2)).fit({"open": crowd, "pointy": crowd})
    path = save(model, tmp_path / "m")
    (name,) = (name for name in load_file(path) if name.endswith("pointy/coef_"))
    rewrite(path, lambda arrays, card, tree: arrays[name].fill(np.nan))
    if size == "small":
        with refused("rankers_.*NaN"):
            load(path)
        return
    again = load(path)
    assert np.isfinite(again.rankers_["open"].coef_).all()
    with refused("coef_ has NaN"):
        again.rankers_["pointy"].coef_  # noqa: B018


def test_what_is_not_finite_is_not_saved(path, ranker):
    before = path.read_bytes()
    broken = load(path)
    broken.coef_ = np.full_like(broken.coef_, np.nan)
    with pytest.raises(ValueError, match=r"coef_ of this ThreeLevelRanker has .* nothing was"):
        save(broken, path)
    assert path.read_bytes() == before


def test_first_not_finite_by_its_definition():
    arrays = {"good": np.ones((3, 2)), "bad": np.array([1.0, np.nan]), "ids": np.arange(3)}
    arrays |= {"none": np.empty((0, 2)), "one": np.array(np.inf)}
    arrays["late"] = np.append(np.zeros(5_000_000), np.nan)  # in the third piece
    find = {
        name: first_not_finite({"part_": {"array": name}}, arrays.__getitem__, nested=True)
        for name in arrays
    }
    assert {name for name, found in find.items() if found} == {"bad", "one", "late"}
    inside = {"rankers_": {"dict": {"open": {"model": {"fitted": {"c_": {"array": "bad"}}}}}}}
    assert first_not_finite(inside, arrays.__getitem__, nested=True) == "rankers_"
    assert first_not_finite(inside, arrays.__getitem__, nested=False) is None
    for meant in ("cv_results_", "best_params_"):
        assert first_not_finite({meant: {"float": "inf"}}, arrays.__getitem__, nested=True) is None


# Headers.


@pytest.mark.parametrize("reader", [load, read_card])
def test_long_headers_are_refused_unread(tmp_path, reader):
    path = tmp_path / "m"
    length = 8 * LONGEST_HEADER
    with path.open("wb") as file:
        file.write(length.to_bytes(8, "little"))
        file.truncate(8 + length)
    tracemalloc.start()
    try:
        with refused("header"):
            reader(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_headers_too_long_to_be_read_are_not_written(path, ranker, monkeypatch):
    before = path.read_bytes()
    monkeypatch.setattr(safetensors, "LONGEST_HEADER", 1000)
    with pytest.raises(ValueError, match="The names of the features and attributes take"):
        save(ranker, path)
    assert path.read_bytes() == before


def test_the_card_of_very_many_features_has_no_units(tmp_path, ranker, monkeypatch):
    monkeypatch.setattr("likeminds.storage.models._LISTED", 3)
    card = read_card(save(ranker, tmp_path / "m"))
    assert len(card["features"]) > 3
    assert card["preprocessing"]["scale"] is None
    assert load(tmp_path / "m").scale_.shape == ranker.scale_.shape


def deep(levels):
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("levels", [101, 600, 100_000])
def test_deep_trees_are_refused(path, tmp_path, levels):
    content = deep(levels)
    (tmp_path / "header").write_bytes(len(content).to_bytes(8, "little") + content.encode())
    rewrite(path, lambda arrays, card, tree: {"likeminds": content})
    for file in (path, tmp_path / "header"):
        for reader in (load, read_card):
            with refused("nested"):
                reader(file)


@pytest.mark.parametrize("levels", [101, 600, 100_000])
def test_deep_trees_and_ids_are_refused(path, size, levels):
    def change(arrays, card, tree):
        tree["model"]["fitted"]["users_"] = "here"
        return {"contents": json.dumps(tree).replace('"here"', deep(levels))}

    rewrite(path, change)
    with refused("nested"):
        load(path)


def test_deep_ids_are_refused(path, size):
    ids = np.frombuffer(deep(100_000).encode(), dtype=np.uint8)
    rewrite(path, lambda arrays, card, tree: arrays.__setitem__("users_", ids))
    with refused("nested"):
        load(path).users_  # noqa: B018


@pytest.mark.parametrize(
    "node",
    [
        *({}, {"array": "none"}, {"array": 3}, {"array": "coef_", "as": "O"}, {"ids": "coef_"}),
        *({"data": {}}, {"data": {"class": "os.system", "fields": {}}}, {"model": {}}),
        *({"model": {"class": "object", "parameters": {}, "fitted": {}}}, {"tuple": 3}, {"x": 1}),
    ],
    ids=str,
)
def test_nodes_that_make_no_sense_are_refused_when_they_are_read(path, size, node):
    def change(arrays, card, tree):
        tree["model"]["fitted"]["coef_"] = node

    rewrite(path, change)
    with refused("not a complete"):
        load(path).coef_  # noqa: B018


@pytest.mark.parametrize("name", ["fit", "__class__", "_read_from", "decision_function"])
def test_files_cannot_put_something_else_in_the_place_of_a_method(path, name):
    def change(arrays, card, tree):
        tree["model"]["fitted"][name] = "mine"

    rewrite(path, change)
    with refused(name):
        load(path)


def test_shapes_beyond_all_bounds_are_refused(tmp_path):
    entry = {"dtype": "F64", "shape": [0, 1 << 70], "data_offsets": [0, 0]}
    header = json.dumps({"__metadata__": {"likeminds": "{}"}, "a": entry}).encode()
    path = tmp_path / "m"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with refused("shape"):
        load(path)
