"""Deep features from small networks whose outputs are known."""

import sys

import numpy as np
import pytest
from sklearn.base import clone

import networks
from likeminds.features import DeepFeatures, inception_v3, read_image

RNG = np.random.default_rng(2)
PICTURES = RNG.integers(0, 256, (5, 8, 8, 3), dtype=np.uint8)
MEANS = (PICTURES / 255).mean(axis=(1, 2))
PLAIN = {"size": 8, "crop": 1.0, "mean": (0, 0, 0), "std": (1, 1, 1), "n_threads": 1}


def test_the_network_sees_the_pixels(tmp_path):
    features = DeepFeatures(networks.mean_colour(tmp_path / "a.onnx"), **PLAIN, batch_size=2)
    values = features.fit_transform(PICTURES)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, MEANS, atol=1e-6)
    assert list(features.get_feature_names_out()) == ["deep_0", "deep_1", "deep_2"]
    np.testing.assert_array_equal(clone(features).transform(PICTURES), values)


def test_mean_and_std_are_of_each_channel(tmp_path):
    model = networks.mean_colour(tmp_path / "a.onnx")
    options = PLAIN | {"mean": (0.1, 0.2, 0.3), "std": (1, 2, 4)}
    expected = (MEANS - [0.1, 0.2, 0.3]) / [1, 2, 4]
    np.testing.assert_allclose(
        DeepFeatures(model, **options).transform(PICTURES), expected, atol=1e-6
    )


def test_channels_may_be_last(tmp_path):
    model = networks.mean_colour_last(tmp_path / "a.onnx")
    np.testing.assert_allclose(DeepFeatures(model, **PLAIN).transform(PICTURES), MEANS, atol=1e-6)


def test_a_fixed_batch_is_filled_up(tmp_path):
    model = networks.mean_colour(tmp_path / "a.onnx", shape=(2, 3, 8, 8))
    np.testing.assert_allclose(DeepFeatures(model, **PLAIN).transform(PICTURES), MEANS, atol=1e-6)


def test_maps_are_averaged_and_outputs_chosen(tmp_path):
    model = networks.two_outputs(tmp_path / "a.onnx")
    for output, sign in (("maps", 1), ("negative", -1)):
        values = DeepFeatures(model, output=output, **PLAIN).transform(PICTURES)
        np.testing.assert_allclose(values, sign * MEANS, atol=1e-6)
    with pytest.raises(ValueError):
        DeepFeatures(model, **PLAIN).transform(PICTURES)
    with pytest.raises(ValueError):
        DeepFeatures(model, output="logits", **PLAIN).transform(PICTURES)


class TestInception:
    def test_pictures_are_prepared_as_it_was_trained(self, tmp_path):
        weights = RNG.standard_normal((3, 2048))
        model = networks.mean_colour(tmp_path / "a.onnx", ("n", 3, 299, 299), weights)
        picture = RNG.integers(0, 256, (400, 350, 3), dtype=np.uint8)
        values = inception_v3(model, n_threads=1).fit_transform([picture])
        seen = read_image(picture, 299, crop=0.875)
        assert seen.shape == (299, 299, 3)
        expected = (2 * seen.mean(axis=(0, 1)) / 255 - 1) @ weights
        np.testing.assert_allclose(values[0], expected, atol=1e-4)

    def test_the_shorter_side_becomes_342(self):
        picture = np.zeros((342, 400), np.uint8)
        picture[21:320, 50:349] = 255  # 299 x 299 in the middle
        assert np.all(read_image(picture, 299, crop=0.875) == 255)

    def test_a_file_with_its_classifier_is_refused(self, tmp_path):
        model = networks.mean_colour(tmp_path / "a.onnx", weights=np.ones((3, 1000)))
        message = "returns 1,000 values per picture instead of 2,048, .* without its classifier"
        with pytest.raises(ValueError, match=message):
            inception_v3(model).transform(PICTURES[:1])


def test_the_cache_knows_the_network_by_its_content(tmp_path):
    options = PLAIN | {"cache": tmp_path / "cache"}
    model = networks.mean_colour(tmp_path / "a.onnx")
    DeepFeatures(model, **options).transform(PICTURES)
    model.rename(tmp_path / "b.onnx")
    networks.mean_colour(model, weights=np.eye(3) * 2)
    doubled = DeepFeatures(model, **options).transform(PICTURES)
    np.testing.assert_allclose(doubled, 2 * MEANS, atol=1e-6)
    DeepFeatures(tmp_path / "b.onnx", **options).transform(PICTURES)
    assert len(list((tmp_path / "cache").iterdir())) == 2
    (tmp_path / "b.onnx.data").write_bytes(b"other weights")
    DeepFeatures(tmp_path / "b.onnx", **options).transform(PICTURES)
    assert len(list((tmp_path / "cache").iterdir())) == 3


class TestRefusals:
    def test_without_the_package_the_extra_is_named(self, tmp_path, monkeypatch):
        model = networks.mean_colour(tmp_path / "a.onnx")
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
        with pytest.raises(ImportError):
            DeepFeatures(model, **PLAIN).transform(PICTURES)

    def test_without_the_file_the_way_to_make_it_is_named(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            inception_v3(tmp_path / "v3.onnx").fit(PICTURES)

    def test_what_is_no_network(self, tmp_path):
        (tmp_path / "a.onnx").write_bytes(b"not a network")
        with pytest.raises(ValueError):
            DeepFeatures(tmp_path / "a.onnx", **PLAIN).transform(PICTURES)

    def test_networks_for_something_else(self, tmp_path):
        wide = networks.mean_colour(tmp_path / "a.onnx", ("n", 3, 16, 16))
        with pytest.raises(ValueError):
            DeepFeatures(wide, **PLAIN).transform(PICTURES)
        grey = networks.mean_colour(tmp_path / "b.onnx", ("n", 1, 8, 8))
        with pytest.raises(ValueError):
            DeepFeatures(grey, **PLAIN).transform(PICTURES)
        words = networks.word_vectors(tmp_path / "c.onnx", np.eye(3))
        with pytest.raises(ValueError):
            DeepFeatures(words, **PLAIN).transform(PICTURES)

    def test_not_a_number_is_named(self, tmp_path):
        model = networks.mean_colour(tmp_path / "a.onnx", weights=np.full((3, 2), np.nan))
        with pytest.raises(ValueError):
            DeepFeatures(model, **PLAIN).transform(PICTURES)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"crop": 0}, "crop.* must be a float in the range"),
            ({"mean": (0, 0)}, "mean must have three values"),
            ({"std": (1, 0, 1)}, "std must not contain zero"),
        ],
    )
    def test_impossible_parameters(self, tmp_path, options, message):
        model = networks.mean_colour(tmp_path / "a.onnx")
        with pytest.raises(ValueError, match=message):
            DeepFeatures(model, **(PLAIN | options)).fit(PICTURES)
