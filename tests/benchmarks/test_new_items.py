"""The benchmark of new items, on a tiny conversation."""

import numpy as np
from benchmarks.new_items import N_NEW, Conversation, as_table, measured, ordered


def test_votes_are_as_they_are_said_to_be():
    said, truth = Conversation(8, 10, 6, 5, 0.4, authors=True).draw(0)
    assert len(said) == 8 * 5 + 6
    assert truth.shape == (8, N_NEW)
    assert said.labels[said.item_codes >= 10].all()


def test_pairs_in_the_right_order_count():
    truth = np.array([[1.0, 2.0, 3.0]])
    assert ordered(truth, truth) == 1.0
    assert ordered(-truth, truth) == 0.0
    assert ordered(np.zeros((1, 3)), truth) == 0.5


def test_a_table_has_a_row_for_each_conversation():
    table = as_table(measured(2, {"tiny": Conversation(12, 10, 4, 6, 0.4)}))
    assert table.splitlines()[-1].startswith("| tiny | ")
