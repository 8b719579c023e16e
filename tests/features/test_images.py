"""Pictures from files and arrays of every usual kind, and what is refused."""

import struct
import sys
import zlib

import numpy as np
import pytest
from PIL import Image, ImageOps

from likeminds.features import GIST, ColourHistogram, images, list_images, read_image
from likeminds.features.images import as_images, thumbnail, write_png

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

    @pytest.mark.parametrize("orientation", range(1, 9))
    def test_every_orientation_is_undone_as_pillow_does(self, tmp_path, orientation):
        exif = Image.Exif()
        exif[0x0112] = orientation
        path = saved(tmp_path / "a.png", PIXELS, exif=exif)
        with Image.open(path) as opened:
            expected = np.asarray(ImageOps.exif_transpose(opened))
        np.testing.assert_array_equal(read_image(path), expected)

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


class TestLargePictures:
    @pytest.fixture
    def small_limit(self, monkeypatch):
        monkeypatch.setattr(images, "MOST_PIXELS", 1000)

    def test_whole_blocks_are_averaged_as_the_picture_is_read(
        self, tmp_path, small_limit, monkeypatch
    ):
        monkeypatch.setattr(images, "_BAND", 300)  # so that there are several bands
        pixels = RNG.integers(0, 256, (61, 93, 3), dtype=np.uint8)
        blocks = pixels[:60].reshape(20, 3, 31, 3, 3).mean(axis=(1, 3))
        expected = np.floor(blocks + 0.5)
        for picture in (saved(tmp_path / "a.png", pixels), pixels, pixels / 255):
            np.testing.assert_array_equal(read_image(picture), expected)

    def test_up_to_the_limit_nothing_changes(self, tmp_path, small_limit):
        pixels = RNG.integers(0, 256, (25, 40, 3), dtype=np.uint8)
        np.testing.assert_array_equal(read_image(saved(tmp_path / "a.png", pixels)), pixels)

    def test_jpeg_is_never_unpacked_whole(self, tmp_path, small_limit):
        smooth = Image.linear_gradient("L").resize((640, 480)).convert("RGB")
        smooth.save(tmp_path / "a.jpg", quality=95)
        unpacked = []
        whole = images._pixels
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(images, "_pixels", lambda band: unpacked.append(band.size) or whole(band))
            pixels = read_image(tmp_path / "a.jpg")
        assert sum(width * height for width, height in unpacked) == 80 * 60
        assert pixels.shape[0] * pixels.shape[1] <= 1000
        grey = np.asarray(smooth.resize(pixels.shape[1::-1], Image.Resampling.BOX), dtype=float)
        assert np.abs(grey - pixels).max() < 6

    def test_a_turned_one_is_scaled_and_upright(self, tmp_path, small_limit):
        exif = Image.Exif()
        exif[0x0112] = 6
        saved(tmp_path / "a.png", np.zeros((50, 80, 3), np.uint8), exif=exif)
        assert read_image(tmp_path / "a.png").shape == (40, 25, 3)

    def test_a_long_strip_is_scaled_in_its_middle_only(self, small_limit):
        strip = RNG.integers(0, 256, (3, 300, 3), dtype=np.uint8)
        assert read_image(strip, 20).shape == (20, 20, 3)
        short = strip[:, :90]
        scaled = Image.fromarray(short).resize((600, 20), Image.Resampling.BILINEAR)
        np.testing.assert_array_equal(read_image(short, 20), np.asarray(scaled)[:, 290:310])
        assert read_image(np.zeros((1, 5000, 3), np.uint8), 4).shape == (4, 4, 3)

    def test_features_of_before_are_not_taken_for_those_of_now(self, tmp_path, monkeypatch):
        small, large = (RNG.integers(0, 256, (n, n, 3), dtype=np.uint8) for n in (8, 64))
        kept = GIST(size=8, cache=tmp_path)
        before = list(map(kept._digest, as_images([small, large])))
        monkeypatch.setattr("likeminds.features.images.MOST_PIXELS", 1000)
        after = list(map(kept._digest, as_images([small, large])))
        assert before[0] == after[0]
        assert before[1] != after[1]

    def test_thumbnails_of_large_ones(self, tmp_path, small_limit):
        pixels = np.full((640, 480, 3), 77, np.uint8)
        small = thumbnail(saved(tmp_path / "a.jpg", pixels, quality=95), 10)
        assert small.shape == (8, 6, 3)
        assert np.abs(small.astype(int) - 77).max() <= 1

    def test_what_unpacks_to_too_much_is_refused_unopened(self, tmp_path):
        for side in (13_000, 60_000):  # where Pillow would warn, and where it would refuse
            path = tmp_path / f"{side}.png"
            header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
            chunks = (
                struct.pack(">I", len(data))
                + kind
                + data
                + struct.pack(">I", zlib.crc32(kind + data))
                for kind, data in ((b"IHDR", header), (b"IDAT", b""))
            )
            path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
            with pytest.raises(ValueError, match="pixels"):
                as_images([path])


class TestRefusals:
    def test_other_formats_are_found_before_the_work(self, tmp_path):
        good = saved(tmp_path / "a.png", PIXELS)
        Image.fromarray(PIXELS).save(tmp_path / "b.png", format="PPM")
        with pytest.raises(ValueError):
            GIST().fit([good, tmp_path / "b.png"])

    def test_damaged_files_are_named(self, tmp_path):
        (tmp_path / "text.jpg").write_text("not a picture")
        whole = saved(tmp_path / "whole.png", RNG.integers(0, 256, (64, 64, 3), np.uint8))
        (tmp_path / "cut.png").write_bytes(whole.read_bytes()[:2000])
        (tmp_path / "empty.png").touch()
        for name in ("text.jpg", "cut.png", "empty.png"):
            with pytest.raises(ValueError):
                ColourHistogram().transform([tmp_path / name])

    def test_one_picture_is_checked_as_well(self):
        with pytest.raises(ValueError):
            read_image(PIXELS * 1.0)
        with pytest.raises(FileNotFoundError):
            read_image("nowhere.png")

    def test_without_pillow_the_extra_is_named(self, tmp_path, monkeypatch):
        path = saved(tmp_path / "a.png", PIXELS)
        monkeypatch.setitem(sys.modules, "PIL.Image", None)
        with pytest.raises(ImportError):
            read_image(path)
        assert read_image(PIXELS[:, :6], 6).shape == (6, 6, 3)  # what needs none still works


def test_folders_are_listed_with_their_folders(tmp_path):
    (tmp_path / "b").mkdir()
    for name in ("b/1.JPG", "a.png", ".hidden.png", "notes.txt"):
        (tmp_path / name).touch()
    assert list_images(tmp_path) == [tmp_path / "a.png", tmp_path / "b" / "1.JPG"]
    with pytest.raises(FileNotFoundError):
        list_images(tmp_path / "c")
    (tmp_path / "c").mkdir()
    with pytest.raises(FileNotFoundError):
        list_images(tmp_path / "c")


def test_png_files_are_written_without_an_image_library(tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    picture = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    write_png(tmp_path / "shoe.png", picture)
    read = pyplot.imread(tmp_path / "shoe.png")
    np.testing.assert_array_equal(np.round(read * 255), picture)
    with pytest.raises(ValueError):
        write_png(tmp_path / "shoe.png", picture[0])
