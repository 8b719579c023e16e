"""Shoes and SUN from folders that the tests make, and what a folder may lack."""

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet
from scipy.io import savemat

import networks
from image_folders import FEATURES, NAMES, SHOES, SUN, write_features, write_pictures, write_table
from likeminds import ThreeLevelRanker, load_shoes, load_sun, split_within_users
from likeminds.datasets.paper_images import ImageCrowd
from likeminds.features import GIST, ColourHistogram, Reduce, inception_v3


@pytest.fixture
def shoes(tmp_path):
    write_table(tmp_path, SHOES)
    write_features(tmp_path)
    return tmp_path


class TestShoes:
    @pytest.mark.slow
    def test_pictures_become_gist_and_colours(self, tmp_path):
        rows = write_table(tmp_path, ["open", "formal"])
        write_pictures(tmp_path)
        crowd = load_shoes(tmp_path, attributes=["open", "formal"])
        assert isinstance(crowd, ImageCrowd)
        assert crowd.reduce == 0.99
        assert crowd.annotations.features.shape[1] == 542
        opened = crowd.of_attribute("open")
        expected = [r for r in rows if r["attribute"] == "open" and r["person"] != "eva"]
        assert opened.items.tolist() == [row["image"] for row in expected]
        assert opened.users.tolist() == [row["person"] for row in expected]
        assert opened.labels.tolist() == [row["label"] == 1 for row in expected]
        paths = [tmp_path / "images" / row["image"] for row in expected]
        values = np.hstack([GIST().transform(paths), ColourHistogram("lab", 10).transform(paths)])
        np.testing.assert_array_equal(opened.X, values)
        assert opened.feature_names[512] == "lab_lightness_1"

    def test_a_second_time_reads_no_picture(self, tmp_path, monkeypatch):
        write_table(tmp_path, ["open"])
        write_pictures(tmp_path)
        first = load_shoes(tmp_path, attributes=["open"])
        assert len(list((tmp_path / ".features").iterdir())) == 2

        def refuse(*_, **__):
            raise AssertionError("a picture was read again")

        monkeypatch.setattr("likeminds.features.descriptors.read_image", refuse)
        monkeypatch.setattr("likeminds.features.descriptors.read_image", refuse)
        again = load_shoes(tmp_path, attributes=["open"])
        np.testing.assert_array_equal(again.annotations.features, first.annotations.features)
        with pytest.raises(AssertionError, match="read again"):
            load_shoes(tmp_path, attributes=["open"], cache=False)

    def test_a_folder_that_cannot_be_written_to_is_only_read(self, tmp_path, monkeypatch):
        write_table(tmp_path, ["open"])
        write_pictures(tmp_path)
        monkeypatch.setattr("os.access", lambda *_: False)
        # GIST takes a while, and is not the point here.
        monkeypatch.setattr(GIST, "transform", lambda _, X: np.zeros((len(X), 512)))
        with pytest.warns(UserWarning, match="cache="):
            load_shoes(tmp_path, attributes=["open"], reduce=None)
        assert not (tmp_path / ".features").exists()
        load_shoes(tmp_path, attributes=["open"], cache=tmp_path / "elsewhere")
        assert (tmp_path / "elsewhere").exists()

    def test_the_seven_attributes_and_people_with_enough_labels(self, shoes):
        crowd = load_shoes(shoes)
        assert crowd.attributes == SHOES
        for attribute in SHOES:
            assert crowd.of_attribute(attribute).label_counts().tolist() == [[12, 8], [8, 12]]
        assert load_shoes(shoes, min_labels=7).annotations.n_users == 3
        assert repr(crowd).startswith("ImageCrowd about brown, comfortable,")
        assert "99% of the variance" in repr(crowd)

    def test_names_as_in_the_paper(self, tmp_path):
        write_table(tmp_path, ["BR", "Formal "])
        write_features(tmp_path)
        assert load_shoes(tmp_path, attributes=["FM", "brown"]).attributes == ["brown", "formal"]
        assert load_shoes(tmp_path, attributes="BR").attributes == ["brown"]

    def test_components_are_those_of_the_training_pictures_of_the_attribute(self, shoes):
        crowd = load_shoes(shoes, reduce=0.8)
        train, test = crowd.split("ornate", test_size=0.3, random_state=4)
        whole = crowd.of_attribute("ornate")
        expected_train, expected_test = split_within_users(whole, 0.3, random_state=4)
        seen = whole.features[np.unique(expected_train.item_codes)]
        assert len(seen) < len(np.unique(whole.item_codes))
        by_hand = Reduce(0.8).fit(seen)
        np.testing.assert_allclose(train.X, by_hand.transform(expected_train.X))
        np.testing.assert_allclose(test.X, by_hand.transform(expected_test.X))
        assert train.n_features == by_hand.n_components_ < 6
        assert 0 <= ThreeLevelRanker().fit(train).score(test) <= 1
        before_the_split = Reduce(0.8).fit(whole.features[np.unique(whole.item_codes)])
        np.testing.assert_allclose(crowd.reduced("ornate").X, before_the_split.transform(whole.X))

    def test_without_reduction_the_features_stay(self, shoes):
        crowd = load_shoes(shoes, reduce=None)
        train, _ = crowd.split("open", random_state=0)
        assert train.n_features == 6
        np.testing.assert_array_equal(crowd.reduced("open").X, crowd.of_attribute("open").X)
        with pytest.raises(ValueError):
            load_shoes(shoes, reduce=99)


