"""Writes the same ONNX model where each server looks for its models."""
import json
import os
import shutil

import onnx
from onnx import TensorProto, helper

from servers import PEERS_CODE

TRITON_TYPES = {
    TensorProto.FLOAT: "TYPE_FP32", TensorProto.DOUBLE: "TYPE_FP64", TensorProto.FLOAT16: "TYPE_FP16", TensorProto.BFLOAT16: "TYPE_BF16",
    TensorProto.INT8: "TYPE_INT8", TensorProto.INT16: "TYPE_INT16", TensorProto.INT32: "TYPE_INT32", TensorProto.INT64: "TYPE_INT64",
    TensorProto.UINT8: "TYPE_UINT8", TensorProto.UINT16: "TYPE_UINT16", TensorProto.UINT32: "TYPE_UINT32", TensorProto.UINT64: "TYPE_UINT64",
    TensorProto.BOOL: "TYPE_BOOL", TensorProto.STRING: "TYPE_STRING",
}
MAX_BATCH = 64


def placed(path, target):
    """The same file under another name: a link where the disk has one, since models may be large."""
    try:
        os.link(path, target)
    except OSError:
        shutil.copy(path, target)


def save_identity(path, width=16):
    """An ONNX model that answers rows of `width` floats with themselves."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", width]) for name in ("input", "output")]
    graph = helper.make_graph([helper.make_node("Identity", ["input"], ["output"], "copy")], "identity", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)


def weft_repository(folder, models):
    """`models` maps names to ONNX files; Triton's layout without configuration."""
    for name, path in models.items():
        version = os.path.join(folder, name, "1")
        os.makedirs(version)
        placed(path, os.path.join(version, "model.onnx"))
    return folder


def mlserver_metadata(values):
    """What a model says of its values; MLServer cannot tell from the file."""
    kinds = {kind: name.removeprefix("TYPE_") for kind, name in TRITON_TYPES.items()}
    entries = []
    for value in values:
        kind = value.type.tensor_type
        sizes = [axis.dim_value if axis.HasField("dim_value") else -1 for axis in kind.shape.dim]
        entries.append({"name": value.name, "datatype": kinds[kind.elem_type], "shape": sizes})
    return entries


def mlserver_repository(folder, models, threads=0):
    for name, path in models.items():
        graph = onnx.load(path, load_external_data=False).graph
        home = os.path.join(folder, name)
        os.makedirs(home)
        parameters = {"uri": os.path.abspath(path), "version": "1", "extra": {"threads": threads}}
        with open(os.path.join(home, "model-settings.json"), "w") as file:
            json.dump({"name": name, "implementation": "mlserver_onnx.OnnxModel", "parameters": parameters,
                       "inputs": mlserver_metadata(graph.input), "outputs": mlserver_metadata(graph.output)}, file)
    return folder


def triton_values(values):
    """The part of a value's shape after the batch, in Triton's configuration language."""
    entries = []
    for value in values:
        kind = value.type.tensor_type
        sizes = [axis.dim_value if axis.HasField("dim_value") else -1 for axis in kind.shape.dim][1:]
        entries.append(f'{{ name: "{value.name}" data_type: {TRITON_TYPES[kind.elem_type]} dims: {sizes} }}')
    return ", ".join(entries)


def triton_repository(folder, models, back_end="onnx", threads=0, more=""):
    """`back_end`: `onnx` and `identity-python` run in Triton's Python back end, `identity` in the one compiled here.

    `more` is added to each model's configuration: dynamic batching, priorities, the rate limiter.
    """
    for name, path in models.items():
        version = os.path.join(folder, name, "1")
        os.makedirs(version)
        graph = onnx.load(path, load_external_data=False).graph
        if back_end != "identity":
            source = {"onnx": "triton_onnx.py", "identity-python": "triton_identity.py"}[back_end]
            shutil.copy(os.path.join(PEERS_CODE, source), os.path.join(version, "model.py"))
        if back_end == "onnx":
            placed(path, os.path.join(version, "model.onnx"))
        with open(os.path.join(folder, name, "config.pbtxt"), "w") as file:
            file.write(f'name: "{name}"\nbackend: "{"identity" if back_end == "identity" else "python"}"\nmax_batch_size: {MAX_BATCH}\n')
            file.write(f"input [ {triton_values(graph.input)} ]\noutput [ {triton_values(graph.output)} ]\n")
            file.write('instance_group [ { kind: KIND_CPU count: 1 } ]\n')
            if threads:
                file.write(f'parameters {{ key: "threads" value: {{ string_value: "{threads}" }} }}\n')
            file.write(more)
    return folder
