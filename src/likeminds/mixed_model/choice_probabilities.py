"""The probability that an item is chosen among those shown with it, given what is known."""

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds._util.per_user_arrays import order_by
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.posterior import Posterior
from likeminds.mixed_model.prediction_rows import PredictionRows


def chances_of_sets(
    posterior: Posterior, said: Annotations, scores: Float, people: Index
) -> Float | None:
    """Return for each row the probability that it is chosen in its group; None without log-odds.

    The mean of 1 / (1 + sum of exp(score of another - its score)) over the posterior: each
    difference is divided by sqrt(1 + pi/8 its variance), after MacKay, and probabilities are made
    to sum to one. Of a pair that is `Posterior.chance_preferred`. Where the worst is chosen, scores
    are turned round.

    Parameters
    ----------
    posterior : Posterior
        Posteriors of people.
    said : Annotations
        Groups of rows.
    scores : array of shape (n_rows,)
        The mean score of each row.
    people : array of shape (n_rows,)
        Whose posterior each row meets; -1 is the prior's.
    """
    if posterior.likelihood.is_quadratic or said.choice_set_codes is None:
        return None
    if said.picks_worst is not None:
        scores = np.where(said.picks_worst, -scores, scores)
    n_sets = int(said.choice_set_codes.max()) + 1
    order, offsets = order_by(said.choice_set_codes, n_sets)
    size = np.diff(offsets)[said.choice_set_codes[order]]
    begin = offsets[said.choice_set_codes[order]]
    ids = said.items if said.has_items else None
    rows, score, owner = posterior.see(said.X, ids).rows[order], scores[order], people[order]
    inverse = np.ones(len(order))
    for step in range(1, int(size.max())):
        # Every row of a set meets the one that many places later, round and round.
        place = np.flatnonzero(step < size)
        other = begin[place] + (place - begin[place] + step) % size[place]
        spread = posterior.deviation(
            PredictionRows(rows[place]), owner[place], less=PredictionRows(rows[other])
        )
        apart = (score[other] - score[place]) / np.sqrt(1.0 + np.pi / 8.0 * spread**2)
        inverse[place] += np.exp(np.minimum(apart, 500.0))
    chance = np.empty(len(order))
    chance[order] = 1.0 / inverse
    total = np.bincount(said.choice_set_codes, weights=chance, minlength=n_sets)
    return np.asarray(chance / total[said.choice_set_codes])
