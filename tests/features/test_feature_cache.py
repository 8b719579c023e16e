"""Features of pictures are kept in files, by the content of each picture."""

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

from likeminds.features import ColourHistogram
from likeminds.features.extractor import FeatureCache

PICTURES = np.random.default_rng(1).integers(0, 256, (3, 16, 16, 3), dtype=np.uint8)


class Counting(ColourHistogram):
    """Counts the pictures it looks at."""

    seen = 0
    stop_after = 10**9

    def _histogram(self, image):
        if type(self).seen >= self.stop_after:
            raise KeyboardInterrupt
        type(self).seen += 1
        return super()._histogram(image)


class TestCache:
    @pytest.fixture(autouse=True)
    def _count_from_zero(self):
        Counting.seen, Counting.stop_after = 0, 10**9

    def test_content_counts_not_the_name(self, tmp_path):
        for name in "ab":
            Image.fromarray(PICTURES[0]).save(tmp_path / f"{name}.png")
        histogram = Counting(cache=tmp_path / "cache")
        first = histogram.transform([tmp_path / "a.png", PICTURES[1], PICTURES[1]])
        assert Counting.seen == 2
        np.testing.assert_array_equal(first, ColourHistogram().transform(PICTURES[[0, 1, 1]]))
        again = histogram.transform([PICTURES[1], PICTURES[2], tmp_path / "b.png"])
        assert Counting.seen == 3
        np.testing.assert_array_equal(again, ColourHistogram().transform(PICTURES[[1, 2, 0]]))
        Image.fromarray(PICTURES[2]).save(tmp_path / "a.png")
        changed = histogram.transform([tmp_path / "a.png"])
        np.testing.assert_array_equal(changed, again[1:2])

    def test_other_parameters_are_another_file(self, tmp_path):
        few = Counting(bins=2, cache=tmp_path).transform(PICTURES)
        assert Counting(bins=3, cache=tmp_path).transform(PICTURES).shape == (3, 9)
        Counting(bins=2, cache=tmp_path, batch_size=1).transform(PICTURES)
        assert Counting.seen == 6
        files = sorted(tmp_path.iterdir())
        assert len(files) == 2
        stored = [load_file(file)["rows"] for file in files]
        assert any(np.array_equal(rows, few) for rows in stored)

    def test_an_interrupt_loses_nothing_that_is_done(self, tmp_path):
        Counting.stop_after = 2
        histogram = Counting(cache=tmp_path, batch_size=1)
        with pytest.raises(KeyboardInterrupt):
            histogram.transform(PICTURES)
        Counting.stop_after = 3
        histogram.transform(PICTURES)
        assert Counting.seen == 3

    def test_rows_are_written_once_a_minute(self, tmp_path, monkeypatch):
        monkeypatch.setattr("likeminds.features.extractor._SECONDS_BETWEEN_SAVES", -1.0)
        cache = FeatureCache(tmp_path, {"features": "x"})
        cache.add([b"0" * 16], np.ones((1, 2), np.float32))
        assert b"0" * 16 in FeatureCache(tmp_path, {"features": "x"})

    def test_a_damaged_file_is_made_anew(self, tmp_path):
        histogram = Counting(cache=tmp_path)
        before = histogram.transform(PICTURES)
        (file,) = tmp_path.iterdir()
        for damage in (b"damaged", file.read_bytes()[:-8]):
            file.write_bytes(damage)
            with pytest.warns(UserWarning, match="damaged"):
                np.testing.assert_array_equal(histogram.transform(PICTURES), before)
        np.testing.assert_array_equal(histogram.transform(PICTURES), before)
        assert Counting.seen == 9

    def test_progress_goes_to_the_error_stream(self, capsys, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        ColourHistogram(progress=True).transform(PICTURES)
        shown = capsys.readouterr()
        assert not shown.out
        assert "ColourHistogram" in shown.err
        ColourHistogram().transform(PICTURES)
        assert not capsys.readouterr().err
