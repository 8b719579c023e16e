"""Features of texts: word counts against scikit-learn's parts, networks against a table."""

from itertools import product

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

import networks
from likeminds.features import SentenceEmbeddings, TextFeatures
from likeminds.features.deep import WordPiece

TEXTS = ["a red shoe", "a red boot with laces", "an open sandal", "open sandal, red laces", "boot"]
VOCABULARY = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "red",
    "shoe",
    "un",
    "##lace",
    "##d",
    ",",
    "cafe",
    "!",
    "鞋",
    "##s",
]
TABLE = np.random.default_rng(3).standard_normal((len(VOCABULARY), 4))


class TestTextFeatures:
    def test_all_components_keep_the_likeness_of_the_texts(self):
        counts = TfidfVectorizer(sublinear_tf=True).fit_transform(TEXTS).toarray()
        rows = TextFeatures(100, characters=False, random_state=0).fit_transform(TEXTS)
        assert rows.shape == (5, 5)
        np.testing.assert_allclose(rows @ rows.T, counts @ counts.T, atol=1e-10)

    def test_few_components_are_the_best_ones(self):
        counts = TfidfVectorizer(sublinear_tf=True).fit_transform(TEXTS).toarray()
        features = TextFeatures(2, characters=False, random_state=0)
        rows = features.fit_transform(TEXTS)
        u, s, _ = np.linalg.svd(counts, full_matrices=False)
        best = u[:, :2] * s[:2]
        best /= np.linalg.norm(best, axis=1, keepdims=True)
        np.testing.assert_allclose(rows @ rows.T, best @ best.T, atol=1e-8)
        names = list(features.get_feature_names_out())
        assert all(name.startswith("text: ") for name in names)
        assert len(set(names)) == 2

    def test_new_texts_use_what_was_learnt(self):
        features = TextFeatures(3, random_state=0).fit(TEXTS)
        np.testing.assert_allclose(
            features.transform(TEXTS), TextFeatures(3, random_state=0).fit_transform(TEXTS)
        )
        np.testing.assert_array_equal(features.transform(["12 @ 34"]), np.zeros((1, 3)))

    def test_pieces_of_words_know_misspelt_ones(self):
        both = TextFeatures(4, random_state=0).fit(TEXTS)
        assert np.ptp([*both.transform(["sandals"]) @ both.transform(TEXTS).T]) > 0.5
        words = TextFeatures(4, characters=False, random_state=0).fit(TEXTS)
        np.testing.assert_array_equal(words.transform(["sandals"]), np.zeros((1, 4)))

    def test_components_without_telling_words_have_no_words_in_their_name(self):
        rng = np.random.default_rng(0)
        small, expected_information = (
            ["know", "think", "really", "want"],
            ["vaccine", "prison", "river"],
        )
        texts = [
            " ".join([*rng.permutation(small)[:2], *([expected_information[k % 3]] * (k % 4 == 0))])
            for k in range(120)
        ]
        names = TextFeatures(6, characters=False, random_state=0).fit(texts).get_feature_names_out()
        said = " ".join(names)
        assert not any(word in said for word in small)
        assert any(word in said for word in expected_information)
        assert len(set(names)) == len(names)

    def test_words_of_little_weight_name_no_component(self):
        rng = np.random.default_rng(0)
        words = ["".join(each) for each in product("bdfgk", "aeiou", "lmnprst", "abcdefg")]
        texts = [" ".join(rng.choice(words, 20)) for _ in range(300)] + ["autism"] * 9
        names = TextFeatures(100, random_state=0).fit(texts).get_feature_names_out()
        named = [name for name in names if name.startswith("text: ")]
        assert "text: autism" in named
        assert len(named) < 10

    def test_words_of_one_text_and_endless_words_name_no_component(self):
        subjects = [f"subject{letter}" for letter in "abcdefghijklmno"]
        texts = [f"{subjects[k % 15]} {'qz' * (k % 15 + 3 + k)}" for k in range(120)]
        texts += ["active" * 20] * 6
        names = TextFeatures(30, characters=False, random_state=0).fit(texts)
        said = " ".join(names.get_feature_names_out())
        assert any(word in said for word in subjects)
        assert "qz" not in said
        assert "active" not in said

    def test_components_have_much_of_the_words_they_are_called_by(self):
        features = TextFeatures(4, random_state=0).fit(TEXTS)
        for column, name in enumerate(features.get_feature_names_out()):
            word = name.removeprefix("text: ").split(", ")[0]
            assert features.transform([word])[0, column] > 0


