"""Bidirectional streams of the blocking gRPC client."""
import queue

import client_models
from checks import Checks, holds, same
from client_checks.protocols import Grpc, near

checks = Checks()


@checks.add("gRPC: a stream of requests")
def stream(context):
    protocol, answers, count = Grpc(context.server), queue.Queue(), 20
    protocol.client.start_stream(lambda result, error: answers.put((result, error)))
    for seed in range(count):
        protocol.client.async_stream_infer("image", [protocol.input("input", client_models.image(1, seed))], request_id=str(seed))
    seen = set()
    for _ in range(count):
        result, error = answers.get(timeout=60)
        holds(error is None, error)
        seed = int(result.get_response().id)
        near(result.as_numpy("output"), context.expected.run("image", input=client_models.image(1, seed))["output"])
        seen.add(seed)
    protocol.client.stop_stream()
    same(seen, set(range(count)))


@checks.add("gRPC: a wrong request does not end its stream")
def error_in_stream(context):
    protocol, answers = Grpc(context.server), queue.Queue()
    protocol.client.start_stream(lambda result, error: answers.put((result, error)))
    image = client_models.image(1)
    protocol.client.async_stream_infer("image", [protocol.input("input", image[:, :2])], request_id="wrong")
    result, error = answers.get(timeout=60)
    holds(error is not None and "input" in str(error), error)
    protocol.client.async_stream_infer("image", [protocol.input("input", image)], request_id="right")
    result, error = answers.get(timeout=60)
    holds(error is None, error)
    near(result.as_numpy("output"), context.expected.run("image", input=image)["output"])
    protocol.client.stop_stream()


@checks.add("gRPC: the last answer of a stream says so")
def final_response(context):
    protocol, answers = Grpc(context.server), queue.Queue()
    protocol.client.start_stream(lambda result, error: answers.put((result, error)))
    protocol.client.async_stream_infer("image", [protocol.input("input", client_models.image(1))], enable_empty_final_response=True)
    while True:
        result, error = answers.get(timeout=60)
        holds(error is None, error)
        if result.get_response().parameters["triton_final_response"].bool_param:
            break
    protocol.client.stop_stream()