class TestSun:
    def test_pictures_go_through_the_network(self, tmp_path):
        write_table(tmp_path, ["modern"])
        write_pictures(tmp_path)
        weights = np.random.default_rng(0).standard_normal((3, 2048))
        networks.mean_colour(tmp_path / "inception_v3.onnx", ("n", 3, 299, 299), weights)
        crowd = load_sun(tmp_path, attributes=["modern"])
        assert crowd.reduce == 0.9
        rows = crowd.of_attribute("modern")
        paths = [tmp_path / "images" / name for name in rows.items[:3]]
        expected = inception_v3(tmp_path / "inception_v3.onnx").transform(paths)
        np.testing.assert_allclose(rows.X[:3], expected, atol=1e-5)
        assert crowd.reduced("modern").n_features <= 3  # three colours are all there is

    def test_the_five_attributes(self, tmp_path):
        write_table(tmp_path, ["Cluttered", "MO", "Opening_Area", "rustic", "soothing"])
        write_features(tmp_path)
        assert load_sun(tmp_path).attributes == SUN


class TestPrecomputed:
    @pytest.fixture
    def expected(self, shoes):
        return load_shoes(shoes).annotations.X

    def test_parquet(self, shoes, expected):
        for ending in ("npy", "txt"):
            (shoes / f"features.{ending}").unlink()
        columns = {f"f{k}": FEATURES[:, k] for k in range(6)}
        parquet.write_table(pa.table({"image": NAMES} | columns), shoes / "features.parquet")
        crowd = load_shoes(shoes)
        np.testing.assert_array_equal(crowd.annotations.X, expected)
        assert crowd.annotations.feature_names == ("f0", "f1", "f2", "f3", "f4", "f5")

    @pytest.mark.parametrize("cells", ["images", "im_names", None])
    def test_mat_with_two_matrices(self, shoes, expected, cells):
        (shoes / "features.npy").unlink()
        content = {"gist": FEATURES[:, 2:], "colour": FEATURES[:, :2], "fs": 3.0}
        if cells is not None:
            (shoes / "features.txt").unlink()
            content[cells] = np.array(NAMES, dtype=object)
        savemat(shoes / "features.mat", content)
        np.testing.assert_array_equal(load_shoes(shoes).annotations.X, expected)

    def test_numbers_find_names_with_zeros(self, shoes, expected):
        write_table(shoes, SHOES, name=int)
        np.testing.assert_array_equal(load_shoes(shoes).annotations.X, expected)

    def test_labels_of_other_kinds(self, tmp_path):
        rows = write_table(tmp_path, ["open"])
        write_features(tmp_path)
        before = load_shoes(tmp_path, attributes="open").annotations
        words = {0: "no", 1: "yes"}
        columns = {k: [row[k] for row in rows] for k in rows[0]}
        columns["label"] = [words[label] for label in columns["label"]]
        (tmp_path / "annotations.csv").unlink()
        parquet.write_table(pa.table(columns), tmp_path / "annotations.parquet")
        after = load_shoes(tmp_path, attributes="open", positive="yes").annotations
        np.testing.assert_array_equal(after.labels, before.labels)