@pytest.fixture
def vocabulary(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(VOCABULARY), encoding="utf-8")
    return path


class TestWordPiece:
    @pytest.mark.parametrize(
        ("text", "pieces"),
        [
            ("Red SHOES,", "[CLS] red shoe ##s , [SEP]"),
            ("unlaced café!", "[CLS] un ##lace ##d cafe ! [SEP]"),
            ("red鞋red", "[CLS] red 鞋 red [SEP]"),
            ("redx \t\n red\x00", "[CLS] [UNK] red [SEP]"),
            ("", "[CLS] [SEP]"),
            ("red " * 9, "[CLS] red red red red red red [SEP]"),
            ("r" * 101, "[CLS] [UNK] [SEP]"),
        ],
    )
    def test_splits_as_bert_does(self, vocabulary, text, pieces):
        numbers = WordPiece(vocabulary).encode(text, max_length=8)
        assert [VOCABULARY[number] for number in numbers] == pieces.split()

    def test_case_may_matter(self, vocabulary):
        assert WordPiece(vocabulary, lower=False).encode("Red red", 8) == [2, 1, 4, 3]

    def test_what_is_no_vocabulary(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            WordPiece(tmp_path / "none.txt")
        (tmp_path / "words.txt").write_text("red\n[CLS]")
        with pytest.raises(ValueError):
            WordPiece(tmp_path / "words.txt")


class TestSentenceEmbeddings:
    def test_pieces_are_averaged_without_the_padding(self, tmp_path, vocabulary):
        model = networks.word_vectors(tmp_path / "a.onnx", TABLE)
        rows = SentenceEmbeddings(model, vocabulary, normalise=False, n_threads=1).fit_transform(
            ["red", "red shoes !"]
        )
        expected = [TABLE[[2, 4, 3]].mean(axis=0), TABLE[[2, 4, 5, 13, 11, 3]].mean(axis=0)]
        np.testing.assert_allclose(rows, expected, atol=1e-6)

    def test_length_one_first_piece_and_pooled_networks(self, tmp_path, vocabulary):
        model = networks.word_vectors(tmp_path / "a.onnx", TABLE, mask=False)
        embeddings = SentenceEmbeddings(model, vocabulary, pooling="first", n_threads=1)
        expected = TABLE[2] / np.linalg.norm(TABLE[2])
        np.testing.assert_allclose(embeddings.transform(["red", "!"]), [expected] * 2, atol=1e-6)
        assert list(embeddings.get_feature_names_out())[-1] == "sentence_3"
        pooled = networks.word_vectors(tmp_path / "b.onnx", TABLE, pooled=True)
        rows = SentenceEmbeddings(pooled, vocabulary, normalise=False).transform(["shoe"])
        np.testing.assert_allclose(rows, TABLE[[[2, 5, 3]]].sum(axis=1), atol=1e-6)

    def test_cached_by_text_network_and_vocabulary(self, tmp_path, vocabulary):
        model = networks.word_vectors(tmp_path / "a.onnx", TABLE)
        embeddings = SentenceEmbeddings(model, vocabulary, cache=tmp_path / "cache", n_threads=1)
        rows = embeddings.transform(["red", "shoe", "red"])
        np.testing.assert_array_equal(embeddings.transform(["shoe", "red"]), rows[[1, 0]])
        assert len(list((tmp_path / "cache").iterdir())) == 1
        vocabulary.write_text("\n".join(VOCABULARY[:4] + VOCABULARY[:3:-1]), encoding="utf-8")
        assert not np.allclose(embeddings.transform(["red"]), rows[:1])

    def test_refusals(self, tmp_path, vocabulary):
        with pytest.raises(FileNotFoundError):
            SentenceEmbeddings(tmp_path / "none.onnx", vocabulary).fit(TEXTS)
        pictures = networks.mean_colour(tmp_path / "a.onnx")
        with pytest.raises(ValueError):
            SentenceEmbeddings(pictures, vocabulary).transform(TEXTS)
        model = networks.word_vectors(tmp_path / "b.onnx", TABLE)
        with pytest.raises(ValueError):
            SentenceEmbeddings(model, vocabulary, pooling="max").fit(TEXTS)
        with pytest.raises(ValueError):
            SentenceEmbeddings(model, vocabulary, max_length=2).fit(TEXTS)
        short = networks.word_vectors(tmp_path / "c.onnx", TABLE[:3])
        with pytest.raises(ValueError):
            SentenceEmbeddings(short, vocabulary).transform(["red"])
