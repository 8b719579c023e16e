"""Sketch shoes: pictures of shoes, people who label them, and features from the pixels."""

from dataclasses import replace

import numpy as np
import pytest

from likeminds import Annotations, ThreeLevelRanker, make_sketch_shoes, split_within_people
from likeminds.baselines import ConsensusOnly
from likeminds.datasets import contact_sheet
from likeminds.datasets.sketch_shoes import Album, draw_shoe, render
from likeminds.datasets.sketch_shoes.__main__ import main
from likeminds.datasets.sketch_shoes.crowd import ATTRIBUTES, OPINIONS, make_crowd
from likeminds.datasets.sketch_shoes.kinds import KINDS
from likeminds.datasets.sketch_shoes.pixels import describe, reduce
from likeminds.datasets.sketch_shoes.traits import TRAITS
from likeminds.metrics import auc_by_person

SMALL = {"n_pictures": 24, "people_per_attribute": 12, "pictures_each": 20, "picture_size": 64}


def brightness(pictures):
    """Stands in for features that cost nothing."""
    return pictures.mean(axis=(1, 2))


def quick(**options):
    return make_sketch_shoes(**(SMALL | {"features": brightness, "n_components": None} | options))


@pytest.fixture(scope="module")
def shoes():
    return make_sketch_shoes(250, people_per_attribute=60, picture_size=64)


class TestCrowd:
    @pytest.fixture(autouse=True)
    def blank_pictures(self, monkeypatch, shoes):
        """Labels do not depend on pixels: these tests need no drawing."""

        def blank(shoes, size):
            return np.zeros((len(shoes), size, size, 3), dtype=np.uint8)

        monkeypatch.setattr("likeminds.datasets.sketch_shoes.album._draw_shoes", blank)

    @pytest.mark.slow
    def test_has_the_sizes_asked_for(self, shoes):
        annotations = shoes.annotations
        assert isinstance(annotations, Annotations)
        assert tuple(annotations.attribute_ids) == ATTRIBUTES == shoes.attributes
        assert len(ATTRIBUTES) == 7
        assert annotations.n_people == 60
        assert annotations.features.shape == (250, 60)
        assert len(annotations) == 7 * 60 * 50
        assert annotations.item_ids[[0, -1]].tolist() == ["shoe-00000", "shoe-00249"]
        assert len(shoes.pictures) == len(shoes.kinds) == 250
        assert shoes.traits.shape == (250, len(TRAITS))
        assert shoes.schools.shape == (60, 7)
        assert shoes.weights.shape == (60, 7, len(TRAITS))
        for rows in annotations.by_attribute().values():
            seen = rows.item_codes.reshape(60, 50)
            assert all(len(set(row)) == 50 for row in seen.tolist())

    @pytest.mark.slow
    def test_everybody_gives_enough_labels_of_both_kinds(self, shoes):
        for rows in shoes.annotations.by_attribute().values():
            assert np.mean(rows.label_counts().min(axis=1) >= 8) > 0.95

    def test_without_noise_labels_follow_the_weights(self):
        made = quick(label_noise=0.0)
        for k, rows in enumerate(made.annotations.by_attribute().values()):
            weights = made.weights[rows.user_codes, k]
            scores = np.einsum("ij,ij->i", made.traits[rows.item_codes], weights)
            assert auc_by_person(rows.labels, scores, rows.user_codes).values == pytest.approx(1.0)

    def test_noise_flips_the_share_of_labels_asked_for(self):
        clean, noisy = (
            quick(label_noise=noise, people_per_attribute=150).annotations for noise in (0.0, 0.1)
        )
        np.testing.assert_array_equal(clean.item_codes, noisy.item_codes)
        assert np.mean(clean.labels != noisy.labels) == pytest.approx(0.1, abs=0.01)

    def test_loners_belong_to_no_school(self):
        made = quick(people_per_attribute=40, loners=0.1)
        np.testing.assert_array_equal((made.schools < 0).sum(axis=0), 4)
        spread = np.linalg.norm(made.weights - made.consensus, axis=2)
        assert spread[made.schools < 0].mean() > 0.8

    @pytest.mark.parametrize("attribute", ATTRIBUTES)
    def test_schools_differ_and_sum_to_nothing(self, attribute):
        crowd = make_crowd(np.random.default_rng(0), attribute, 30, 3)
        centres = np.array([crowd.group[crowd.school == k][0] for k in range(3)])
        np.testing.assert_allclose(centres.sum(axis=0), 0, atol=1e-12)
        assert np.linalg.norm(centres, axis=1).min() > 0.5
        assert not crowd.group[crowd.school < 0].any()
        words = [OPINIONS[attribute][0], *OPINIONS[attribute][1].values()]
        assert {name for word in words for name in word} <= set(TRAITS)

    def test_open_means_different_things(self, shoes):
        rows = shoes.annotations.of_attribute("open")
        school = shoes.schools[:, ATTRIBUTES.index("open")][rows.user_codes]
        toe, back = (
            shoes.traits[rows.item_codes, TRAITS.index(name)] for name in ("toe_open", "back_open")
        )

        def preference(trait, members):
            return trait[members & rows.labels].mean() - trait[members & ~rows.labels].mean()

        assert preference(toe, school == 0) > preference(toe, school == 1) + 0.2
        assert preference(back, school == 1) > preference(back, school == 0) + 0.2

    def test_same_seed_same_data(self):
        one, other = (quick(random_state=3) for _ in range(2))
        np.testing.assert_array_equal(one.annotations.labels, other.annotations.labels)
        np.testing.assert_array_equal(one.annotations.features, other.annotations.features)
        np.testing.assert_array_equal(one.weights, other.weights)
        generated = quick(random_state=np.random.default_rng(3))
        np.testing.assert_array_equal(one.annotations.labels, generated.annotations.labels)
        assert quick(random_state=4).kinds != one.kinds

    def test_shoes_are_the_same_in_larger_sets(self):
        small, large = quick(), quick(n_pictures=30)
        assert large.pictures.shoes[:24] == small.pictures.shoes

    def test_some_attributes_will_do(self):
        made = quick(attributes=["pointy", "open"])
        assert made.attributes == ("pointy", "open")
        assert made.annotations.attribute_ids.tolist() == ["open", "pointy"]
        assert quick(attributes="open").annotations.n_attributes == 1


