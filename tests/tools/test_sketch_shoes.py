"""The program that draws shoes, and the bundle it writes."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from tools.sketch_shoes.__main__ import main
from tools.sketch_shoes.album import Album, contact_sheet
from tools.sketch_shoes.drawing import render
from tools.sketch_shoes.kinds import KINDS
from tools.sketch_shoes.styles import draw_shoe

from likeminds import make_sketch_shoes

pytestmark = pytest.mark.slow

RED, GREEN, BLUE = (0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.1, 0.8)


def plain_pump(**changes):
    """A pump with a red upper on a green foot-bed and lining, heel and sole blue."""
    shoe = draw_shoe(0, kind="pump")
    parts = {"upper": RED, "bed": GREEN, "lining": GREEN, "heel": BLUE, "sole": BLUE}
    plain = {"ornament": "none", "pattern": "plain", "studs": 0, "platform": 0.0, "point": 0.3}
    plain |= {"material": "leather", "heel": 0.25, "front": 1.0, "rear": 0.0, "throat": 0.66}
    return replace(shoe, colours=shoe.colours | parts, **(plain | changes))


def most(picture, channel):
    """Where one channel is well above both others."""
    others = np.delete(picture.astype(int), channel, axis=2).max(axis=2)
    return picture[:, :, channel] > others + 40


def ink(picture):
    """Where the picture is not background, nor the faint shadow on it."""
    return (np.abs(picture.astype(int) - picture[0, 0]) > 60).any(axis=2)


class TestPictures:
    @pytest.mark.parametrize("kind", KINDS)
    def test_every_kind_is_a_picture_inside_its_frame(self, kind):
        picture = render(draw_shoe(7, kind=kind), size=128)
        shown = ink(picture)
        assert picture.shape == (128, 128, 3)
        assert picture.dtype == np.uint8
        assert 0.03 < shown.mean() < 0.5
        assert not shown[[0, -1]].any()
        assert not shown[:, [0, -1]].any()
        across = np.flatnonzero(shown.any(axis=0))
        assert across.max() - across.min() > 50

    def test_a_number_is_always_the_same_shoe(self):
        np.testing.assert_array_equal(render(draw_shoe(5)), render(draw_shoe(5)))
        assert draw_shoe(5) != draw_shoe(6)
        assert draw_shoe(5, seed=0) != draw_shoe(5, seed=1)

    def test_all_kinds_occur(self):
        assert {draw_shoe(number).kind for number in range(400)} == set(KINDS)

    def test_a_smaller_picture_shows_the_same(self):
        shoe = draw_shoe(3, kind="oxford")
        large = render(shoe, 256).reshape(64, 4, 64, 4, 3).mean(axis=(1, 3))
        assert np.abs(large - render(shoe, 64)).mean() < 3

    def test_a_higher_heel_lifts_the_seat(self):
        gaps = []
        for heel in (0.1, 0.2, 0.35):
            shoe = plain_pump(heel=heel)
            picture = render(shoe)
            upper, all_of_it = most(picture, 0), ink(picture)
            across = np.flatnonzero(upper.any(axis=0))
            rear = upper[:, across.max() - 20 : across.max() - 5]
            ground = np.flatnonzero(all_of_it.any(axis=1)).max()
            gaps.append(ground - np.flatnonzero(rear.any(axis=1)).max())
        assert gaps[0] + 10 < gaps[1] < gaps[2] - 10

    def test_an_open_toe_shows_the_foot_bed_there(self):
        closed, open_toe = (render(plain_pump(front=front)) for front in (1.0, 0.88))
        left = np.flatnonzero(ink(closed).any(axis=0)).min()
        toe = np.s_[:, left : left + 30]
        assert not most(closed, 1)[toe].any()
        assert most(open_toe, 1)[toe].sum() > 30
        assert most(open_toe, 0)[toe].sum() < 0.7 * most(closed, 0)[toe].sum()

    def test_an_open_back_leaves_the_heel_free(self):
        closed, mule = (render(plain_pump(rear=rear)) for rear in (0.0, 0.5))
        right = np.flatnonzero(ink(closed).any(axis=0)).max()
        heel = np.s_[:, right - 50 : right + 1]
        assert most(closed, 0)[heel].sum() > 500
        assert most(mule, 0)[heel].sum() == 0

    def test_a_shaft_rises(self):
        low, high = (
            render(replace(draw_shoe(1, kind="knee boot"), shaft=shaft)) for shaft in (0.4, 1.0)
        )
        heights = [np.ptp(np.flatnonzero(ink(picture).any(axis=1))) for picture in (low, high)]
        widths = [np.ptp(np.flatnonzero(ink(picture).any(axis=0))) for picture in (low, high)]
        assert heights[0] / widths[0] + 0.3 < heights[1] / widths[1]

    def test_a_point_makes_the_toe_low(self):
        round_toe, needle = (render(plain_pump(point=point)) for point in (0.0, 1.0))
        left = [np.flatnonzero(ink(picture).any(axis=0)).min() for picture in (round_toe, needle)]
        heights = [
            most(picture, 0)[:, edge + 4 : edge + 16].sum()
            for picture, edge in zip((round_toe, needle), left, strict=True)
        ]
        assert heights[1] < 0.7 * heights[0]

    @pytest.mark.parametrize(
        "ornament", ["bow", "flower", "buckle", "tassel", "fringe", "pompon", "jewel"]
    )
    def test_ornaments_are_seen(self, ornament):
        bare, adorned = (
            render(plain_pump(ornament=name, ornament_size=0.08)) for name in ("none", ornament)
        )
        changed = np.abs(bare.astype(int) - adorned).max(axis=2) > 15
        assert 30 < changed.sum() < 3000

    @pytest.mark.parametrize("pattern", ["stripes", "plaid", "dots", "leopard", "snake", "floral"])
    def test_patterns_show_on_the_upper_alone(self, pattern):
        plain, printed = (render(plain_pump(pattern=name)) for name in ("plain", pattern))
        changed = np.abs(plain.astype(int) - printed).max(axis=2) > 30
        assert changed.sum() > 200
        assert (changed & ~most(plain, 0)).sum() < 0.1 * changed.sum()

    def test_unknown_kinds_are_refused(self):
        with pytest.raises(ValueError):
            draw_shoe(0, kind="sok")


class TestAlbum:
    shoes = tuple(draw_shoe(number) for number in range(7))

    def test_pictures_do_not_depend_on_how_they_are_asked_for(self):
        album = Album(self.shoes, size=64)
        together = album[:]
        assert together.shape == (7, 64, 64, 3)
        np.testing.assert_array_equal(album[-1], together[6])
        np.testing.assert_array_equal(album[[4, 1]], together[[4, 1]])
        np.testing.assert_array_equal(album[1:6:2], together[1:6:2])
        for size in (1, 3, 100):
            np.testing.assert_array_equal(np.concatenate(list(album.chunks(size))), together)
        assert max(len(part) for part in album.chunks(3)) == 3

    def test_processes_draw_the_same(self):
        album = Album(self.shoes, size=64, n_jobs=2)
        np.testing.assert_array_equal(np.concatenate(list(album.chunks(2))), album[:])

    def test_contact_sheets_have_rows(self):
        pictures = Album(self.shoes, size=64)[:]
        sheet = contact_sheet(pictures, columns=3)
        assert sheet.shape == (192, 192, 3)
        np.testing.assert_array_equal(sheet[64:128, 128:], pictures[5])
        assert np.all(sheet[128:, 64:] == 255)

    def test_the_command_writes_a_sheet(self, tmp_path):
        path = tmp_path / "sheet.png"
        main(["--sheet", str(path), "--size", "64"])
        with Image.open(path) as sheet:
            assert sheet.size == (512, 384)


def test_the_bundle_is_what_the_program_draws(tmp_path):
    main(["--out", str(tmp_path), "--pictures", "25"])
    with Image.open(tmp_path / "sketch_shoes.webp") as sheet:
        drawn = np.asarray(sheet.convert("RGB"), dtype=int)
    bundled = np.hstack(make_sketch_shoes(25, 2, 20).pictures).astype(int)
    assert np.abs(drawn - bundled).mean() < 2
    with np.load(tmp_path / "sketch_shoes.npz") as archive:
        features = make_sketch_shoes(25, 2, 20, n_components=None).annotations.features
        assert np.abs(archive["features"] - features).mean() < 1e-3
