"""The benchmark of opinions as a column: what it says of a small crowd."""

import numpy as np
from benchmarks.item_column import as_table, measure

from likeminds import Annotations


def test_the_opinion_as_it_is_wrecks_new_items():
    rng = np.random.default_rng(0)
    X, beyond = rng.standard_normal((30, 3)), rng.standard_normal(30)
    person, item = np.divmod(np.arange(60 * 30), 30)
    score = 2.0 * X[item].sum(axis=1) + beyond[item] + rng.logistic(size=len(item))
    found = measure(Annotations(person, item, score > 0, X), range(1))
    alone, ours, raw, *_, popularity = found.values()
    assert ours[0] > alone[0]
    assert ours[1] > alone[1] - 0.02
    assert raw[1] < alone[1] - 0.05
    assert popularity[1] == 0.5
    assert as_table(found).splitlines()[-1].endswith("| .500 |")