class TestFeatures:
    def test_are_computed_from_the_pictures(self):
        made = quick()
        np.testing.assert_allclose(made.annotations.features, brightness(made.pictures[:]))

    def test_know_nothing_of_the_crowd(self):
        one, other = (quick(people_per_attribute=n, label_noise=n / 40) for n in (5, 9))
        np.testing.assert_array_equal(one.annotations.features, other.annotations.features)

    def test_do_not_depend_on_the_chunks(self, shoes):
        pictures = shoes.pictures[:9]
        parts = [describe(pictures[:4]), describe(pictures[4:])]
        np.testing.assert_allclose(np.concatenate(parts), describe(pictures), atol=1e-12)

    def test_are_the_principal_components_of_the_description(self):
        made = quick(features=None, n_components=10)
        full = np.concatenate(list(made.pictures.map(describe, 7)))
        np.testing.assert_allclose(made.annotations.features, reduce(full, 10), atol=1e-8)
        kept = made.annotations.features.var(axis=0)
        assert np.all(np.diff(kept) <= 0)
        assert 0.6 * full.var(axis=0).sum() < kept.sum() < full.var(axis=0).sum()

    def test_see_the_heel_and_the_colour(self, shoes):
        X = np.c_[shoes.annotations.features, np.ones(250)]
        train, test = np.s_[:180], np.s_[180:]
        for name, least in (("heel", 0.85), ("shaft", 0.85), ("light", 0.65), ("toe_open", 0.6)):
            trait = shoes.traits[:, TRAITS.index(name)]
            weights = np.linalg.lstsq(X[train], trait[train])[0]
            assert np.corrcoef(X[test] @ weights, trait[test])[0, 1] > least, name

    def test_fewer_columns_than_components_are_all_kept(self):
        assert quick(n_components=60).annotations.n_features == 3

    def test_small_pictures_are_refused(self):
        with pytest.raises(ValueError):
            describe(np.zeros((2, 32, 32, 3), dtype=np.uint8))


@pytest.mark.slow
def test_schools_pay_on_held_out_labels(shoes):
    gains = []
    for rows in shoes.annotations.by_attribute().values():
        train, test = split_within_people(rows, test_size=0.3, random_state=0)
        consensus, levels = (
            ranker.fit(train).score(test) for ranker in (ConsensusOnly(), ThreeLevelRanker())
        )
        assert levels > 0.65
        gains.append(levels - consensus)
    assert np.sum(np.array(gains) > 0) >= 5
    assert np.mean(gains) > 0.03


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

    @pytest.mark.slow
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
        pyplot = pytest.importorskip("matplotlib.pyplot")
        path = tmp_path / "sheet.png"
        main([str(path), "--rows", "2", "--columns", "3", "--size", "64"])
        assert pyplot.imread(path).shape == (128, 192, 3)
