"""Valid requests with something changed at random, over HTTP and over gRPC. The seed is fixed, so that what fails can be repeated."""
import json
import random

import grpc
import tritonclient.grpc as grpc_client

from abuse_checks.raw import ALLOWED, GOOD, INFER, connected, head, read_answer
from checks import Checks, holds

checks = Checks()
PIECES = [b"", b"0", b"-1", b"1e999", b"99999999999999999999", b"null", b"[]", b"{}", b'"', b"\\u0000", b"\xff\xfe", b"\x00" * 8, b"\xff" * 8, b",", b":", b"[" * 64]
CODES = grpc.StatusCode
ALLOWED_CODES = {CODES.INVALID_ARGUMENT, CODES.NOT_FOUND, CODES.UNIMPLEMENTED, CODES.RESOURCE_EXHAUSTED, CODES.DEADLINE_EXCEEDED, CODES.OUT_OF_RANGE,
                 CODES.FAILED_PRECONDITION, CODES.UNAVAILABLE, CODES.CANCELLED}


def mutated(data, draw):
    """One to four changes: bits flipped, parts cut out, repeated, moved, or replaced."""
    data = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        at = draw.randrange(len(data) + 1)
        to = min(len(data), at + draw.choice((1, 1, 2, 4, 8, 40)))
        kind = draw.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del data[at:to]
        elif kind == 2:
            data[at:at] = data[at:to]
        elif kind == 3:
            data[at:to] = draw.choice(PIECES)
        elif kind == 4:
            data[at:at] = draw.randbytes(draw.choice((1, 4, 16)))
        else:
            del data[at:]
    return bytes(data)


def http_requests():
    """Bodies and headers to start from."""
    tensor = {"name": "input", "shape": [1, 16], "datatype": "FP32", "parameters": {"binary_data_size": 64}}
    header = json.dumps({"id": "7", "inputs": [tensor], "outputs": [{"name": "output", "parameters": {"binary_data": True}}]}).encode()
    rich = {**GOOD, "id": "7", "parameters": {"priority": 1, "timeout": 1_000_000}, "outputs": [{"name": "output", "parameters": {"classification": 2}}]}
    return [(json.dumps(GOOD).encode(), {}), (json.dumps(rich).encode(), {}), (header + bytes(range(64)), {"Inference_Header_Content_Length": len(header)})]


@checks.add("mutations of HTTP bodies")
def http_bodies(context):
    draw, starts = random.Random(1), http_requests()
    stream, answered = connected(context.server), {}
    try:
        for number in range(context.mutations):
            body, headers = starts[number % len(starts)]
            body = mutated(body, draw)
            request = head(INFER, len(body), **headers) + body
            stream.sendall(request)
            answer = read_answer(stream)
            holds(answer is not None, f"no answer to mutation {number}: {request!r}")
            holds(answer[0] in ALLOWED, f"mutation {number} was answered with {answer[0]} {answer[1][:300]!r}: {request!r}")
            holds(answer[0] == 200 or json.loads(answer[1])["error"], f"mutation {number}: {answer}")
            answered[answer[0]] = answered.get(answer[0], 0) + 1
            if answer[0] in (408, 413, 431):
                stream.close()
                stream = connected(context.server)
    finally:
        stream.close()
    holds(len(answered) > 1, answered)
    context.note(f"{context.mutations} mutated HTTP bodies: {dict(sorted(answered.items()))}")


@checks.add("mutations of whole HTTP requests")
def http_requests_whole(context):
    draw, starts = random.Random(2), http_requests()
    answered = {}
    for number in range(context.mutations):
        body, headers = starts[number % len(starts)]
        request = mutated(head(INFER, len(body), **headers), draw) + body
        with connected(context.server) as stream:
            try:
                stream.sendall(request)
                stream.shutdown(1)
            except (ConnectionError, OSError):
                pass
            answer = read_answer(stream)
        status = answer[0] if answer else None
        holds(status is None or status in ALLOWED or status in (100, 101, 505), f"mutation {number} was answered with {answer}: {request!r}")
        answered[status] = answered.get(status, 0) + 1
    context.note(f"{context.mutations} mutated HTTP requests: {dict(sorted(answered.items(), key=str))}")


def grpc_requests():
    messages = grpc_client.service_pb2
    raw = messages.ModelInferRequest(model_name="identity", id="7")
    raw.inputs.add(name="input", datatype="FP32", shape=[1, 16])
    raw.outputs.add(name="output")
    raw.raw_input_contents.append(bytes(range(64)))
    raw.parameters["priority"].int64_param = 1
    typed = messages.ModelInferRequest(model_name="identity")
    typed.inputs.add(name="input", datatype="FP32", shape=[1, 16]).contents.fp32_contents.extend(range(16))
    return [raw.SerializeToString(), typed.SerializeToString()]


@checks.add("mutations of gRPC messages")
def grpc_messages(context):
    draw, starts, answered = random.Random(3), grpc_requests(), {}
    with grpc.insecure_channel(context.server.grpc) as channel:
        infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        for number in range(context.mutations):
            message = mutated(starts[number % len(starts)], draw)
            try:
                infer(message, timeout=30)
                code = CODES.OK
            except grpc.RpcError as error:
                code = error.code()
                holds(code in ALLOWED_CODES and error.details(), f"mutation {number} was answered with {code} {error.details()!r}: {message!r}")
            answered[code.name] = answered.get(code.name, 0) + 1
    holds(len(answered) > 1, answered)
    context.note(f"{context.mutations} mutated gRPC messages: {dict(sorted(answered.items()))}")


@checks.add("mutations of other gRPC calls")
def grpc_other(context):
    messages, draw = grpc_client.service_pb2, random.Random(4)
    calls = {
        "ModelReady": messages.ModelReadyRequest(name="identity"), "ModelMetadata": messages.ModelMetadataRequest(name="identity"),
        "ModelConfig": messages.ModelConfigRequest(name="identity"), "ModelStatistics": messages.ModelStatisticsRequest(name="identity"),
        "RepositoryIndex": messages.RepositoryIndexRequest(ready=True), "RepositoryModelLoad": messages.RepositoryModelLoadRequest(model_name="nobody"),
        "SystemSharedMemoryRegister": messages.SystemSharedMemoryRegisterRequest(name="r", key="/none", byte_size=64),
        "CudaSharedMemoryRegister": messages.CudaSharedMemoryRegisterRequest(name="r", raw_handle=bytes(64), byte_size=64),
        "TraceSetting": messages.TraceSettingRequest(), "LogSettings": messages.LogSettingsRequest(), "NoSuchCall": messages.ServerLiveRequest(),
    }
    with grpc.insecure_channel(context.server.grpc) as channel:
        for number in range(context.mutations // 4):
            name = draw.choice(list(calls))
            message = mutated(calls[name].SerializeToString() or b"\x0a\x01x", draw)
            try:
                channel.unary_unary(f"/inference.GRPCInferenceService/{name}")(message, timeout=30)
            except grpc.RpcError as error:
                holds(error.code() in ALLOWED_CODES | {CODES.ALREADY_EXISTS}, f"{name} was answered with {error.code()} {error.details()!r}: {message!r}")
