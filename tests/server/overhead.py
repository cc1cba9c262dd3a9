"""What a server costs when the model costs nothing: an identity model of 16 floats on Weft, Triton and MLServer, measured in turns.

    tests/server/.peers/triton/bin/python tests/server/overhead.py --weft target/release/weft [--json out.json]

Each round measures every server under every load, in an order that moves on by one from round to round, so that what else the
machine does falls on all alike. wrk (HTTP) and h2load (gRPC) use one thread and share the cores with the server.
Before any timing each server's answer is compared with the input.
"""
import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time

import numpy
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client

import load_tools
import repositories
import servers
from summary import spread, table

MODEL = "identity"
VALUES = numpy.arange(16, dtype=numpy.float32).reshape(1, 16)
# Processor time tells servers apart even where other programs take their share of the cores.
QUANTITIES = {"c=1": [("latency_us_p50", "p50 us")], "c=16": [("requests_per_s", "requests/s"), ("processor_us", "server us/request")]}
GRPC_METHOD = "/inference.GRPCInferenceService/ModelInfer"
HTTP_PATH = f"/v2/models/{MODEL}/infer"
CONCURRENCY = (1, 16)
# MLServer answers tensors in binary over HTTP with an internal error.
WITHOUT_BINARY = ("mlserver",)
CONTENDERS = ("weft", "triton", "triton-python", "mlserver")


def http_request(binary):
    """The body and headers that tritonclient sends."""
    tensor = http_client.InferInput("input", list(VALUES.shape), "FP32")
    tensor.set_data_from_numpy(VALUES, binary_data=binary)
    body, header_length = http_client.InferenceServerClient.generate_request_body([tensor], outputs=[http_client.InferRequestedOutput("output", binary_data=binary)])
    headers = {"Content-Type": "application/octet-stream" if binary else "application/json"}
    if header_length is not None:
        headers["Inference-Header-Content-Length"] = header_length
    return body, headers


def grpc_request():
    request = grpc_client.service_pb2.ModelInferRequest(model_name=MODEL)
    request.inputs.add(name="input", datatype="FP32", shape=VALUES.shape)
    request.raw_input_contents.append(VALUES.tobytes())
    return request


def check(server):
    """Whether a server answers rightly over both protocols, and how long its gRPC message is."""
    with contextlib.closing(http_client.InferenceServerClient(server.http)) as client:
        for binary in (False,) if server.name in WITHOUT_BINARY else (False, True):
            tensor = http_client.InferInput("input", list(VALUES.shape), "FP32")
            tensor.set_data_from_numpy(VALUES, binary_data=binary)
            answer = client.infer(MODEL, [tensor], outputs=[http_client.InferRequestedOutput("output", binary_data=binary)])
            numpy.testing.assert_array_equal(answer.as_numpy("output"), VALUES)
    with contextlib.closing(grpc_client.InferenceServerClient(server.grpc)) as client:
        tensor = grpc_client.InferInput("input", list(VALUES.shape), "FP32")
        tensor.set_data_from_numpy(VALUES)
        answer = client.infer(MODEL, [tensor])
        numpy.testing.assert_array_equal(answer.as_numpy("output"), VALUES)
        return client._client_stub.ModelInfer(grpc_request()).ByteSize()


def loads(seconds):
    """The measurements of a round: name and a function of a server and the size of its gRPC answer."""
    of = {}
    for concurrency in CONCURRENCY:
        for kind, binary in (("HTTP JSON", False), ("HTTP binary", True)):
            body, headers = http_request(binary)
            of[f"{kind} c={concurrency}"] = lambda server, _, body=body, headers=headers, concurrency=concurrency: load_tools.http(
                server.http, HTTP_PATH, body, headers, concurrency, seconds)
        message = grpc_request().SerializeToString()
        of[f"gRPC c={concurrency}"] = lambda server, answer_bytes, message=message, concurrency=concurrency: load_tools.grpc(
            server.grpc, GRPC_METHOD, message, answer_bytes, concurrency, seconds)
    return of


