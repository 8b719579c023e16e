"""Texts of items become columns of numbers."""

import pyarrow as pa

from likeminds.data.tables import encode_items


class TestTextsOfItems:
    def table(self, **columns):
        return pa.table({"item": list(range(6)), **columns})

    def test_words_between_bars(self):
        encoded, left_out = encode_items(self.table(kind=["a|b", "b", None, "", "c", "a"]), "item")
        assert encoded.column_names == ["item", "kind: a", "kind: b", "kind: c"]
        assert encoded["kind: a"].to_pylist() == [1, 0, 0, 0, 0, 1]
        assert not left_out

    def test_few_categories_and_names(self):
        encoded, left_out = encode_items(
            self.table(colour=list("xyxyxy"), title=list("abcdef")), "item"
        )
        assert encoded.column_names == ["item", "colour: x", "colour: y"]
        assert left_out == ["title"]

    def test_what_a_model_knows_is_made_and_nothing_else(self):
        known = ["size", "kind: z", "kind: a"]
        table = self.table(size=[1.0] * 6, kind=["a|b", "b", "b", "b", "b", "b"])
        encoded, _ = encode_items(table, "item", known)
        assert encoded.column_names == ["item", "size", "kind: z", "kind: a"]
        assert encoded["kind: z"].to_pylist() == [0] * 6
        assert encoded["kind: a"].to_pylist() == [1, 0, 0, 0, 0, 0]

    def test_one_category_for_all_says_nothing(self):
        assert encode_items(self.table(kind=["a"] * 6), "item")[1] == ["kind"]
