"""Small ONNX files whose outputs are known, built on the spot."""

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def write(path, nodes, inputs, outputs, constants=()):
    """Write a network; inputs and outputs are (name, type, shape)."""
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info(*given) for given in inputs],
        [helper.make_tensor_value_info(*given) for given in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants],
    )
    opset = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    checker.check_model(model)
    save(model, path)
    return path


def mean_colour(path, shape=("n", 3, "h", "w"), weights=None):
    """Write the mean of each channel, channels first, times a matrix if there is one."""
    kind, pooled = TensorProto.FLOAT, "features" if weights is None else "means"
    nodes = [
        helper.make_node("GlobalAveragePool", ["image"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], [pooled]),
    ]
    constants = []
    if weights is not None:
        nodes.append(helper.make_node("MatMul", ["means", "weights"], ["features"]))
        constants = [("weights", weights.astype(np.float32))]
    length = 3 if weights is None else weights.shape[1]
    outputs = [("features", kind, (shape[0], length))]
    return write(path, nodes, [("image", kind, shape)], outputs, constants)


def mean_colour_last(path):
    """Write the mean of each channel, channels last."""
    nodes = [helper.make_node("ReduceMean", ["image"], ["features"], axes=[1, 2], keepdims=0)]
    shape = ("n", 8, 8, 3)
    return write(path, nodes, [("image", FLOAT, shape)], [("features", FLOAT, ("n", 3))])


def two_outputs(path, shape=("n", 3, 8, 8)):
    """Write the picture itself as "maps", and its negative as "negative"."""
    nodes = [
        helper.make_node("Identity", ["image"], ["maps"]),
        helper.make_node("Neg", ["image"], ["negative"]),
    ]
    outputs = [("maps", FLOAT, shape), ("negative", FLOAT, shape)]
    return write(path, nodes, [("image", FLOAT, shape)], outputs)


def word_vectors(path, table, *, mask=True, pooled=False):
    """Write a row of the table for each piece of a text; or the sum over pieces."""
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["pieces"], axis=0)]
    constants = [("table", table.astype(np.float32))]
    inputs = [("input_ids", INT64, ("n", "t"))]
    if mask:
        inputs.append(("attention_mask", INT64, ("n", "t")))
        nodes.append(helper.make_node("Cast", ["attention_mask"], ["unused"], to=FLOAT))
    outputs = [("pieces", FLOAT, ("n", "t", table.shape[1]))]
    if pooled:
        constants.append(("axis", np.array([1])))
        nodes.append(helper.make_node("ReduceSum", ["pieces", "axis"], ["sums"], keepdims=0))
        outputs = [("sums", FLOAT, ("n", table.shape[1]))]
    return write(path, nodes, inputs, outputs, constants)
