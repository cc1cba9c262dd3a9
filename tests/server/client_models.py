"""The models that the client checks ask for, and what onnxruntime answers in their place."""
import os
import subprocess

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

# The name in the protocol, the type in ONNX, values of it. BF16 is not among numpy's types: its values are those of FP32 that fit.
TYPES = [
    ("FP32", TensorProto.FLOAT, numpy.float32, [0, -1.5, 3.25, 1e-30]),
    ("FP64", TensorProto.DOUBLE, numpy.float64, [0, -1.5, 1e300, 1e-300]),
    ("FP16", TensorProto.FLOAT16, numpy.float16, [0, -1.5, 65504, 6e-8]),
    ("INT8", TensorProto.INT8, numpy.int8, [0, -128, 127, 5]),
    ("INT16", TensorProto.INT16, numpy.int16, [0, -32768, 32767, 5]),
    ("INT32", TensorProto.INT32, numpy.int32, [0, -(1 << 31), (1 << 31) - 1, 5]),
    ("INT64", TensorProto.INT64, numpy.int64, [0, -(1 << 63), (1 << 63) - 1, (1 << 53) + 1]),
    ("UINT8", TensorProto.UINT8, numpy.uint8, [0, 1, 128, 255]),
    ("UINT16", TensorProto.UINT16, numpy.uint16, [0, 1, 32768, 65535]),
    ("UINT32", TensorProto.UINT32, numpy.uint32, [0, 1, 1 << 31, (1 << 32) - 1]),
    ("UINT64", TensorProto.UINT64, numpy.uint64, [0, 1, 1 << 63, (1 << 64) - 1]),
    ("BOOL", TensorProto.BOOL, numpy.bool_, [False, True, True, False]),
    ("BYTES", TensorProto.STRING, numpy.object_, [b"", b"weft", "schön".encode(), b"a" * 300]),
]
BF16 = ("BF16", TensorProto.BFLOAT16, numpy.float32, [0, -1.5, 3.25, 1.0])


def typed_model(name):
    return f"type_{name.lower()}"


def save(path, nodes, inputs, outputs, initialisers=()):
    graph = helper.make_graph(nodes, "checks", inputs, outputs, list(initialisers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def identity(path, kind):
    save(path, [helper.make_node("Identity", ["input"], ["output"])], [value("input", kind, ["batch", 4])], [value("output", kind, ["batch", 4])])


def sum_and_difference(path):
    """Two inputs, two outputs."""
    nodes = [helper.make_node("Add", ["left", "right"], ["sum"]), helper.make_node("Sub", ["left", "right"], ["difference"])]
    inputs, outputs = ([value(name, TensorProto.FLOAT, ["batch", 16]) for name in names] for names in (("left", "right"), ("sum", "difference")))
    save(path, nodes, inputs, outputs)


def slow(path, size=1024, layers=40):
    """A row of products, long enough to be caught while it runs."""
    weights = numpy.eye(size, dtype=numpy.float32)[::-1] + numpy.float32(1e-6)
    nodes = [helper.make_node("MatMul", [f"x{layer}", "w"], [f"x{layer + 1}"]) for layer in range(layers)]
    nodes.insert(0, helper.make_node("Identity", ["input"], ["x0"]))
    nodes.append(helper.make_node("Identity", [f"x{layers}"], ["output"]))
    shape = ["batch", 256, size]
    save(path, nodes, [value("input", TensorProto.FLOAT, shape)], [value("output", TensorProto.FLOAT, shape)], [numpy_helper.from_array(weights, "w")])


def write(folder, weft, with_bf16):
    """Writes all models; gives back their files by name."""
    models = {}

    def path(name):
        models[name] = os.path.join(folder, f"{name}.onnx")
        return models[name]

    for name, kind, *_ in TYPES + [BF16] * with_bf16:
        identity(path(typed_model(name)), kind)
    sum_and_difference(path("pair"))
    slow(path("slow"))
    subprocess.run([weft, "zoo", "tiny_resnet", "-o", path("image")], check=True, capture_output=True)
    return models


class Expected:
    """What onnxruntime answers."""

    def __init__(self, models):
        self.models, self.sessions = models, {}

    def run(self, model, **inputs):
        if model not in self.sessions:
            self.sessions[model] = onnxruntime.InferenceSession(self.models[model], providers=["CPUExecutionProvider"])
        session = self.sessions[model]
        return dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs)))


def image(rows, seed=0):
    return numpy.random.default_rng(seed).standard_normal((rows, 3, 32, 32), dtype=numpy.float32)


def pair(rows, seed=0):
    left, right = numpy.random.default_rng(seed).standard_normal((2, rows, 16), dtype=numpy.float32)
    return {"left": left, "right": right}