def start(name, folder, options):
    path = os.path.join(folder, "identity.onnx")
    repositories.save_identity(path)
    models, home = {MODEL: path}, os.path.join(folder, name)
    os.makedirs(home)
    if name == "weft":
        return servers.weft(options.weft, repositories.weft_repository(home, models), folder)
    if name == "triton":
        return servers.triton(repositories.triton_repository(home, models, "identity"), folder)
    if name == "triton-python":
        repository = repositories.triton_repository(home, models, "identity-python", more="dynamic_batching { }\n")
        return servers.triton(repository, folder, name=name)
    return servers.mlserver(repositories.mlserver_repository(home, models), folder)


def measure(running, options):
    answer_bytes = {name: check(server) for name, server in running.items()}
    of, names = loads(options.seconds), list(running)
    results = {name: {load: [] for load in of} for name in names}
    for round_number in range(options.rounds):
        order = names[round_number % len(names):] + names[:round_number % len(names)]
        for load, measured in of.items():
            for name in order:
                if "binary" in load and name in WITHOUT_BINARY:
                    continue
                used_s = running[name].processor_s()
                result = measured(running[name], answer_bytes[name])
                used_us = (running[name].processor_s() - used_s) * 1e6 / result.requests
                results[name][load].append({**vars(result), "processor_us": used_us})
                print(f"round {round_number + 1} {load:18} {name:14} {result.requests_per_s:8.0f}/s p50 {result.latency_us_p50:6.0f} us, server {used_us:5.0f} us each", file=sys.stderr)
    return results


def advantage(own, other, quantity):
    """How much better the first of two servers fares, from their medians: above 1 is in its favour."""
    ratio = statistics.median(own) / statistics.median(other)
    return ratio if quantity == "requests_per_s" else 1 / ratio


def report(results, resident, ready):
    names = list(results)
    rows = []
    for load in results[names[0]]:
        for quantity, label in QUANTITIES[load.rsplit(" ", 1)[1]]:
            of = {name: [run[quantity] for run in results[name][load]] for name in names}
            cells = [f"{statistics.median(of[name]):.0f} ±{spread(of[name]):.0%}" if of[name] else "-" for name in names]
            better = [f"{advantage(of[names[0]], of[name], quantity):.2f}" if of[name] else "-" for name in names[1:]]
            rows.append([load, label, *cells, *better])
    rows.append(["resident after", "MB", *(f"{resident[name] / 1e6:.0f}" for name in names), *("" for _ in names[1:])])
    rows.append(["ready after", "s", *(f"{ready[name]:.2f}" for name in names), *("" for _ in names[1:])])
    print(table(["load", "", *names, *(f"{names[0]} to {name}" for name in names[1:])], rows))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--weft", help="the binary; without it only the peers are measured")
    arguments.add_argument("--servers", default=",".join(CONTENDERS), help="which servers, the first being compared with the others")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--seconds", type=int, default=3, help="of each measurement")
    arguments.add_argument("--json", help="where every single measurement is written")
    options = arguments.parse_args()
    names = [name for name in options.servers.split(",") if options.weft or name != "weft"]
    unknown = [name for name in names if name not in CONTENDERS]
    if unknown:
        arguments.error(f"no such server: {', '.join(unknown)}")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        running = {name: stack.enter_context(start(name, folder, options)) for name in names}
        load_before = os.getloadavg()[0]
        results = measure(running, options)
        resident = {name: server.resident_bytes() for name, server in running.items()}
        ready = {name: server.ready_s for name, server in running.items()}
    report(results, resident, ready)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"finished": time.time(), "load_average_before": load_before, "cores": os.cpu_count(), "rounds": options.rounds,
                       "seconds": options.seconds, "results": results, "resident_bytes": resident, "ready_s": ready}, file, indent=1)


if __name__ == "__main__":
    main()
