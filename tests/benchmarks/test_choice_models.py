"""The benchmark of choice models: what is read, and estimates of others in our units."""

import numpy as np
import pytest
from benchmarks.choice_models import Specification, _simulate

from crowds import make_choices


@pytest.fixture(scope="module")
def choices():
    return make_choices([-1.0, 0.5, 0.4], 0.2 * np.eye(3), n_users=30, n_sets=6)[0]


def test_a_specification_reads_its_features_in_its_units(choices, tmp_path):
    which, X = np.arange(len(choices)), choices.X.astype(np.float32)
    columns = {"user": choices.user_codes, "item": which, "label": choices.labels, "X": X}
    names = np.array(choices.feature_names)
    np.savez(tmp_path / "cars.npz", features=names, group=choices.choice_set_codes, **columns)
    spec = Specification("cars", -1.0, 10, left_out=("size",), units={"price": 100.0})
    read = spec.read(tmp_path)
    assert list(read.feature_names) == ["price", "speed"]
    np.testing.assert_allclose(read.X[:, 0], X[:, 0] / 100.0, rtol=1e-6)
    assert Specification("planes", -1.0, 10).read(tmp_path) is None


def test_estimates_of_others_are_put_into_our_units(choices):
    spec = Specification("cars", -1.0, 10, fixed=("speed",), logs={"price": -1})
    ranker = spec.ranker("diagonal", 20).fit(choices)
    prior, scale = ranker.prior_.simulated, ranker.scale_
    deviation = np.sqrt(prior.covariance.diagonal())
    said = {
        "price": prior.mean[0] - np.log(scale[0]),
        "size": prior.mean[1] / scale[1],
        "speed": prior.mean[2] / scale[2],
        "sd.price": deviation[0],
        "sd.size": -deviation[1] / scale[1],
    }
    found = _simulate(spec, choices, said, 100)
    assert found.value == pytest.approx(ranker.log_likelihood(draws=100, random_state=1).value)
