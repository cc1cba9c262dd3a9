"""Writes the fuzzer's seed models. Needs the Python package onnx."""

import pathlib

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

MODELS = {
    "elementwise": """
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[N,3] x, float[3] b = {1, 2, 3}) => (float[N,3] y)
        { t = Add(x, b)  y = Relu(t) }
    """,
    "convolution": """
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[1,1,4,4] x) => (float[1,2,1,1] y)
        <float[2,1,3,3] w = {1,0,1,0,1,0,1,0,1, 0,1,0,1,0,1,0,1,0}>
        {
            c = Conv <pads = [0,0,0,0], strides = [1,1]> (x, w)
            y = MaxPool <kernel_shape = [2,2]> (c)
        }
    """,
    "shapes": """
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[2,3,4] x) => (float[?,?] y)
        {
            s = Constant <value_ints = [-1, 4]> ()
            r = Reshape(x, s)
            t = Transpose <perm = [1,0]> (r)
            a, b = Split <axis = 1, num_outputs = 2> (t)
            c = Concat <axis = 0> (a, b)
            y = Softmax <axis = -1> (c)
        }
    """.replace("17", "18"),
    "product": """
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[2,3] x) => (float[2,2] y)
        <float[3,2] w = {1,2,3,4,5,6}, float[2] b = {1,2}>
        { y = Gemm <alpha = 0.5> (x, w, b) }
    """,
    "recurrent": """
        <ir_version: 8, opset_import: ["" : 14]>
        g (float[2,1,1] x) => (float[2,1,1,1] y, float[1,1,1] h)
        <float[1,4,1] w = {1,2,3,4}, float[1,4,1] r = {1,2,3,4}>
        { y, h = LSTM <hidden_size = 1> (x, w, r) }
    """,
    "function": """
        <ir_version: 9, opset_import: ["" : 19, "local" : 1]>
        g (float[N] x) => (float[N] y) { y = local.twice <slope = 0.5> (x) }
        <opset_import: ["" : 19, "local" : 1], domain: "local">
        twice <slope> (x) => (y) { h = local.leaky <slope: float = @slope> (x)  y = local.leaky <slope: float = @slope> (h) }
        <opset_import: ["" : 19], domain: "local">
        leaky <slope> (a) => (b) { b = LeakyRelu <alpha: float = @slope> (a) }
    """,
    "branch": """
        <ir_version: 8, opset_import: ["" : 17]>
        g (bool c, float[N] x) => (float[N] y)
        {
            w = Neg(x)
            y = If (c) <
                then_branch = t () => (float[N] a) { a = Add(x, w) },
                else_branch = e () => (float[N] b) { b = Sub(x, w) }
            >
        }
    """,
    "loop": """
        <ir_version: 8, opset_import: ["" : 17]>
        g (int64 n, float[N] x) => (float[N] y)
        {
            c = Constant <value = bool {1}> ()
            y = Loop (n, c, x) <
                body = b (int64 i, bool k, float[N] v) => (bool o, float[N] u) {
                    o = Identity(k)
                    u = Add(v, x)
                }
            >
        }
    """,
    "text": """
        <ir_version: 8, opset_import: ["" : 17]>
        g () => (string[2] y) { y = Constant <value_strings = ["a", "b"]> () }
    """,
}


def tensors():
    """A model with an initialiser of every element type, and a sparse one."""
    initialisers = []
    for name, code in TensorProto.DataType.items():
        if name in ("UNDEFINED", "STRING"):
            continue
        size = {"COMPLEX64": 8, "COMPLEX128": 16, "DOUBLE": 8, "INT64": 8, "UINT64": 8}.get(name)
        if size is None:
            size = 4 if name in ("FLOAT", "INT32", "UINT32") else 2 if "16" in name else 1
        tensor = TensorProto(name=name, data_type=code, dims=[1], raw_data=bytes(size))
        initialisers.append(tensor)
    values = numpy_helper.from_array(numpy.array([5.0], dtype=numpy.float32), "sparse")
    indices = numpy_helper.from_array(numpy.array([2], dtype=numpy.int64), "indices")
    outputs = [helper.make_tensor_value_info(t.name, t.data_type, [1]) for t in initialisers]
    outputs.append(helper.make_tensor_value_info("sparse", TensorProto.FLOAT, [4]))
    graph = helper.make_graph([], "tensors", [], outputs, initialisers)
    graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4]))
    return helper.make_model(graph, ir_version=13, opset_imports=[helper.make_opsetid("", 25)])


def main():
    folder = pathlib.Path(__file__).parent / "corpus" / "load_model"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in MODELS.items():
        (folder / f"seed_{name}.onnx").write_bytes(parser.parse_model(text).SerializeToString())
    (folder / "seed_tensors.onnx").write_bytes(tensors().SerializeToString())


if __name__ == "__main__":
    main()
