"""Pictures from files and arrays of every usual kind, and what is refused."""

import sys

import numpy as np
import pytest
from PIL import Image

from likeminds.features import ColourHistogram, list_images, read_image
from likeminds.features.images import as_images

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (6, 8, 3), dtype=np.uint8)


def saved(path, array, mode=None, **options):
    Image.fromarray(array).convert(mode or "RGB").save(path, **options)
    return path


class TestReading:
    def test_png_comes_back_as_it_was(self, tmp_path):
        np.testing.assert_array_equal(read_image(saved(tmp_path / "a.png", PIXELS)), PIXELS)

    def test_grey_palette_and_sixteen_bits(self, tmp_path):
        grey = PIXELS[:, :, 0]
        saved(tmp_path / "grey.png", grey, "L")
        saved(tmp_path / "palette.png", grey, "P")
        Image.fromarray(grey.astype(np.uint16) * 257).save(tmp_path / "deep.png")
        expected = np.repeat(grey[:, :, None], 3, axis=2)
        for name in ("grey", "palette", "deep"):
            np.testing.assert_array_equal(read_image(tmp_path / f"{name}.png"), expected)
        np.testing.assert_array_equal(read_image(grey), expected)
        np.testing.assert_array_equal(read_image(grey[:, :, None]), expected)

    def test_transparency_becomes_white_in_files_and_arrays(self, tmp_path):
        clear = np.dstack([PIXELS, np.zeros((6, 8), np.uint8)])
        clear[0, 0, 3] = 255
        saved(tmp_path / "a.png", clear, "RGBA")
        for picture in (tmp_path / "a.png", clear):
            pixels = read_image(picture)
            np.testing.assert_array_equal(pixels[0, 0], PIXELS[0, 0])
            assert np.all(pixels[1:] == 255)

    def test_camera_orientation_is_undone(self, tmp_path):
        exif = Image.Exif()
        exif[0x0112] = 6  # the camera was turned by a quarter
        saved(tmp_path / "a.png", PIXELS, exif=exif)
        np.testing.assert_array_equal(read_image(tmp_path / "a.png"), np.rot90(PIXELS, -1))

    def test_floats_are_rounded_to_bytes(self):
        np.testing.assert_array_equal(read_image(PIXELS / 255), PIXELS)

    def test_resizing_keeps_the_shape_and_cuts_the_middle(self):
        wide = np.zeros((10, 30, 3), np.uint8)
        wide[:, 10:20] = 200
        np.testing.assert_array_equal(read_image(wide, 10), np.full((10, 10, 3), 200))
        assert np.all(read_image(wide, 5)[:, 1:-1] == 200)
        assert read_image(wide, 7, crop=0.5).shape == (7, 7, 3)

    def test_crop_leaves_out_the_border(self):
        framed = np.zeros((16, 16), np.uint8)
        framed[4:12, 4:12] = 255
        np.testing.assert_array_equal(read_image(framed, 8, crop=0.5), np.full((8, 8, 3), 255))


class TestRefusals:
    def test_damaged_files_are_named(self, tmp_path):
        (tmp_path / "text.jpg").write_text("not a picture")
        whole = saved(tmp_path / "whole.png", RNG.integers(0, 256, (64, 64, 3), np.uint8))
        (tmp_path / "cut.png").write_bytes(whole.read_bytes()[:2000])
        (tmp_path / "empty.png").touch()
        for name in ("text.jpg", "cut.png", "empty.png"):
            with pytest.raises(ValueError, match=f"{name} cannot be read as a picture"):
                ColourHistogram().transform([tmp_path / name])

    @pytest.mark.parametrize(
        ("images", "error", "message"),
        [
            ("a.png", TypeError, r"Pass a list of pictures, not one path \(a.png\)"),
            (["nowhere.png"], FileNotFoundError, "There is no picture nowhere.png"),
            ([], ValueError, "the list is empty"),
            (PIXELS[:, :, 0], ValueError, r"but this one has \(6, 8\)"),
            ([PIXELS, PIXELS[:, :, :2]], ValueError, r"Picture 1 .* shape \(6, 8, 2\)"),
            ([PIXELS.astype(int)], ValueError, r"int64 from \d to 2\d\d"),
            ([PIXELS / 100], ValueError, r"float64 from 0.\d+ to 2.\d+"),
            ([np.full((2, 2), np.nan)], ValueError, "from nan to nan"),
        ],
    )
    def test_what_is_no_list_of_pictures(self, images, error, message):
        with pytest.raises(error, match=message):
            as_images(images)

    def test_one_picture_is_checked_as_well(self):
        with pytest.raises(ValueError, match="floats from 0 to 1"):
            read_image(PIXELS * 1.0)
        with pytest.raises(FileNotFoundError, match="There is no picture"):
            read_image("nowhere.png")

    def test_without_pillow_the_extra_is_named(self, tmp_path, monkeypatch):
        path = saved(tmp_path / "a.png", PIXELS)
        monkeypatch.setitem(sys.modules, "PIL.Image", None)
        with pytest.raises(ImportError, match=r"needs Pillow: install likeminds\[images\]"):
            read_image(path)
        assert read_image(PIXELS[:, :6], 6).shape == (6, 6, 3)  # what needs none still works


def test_folders_are_listed_with_their_folders(tmp_path):
    (tmp_path / "b").mkdir()
    for name in ("b/1.JPG", "a.png", ".hidden.png", "notes.txt"):
        (tmp_path / name).touch()
    assert list_images(tmp_path) == [tmp_path / "a.png", tmp_path / "b" / "1.JPG"]
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        list_images(tmp_path / "c")
    (tmp_path / "c").mkdir()
    with pytest.raises(FileNotFoundError, match="There is no picture in"):
        list_images(tmp_path / "c")
