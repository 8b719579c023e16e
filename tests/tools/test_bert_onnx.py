"""Encoders as ONNX files."""

import json

import numpy as np
import pytest
from scipy.special import erf, softmax
from tools.bert_onnx import convert

pytest.importorskip("onnxruntime")
from safetensors.numpy import save_file

from likeminds.features.deep import Network

WIDTH, INNER, HEADS = 8, 12, 2
CONFIG = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "num_attention_heads": HEADS,
    "num_hidden_layers": 2,
    "layer_norm_eps": 1e-12,
}


def random_weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {"word": (20, WIDTH), "position": (9, WIDTH), "token_type": (2, WIDTH)}
    named = {f"embeddings.{kind}_embeddings.weight": shape for kind, shape in shapes.items()}
    dense = {f"attention.self.{kind}": (WIDTH, WIDTH) for kind in ("query", "key", "value")}
    dense |= {"attention.output.dense": (WIDTH, WIDTH), "intermediate.dense": (INNER, WIDTH)}
    dense |= {"output.dense": (WIDTH, INNER), "attention.output.LayerNorm": (WIDTH,)}
    dense |= {"output.LayerNorm": (WIDTH,)}
    both = {f"encoder.layer.{n}.{kind}": shape for n in range(2) for kind, shape in dense.items()}
    for name, shape in (both | {"embeddings.LayerNorm": (WIDTH,)}).items():
        named |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in named.items()}


def naive(weights: dict[str, np.ndarray], tokens: list[int]) -> np.ndarray:
    """Return the rows of one text without padding, by the definition of the encoder."""

    def dense(name, rows):
        return rows @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def normed(name, rows):
        centred = rows - rows.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + 1e-12)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    rows = weights["embeddings.word_embeddings.weight"][tokens]
    rows = rows + weights["embeddings.position_embeddings.weight"][: len(tokens)]
    rows = rows + weights["embeddings.token_type_embeddings.weight"][0]
    rows = normed("embeddings.LayerNorm", rows)
    for name in ("encoder.layer.0", "encoder.layer.1"):
        query, key, value = (
            dense(f"{name}.attention.self.{kind}", rows) for kind in ("query", "key", "value")
        )
        size = WIDTH // HEADS
        parts = []
        for head in range(HEADS):
            mine = slice(head * size, (head + 1) * size)
            shares = softmax(query[:, mine] @ key[:, mine].T / np.sqrt(size), axis=1)
            parts.append(shares @ value[:, mine])
        mixed = dense(f"{name}.attention.output.dense", np.hstack(parts))
        rows = normed(f"{name}.attention.output.LayerNorm", mixed + rows)
        inner = dense(f"{name}.intermediate.dense", rows)
        inner = inner * 0.5 * (1 + erf(inner / np.sqrt(2)))
        rows = normed(f"{name}.output.LayerNorm", dense(f"{name}.output.dense", inner) + rows)
    return rows


def test_network_equals_the_definition_whatever_the_padding(tmp_path):
    weights = random_weights()
    save_file(weights, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    convert(tmp_path, tmp_path / "model.onnx")
    ids = np.array([[1, 5, 7, 2], [3, 4, 0, 0]])
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
    rows = Network(tmp_path / "model.onnx").run({"input_ids": ids, "attention_mask": mask})
    np.testing.assert_allclose(rows[0], naive(weights, [1, 5, 7, 2]), atol=2e-5)
    np.testing.assert_allclose(rows[1, :2], naive(weights, [3, 4]), atol=2e-5)


def test_other_networks_raise(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"model_type": "roberta"}))
    with pytest.raises(ValueError) as error:
        convert(tmp_path, tmp_path / "model.onnx")
    assert "roberta" in str(error.value)