class TestLacking:
    def test_everything_is_named_at_once(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            load_shoes(tmp_path / "none")
        with pytest.raises(FileNotFoundError) as told:
            load_sun(tmp_path)
        for part in (
            "annotations.csv",
            "images/",
            "features.npy",
            "inception_v3.onnx",
            "page on features",
        ):
            assert part in str(told.value)
        write_table(tmp_path, SUN)
        (tmp_path / "images").mkdir()
        with pytest.raises(FileNotFoundError):
            load_shoes(tmp_path)
        (tmp_path / "images").rmdir()
        write_pictures(tmp_path)
        with pytest.raises(FileNotFoundError):
            load_sun(tmp_path)

    def test_pictures_that_are_not_there(self, tmp_path):
        write_table(tmp_path, ["open"])
        write_pictures(tmp_path)
        for name in ("000", "001"):
            (tmp_path / "images" / f"{name}.png").unlink()
        with pytest.raises(FileNotFoundError):
            load_shoes(tmp_path, attributes=["open"])

    def test_names_with_two_meanings(self, tmp_path):
        write_table(tmp_path, ["open"], name=lambda image: image)
        write_pictures(tmp_path)
        (tmp_path / "images" / "more").mkdir()
        Image.new("RGB", (9, 9)).save(tmp_path / "images" / "more" / "003.jpg")
        with pytest.raises(ValueError):
            load_shoes(tmp_path, attributes=["open"])
        write_table(tmp_path, ["open"])  # with their endings they are clear
        assert "003.png" in load_shoes(tmp_path, attributes=["open"]).annotations.item_ids

    def test_another_folders_picture_is_not_taken(self, tmp_path):
        write_table(tmp_path, ["open"], name=lambda image: f"left/{image}.png")
        write_features(tmp_path, [f"right/{name}.png" for name in NAMES])
        with pytest.raises(FileNotFoundError):
            load_shoes(tmp_path, attributes=["open"])

    def test_attributes_that_do_not_exist(self, shoes):
        with pytest.raises(ValueError):
            load_shoes(shoes, attributes=["open", "sporty"])
        with pytest.raises(ValueError):
            load_sun(shoes)
        write_table(shoes, SHOES[:5])
        with pytest.raises(ValueError):
            load_shoes(shoes)

    def test_nobody_with_enough_labels(self, shoes):
        with pytest.raises(ValueError):
            load_shoes(shoes, min_labels=9)

    def test_tables_without_columns_rows_or_values(self, shoes):
        path = shoes / "annotations.csv"
        path.write_text("attribute,user,image\nopen,ann,001\n")
        with pytest.raises(ValueError):
            load_shoes(shoes)
        path.write_text("attribute,person,image,label\n")
        with pytest.raises(ValueError):
            load_shoes(shoes)
        path.write_text("attribute,person,image,label\nopen,ann,001,1\nopen,,002,1\n")
        with pytest.raises(ValueError):
            load_shoes(shoes)

    @pytest.mark.parametrize(
        ("names", "features", "message"),
        [
            (NAMES[:-1], FEATURES, r"one row for each of the 23 pictures listed; .*\(24, 6\)"),
            ([*NAMES[:-1], "000"], FEATURES, "more than once: 000"),
            (NAMES, np.where(FEATURES[3, 0] == FEATURES, np.nan, FEATURES), r"NaN .* row\(s\) 3"),
        ],
    )
    def test_matrices_that_do_not_fit(self, shoes, names, features, message):
        write_features(shoes, names, features)
        with pytest.raises(ValueError, match=message):
            load_shoes(shoes)

    def test_files_that_are_damaged_or_say_too_little(self, shoes):
        (shoes / "features.txt").unlink()
        with pytest.raises(FileNotFoundError):
            load_shoes(shoes)
        (shoes / "features.npy").write_bytes(b"damaged")
        with pytest.raises(ValueError):
            load_shoes(shoes)
        (shoes / "features.npy").rename(shoes / "features.mat")
        with pytest.raises(ValueError):
            load_shoes(shoes)
        header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
        (shoes / "features.mat").write_bytes(header + bytes(64))
        with pytest.raises(ValueError):
            load_shoes(shoes)
        (shoes / "features.csv").write_text("name,f\n000,1\n")
        with pytest.raises(ValueError):
            load_shoes(shoes)
        (shoes / "features.csv").write_text("image\n000\n")
        with pytest.raises(ValueError):
            load_shoes(shoes)
        (shoes / "features.csv").write_text("image,f\n000,1\n001,\n")
        with pytest.raises(ValueError):
            load_shoes(shoes)
