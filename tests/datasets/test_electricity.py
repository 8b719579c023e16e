"""The bundled data is the source's."""

import hashlib

import numpy as np

from likeminds import Annotations, load_electricity


def digest(*columns):
    """Return one text for numbers in an order."""
    found = hashlib.sha256()
    for column in columns:
        found.update(np.ascontiguousarray(column, dtype="<f8").tobytes())
    return found.hexdigest()


def test_has_every_household_and_offer():
    data = load_electricity()
    assert isinstance(data, Annotations)
    assert len(data.user_ids) == 361
    assert data.user_ids[[0, -1]].tolist() == ["household-001", "household-361"]
    assert data.features.shape == (17_232, 6)
    np.testing.assert_array_equal(data.feature_rows, np.arange(17_232))
    assert len(data.item_ids) == 17_232
    assert data.feature_names == (
        "price",
        "contract_length",
        "local_company",
        "known_company",
        "time_of_day_rates",
        "seasonal_rates",
    )
    counts = np.bincount(data.user_codes)
    assert (counts.min(), counts.max()) == (32, 48)


def test_one_of_four_is_chosen_in_every_choice_set():
    data = load_electricity()
    np.testing.assert_array_equal(np.bincount(data.choice_set_codes), np.full(4308, 4))
    np.testing.assert_array_equal(
        np.bincount(data.choice_set_codes, weights=data.labels), np.ones(4308)
    )
    households_per_set = {
        *zip(data.choice_set_codes.tolist(), data.user_codes.tolist(), strict=True)
    }
    assert len(households_per_set) == 4308


def test_price_is_fixed_or_depends_on_the_time():
    data = load_electricity()
    price, by_time = data.features[:, 0], data.features[:, 4:].sum(axis=1)
    np.testing.assert_array_equal(price == 0, by_time == 1)
    assert set(np.unique(price)) == {0.0, 7.0, 9.0}


def test_is_the_source():
    # The digest was taken of the features, choices, households and choice sets of the source.
    data = load_electricity()
    assert (
        digest(
            data.features[data.feature_rows], data.labels, data.user_codes, data.choice_set_codes
        )
        == "1a1b0e25285330ad51fae61f06f8e090df2226b811e0b4b10ce0da930ca8da2d"
    )
