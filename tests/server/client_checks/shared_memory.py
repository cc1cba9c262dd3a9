"""Tensors in system shared memory, over HTTP and over gRPC."""
import contextlib
import os

import numpy
import tritonclient.utils.shared_memory as shared_memory

import client_models
from checks import Checks, holds, refused, same
from client_checks.protocols import Grpc, Http, near

checks = Checks()


@contextlib.contextmanager
def region(protocol, name, size_bytes):
    """A region that exists and that the server knows, until the end."""
    key = f"/weft_{name}_{os.getpid()}"
    handle = shared_memory.create_shared_memory_region(name, key, size_bytes)
    try:
        protocol.client.register_system_shared_memory(name, key, size_bytes)
        try:
            yield handle
        finally:
            protocol.client.unregister_system_shared_memory(name)
    finally:
        shared_memory.destroy_shared_memory_region(handle)


def on_both(name, only=None):
    def register(function):
        for protocol in (Http, Grpc):
            checks.add(f"{protocol.name} shared memory: {name}", only)(lambda context, protocol=protocol: function(context, context.protocol(protocol)))
        return function
    return register


@on_both("inputs and outputs")
def inputs_and_outputs(context, protocol):
    array = client_models.image(3)
    expected = context.expected.run("image", input=array)["output"]
    offset = 64
    with region(protocol, "in", array.nbytes + offset) as given, region(protocol, "out", expected.nbytes) as taken:
        same(set(protocol.regions()), {"in", "out"})
        shared_memory.set_shared_memory_region(given, [array], offset=offset)
        tensor = protocol.module.InferInput("input", list(array.shape), "FP32")
        tensor.set_shared_memory("in", array.nbytes, offset)
        output = protocol.module.InferRequestedOutput("output")
        output.set_shared_memory("out", expected.nbytes)
        answer = protocol.client.infer("image", [tensor], outputs=[output])
        holds(not protocol.carries(answer, "output"), "the output is in the message, too")
        near(shared_memory.get_contents_as_numpy(taken, numpy.float32, list(expected.shape)), expected)
        near(protocol.client.infer("image", [tensor]).as_numpy("output"), expected)
    same(set(protocol.regions()), set())


@on_both("what is not there is refused")
def wrong(context, protocol):
    array = client_models.image(1)
    tensor = protocol.module.InferInput("input", list(array.shape), "FP32")
    bad = ("400", "404", "INVALID_ARGUMENT", "NOT_FOUND")
    tensor.set_shared_memory("unheard", array.nbytes)
    refused(lambda: protocol.client.infer("image", [tensor]), bad, "unheard")
    refused(lambda: protocol.client.register_system_shared_memory("none", "/weft_no_such_key", 64))
    with region(protocol, "small", 1024):
        tensor.set_shared_memory("small", array.nbytes)
        refused(lambda: protocol.client.infer("image", [tensor]), bad, "small")
        tensor.set_shared_memory("small", 512, 1 << 62)
        refused(lambda: protocol.client.infer("image", [tensor]), bad)
    near(protocol.client.infer("image", [protocol.input("input", array)]).as_numpy("output"), context.expected.run("image", input=array)["output"])


@on_both("a key cannot lead out of shared memory", only="weft")
def escaping(context, protocol):
    for key in ("/../../etc/passwd", "../etc/passwd", "/etc/passwd", "", "/", "/."):
        refused(lambda: protocol.client.register_system_shared_memory("escape", key, 16))
    same(set(protocol.regions()), set())
