"""Write an encoder of the BERT family as an ONNX file: ``python -m tools.bert_onnx FOLDER FILE``.

FOLDER holds ``config.json`` and ``model.safetensors``, as packages with sentence-transformers'
networks do. Needs `onnx` and `safetensors`, not torch. The inputs are ``input_ids`` and
``attention_mask``, the output is one row per token: `likeminds.features.SentenceEmbeddings` takes
the mean over the tokens of a text.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper, save
from safetensors.numpy import load_file


class Encoder:
    """The graph of an encoder: every method adds nodes, and returns the name of their output."""

    def __init__(self, weights: dict[str, np.ndarray], *, n_heads: int, epsilon: float) -> None:
        self._weights, self._n_heads, self._epsilon = weights, n_heads, epsilon
        self._nodes: list[helper.NodeProto] = []
        self._constants: list[TensorProto] = []

    def graph(self, n_layers: int) -> helper.GraphProto:
        """Return the whole graph."""
        state = self._embedded()
        ones = self._node("Cast", "attention_mask", to=TensorProto.FLOAT)
        absent = self._node(
            "Mul", self._node("Sub", ones, self._constant(1.0)), self._constant(1e9)
        )
        mask = self._node("Unsqueeze", absent, self._constant([1, 2], np.int64))
        for layer in range(n_layers):
            state = self._layer(f"encoder.layer.{layer}", state, mask)
        self._nodes[-1].output[0] = "last_hidden_state"
        sides = ["n_texts", "n_tokens"]
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, sides)
            for name in ("input_ids", "attention_mask")
        ]
        width = self._weights["embeddings.LayerNorm.weight"].size
        output = helper.make_tensor_value_info(
            "last_hidden_state", TensorProto.FLOAT, [*sides, width]
        )
        return helper.make_graph(self._nodes, "encoder", inputs, [output], self._constants)

    def _embedded(self) -> str:
        tables = {
            kind: self._weights[f"embeddings.{kind}_embeddings.weight"]
            for kind in ("word", "position", "token_type")
        }
        shape = self._node("Shape", "input_ids")
        length = self._node("Gather", shape, self._constant(1, np.int64))
        zero, one = self._constant(0, np.int64), self._constant(1, np.int64)
        positions = self._node("Range", zero, length, one)
        # All tokens are of the first type.
        placed = self._constant(tables["position"] + tables["token_type"][0])
        words = self._node("Gather", self._constant(tables["word"]), "input_ids")
        rows = self._node("Add", words, self._node("Gather", placed, positions))
        return self._normalised("embeddings.LayerNorm", rows)

    def _layer(self, name: str, state: str, mask: str) -> str:
        width = self._weights[f"{name}.attention.self.query.bias"].size
        split = self._constant([0, 0, self._n_heads, width // self._n_heads], np.int64)

        def heads(kind: str, order: list[int]) -> str:
            rows = self._dense(f"{name}.attention.self.{kind}", state)
            return self._node("Transpose", self._node("Reshape", rows, split), perm=order)

        products = self._node("MatMul", heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1]))
        scale = self._constant(np.sqrt(self._n_heads / width))
        scores = self._node("Add", self._node("Mul", products, scale), mask)
        shares = self._node("Softmax", scores, axis=-1)
        mixed = self._node("MatMul", shares, heads("value", [0, 2, 1, 3]))
        joined = self._constant([0, 0, width], np.int64)
        mixed = self._node("Reshape", self._node("Transpose", mixed, perm=[0, 2, 1, 3]), joined)
        added = self._node("Add", self._dense(f"{name}.attention.output.dense", mixed), state)
        state = self._normalised(f"{name}.attention.output.LayerNorm", added)
        inner = self._gelu(self._dense(f"{name}.intermediate.dense", state))
        added = self._node("Add", self._dense(f"{name}.output.dense", inner), state)
        return self._normalised(f"{name}.output.LayerNorm", added)

    def _gelu(self, rows: str) -> str:
        tail = self._node("Erf", self._node("Div", rows, self._constant(np.sqrt(2.0))))
        doubled = self._node("Mul", rows, self._node("Add", tail, self._constant(1.0)))
        return self._node("Mul", doubled, self._constant(0.5))

    def _dense(self, name: str, rows: str) -> str:
        weight = self._constant(self._weights[f"{name}.weight"].T)
        bias = self._constant(self._weights[f"{name}.bias"])
        return self._node("Add", self._node("MatMul", rows, weight), bias)

    def _normalised(self, name: str, rows: str) -> str:
        both = [self._constant(self._weights[f"{name}.{part}"]) for part in ("weight", "bias")]
        return self._node("LayerNormalization", rows, *both, epsilon=self._epsilon)

    def _node(self, kind: str, *inputs: str, **options: object) -> str:
        output = f"node_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [output], **options))
        return output

    def _constant(self, values: ArrayLike, kind: type = np.float32) -> str:
        name = f"constant_{len(self._constants)}"
        array = np.ascontiguousarray(np.asarray(values, dtype=kind))
        array = array.reshape(np.shape(values))
        self._constants.append(numpy_helper.from_array(array, name))
        return name


def convert(folder: Path, file: Path) -> None:
    """Write the encoder of a folder to an ONNX file."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if config["model_type"] != "bert" or config["hidden_act"] != "gelu":
        raise ValueError(
            f"{folder} holds a network of type {config['model_type']} with activation "
            f"{config['hidden_act']}; only bert with gelu is supported."
        )
    weights = load_file(folder / "model.safetensors")
    encoder = Encoder(
        weights, n_heads=config["num_attention_heads"], epsilon=config["layer_norm_eps"]
    )
    graph = encoder.graph(config["num_hidden_layers"])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, and convert."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="with config.json and model.safetensors")
    parser.add_argument("file", type=Path, help="the ONNX file to write")
    asked = parser.parse_args(arguments)
    convert(asked.folder, asked.file)


if __name__ == "__main__":
    main()
