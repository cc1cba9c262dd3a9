"""Health, metadata, configuration, inference, statistics, the repository, parameters, compression: over HTTP and over gRPC."""
import json
import threading
import urllib.request

import numpy
from tritonclient.utils import InferenceServerException

import client_models
from checks import Checks, holds, refused, same
from client_checks.protocols import Grpc, Http, near

checks = Checks()


def on_both(name, only=None):
    """Registers a check for each protocol; it takes the context and the protocol."""
    def register(function):
        for protocol in (Http, Grpc):
            checks.add(f"{protocol.name}: {name}", only)(lambda context, protocol=protocol: function(context, context.protocol(protocol)))
        return function
    return register


@on_both("health")
def health(context, protocol):
    client = protocol.client
    holds(client.is_server_live() and client.is_server_ready() and client.is_model_ready("image") and client.is_model_ready("image", "1"))
    holds(not client.is_model_ready("nobody"))
    holds(not client.is_model_ready("image", "7"))


@on_both("server metadata")
def server_metadata(context, protocol):
    metadata = protocol.ask("get_server_metadata")
    holds(metadata["name"] and metadata["version"], metadata)
    for extension in ("model_repository", "model_configuration", "statistics", "system_shared_memory", "binary_tensor_data", "parameters", "schedule_policy"):
        holds(extension in metadata["extensions"], f"{extension} is not in {metadata['extensions']}")


@on_both("model metadata")
def model_metadata(context, protocol):
    metadata = protocol.ask("get_model_metadata", "image")
    same((metadata["name"], [str(version) for version in metadata["versions"]]), ("image", ["1"]))
    same(metadata["inputs"], [{"name": "input", "datatype": "FP32", "shape": [-1, 3, 32, 32]}])
    same(metadata["outputs"], [{"name": "output", "datatype": "FP32", "shape": [-1, 10]}])
    names = {tensor["name"] for tensor in protocol.ask("get_model_metadata", "pair")["outputs"]}
    same(names, {"sum", "difference"})
    refused(lambda: protocol.ask("get_model_metadata", "nobody"), ("404", "NOT_FOUND"), "nobody")


@on_both("model configuration")
def model_configuration(context, protocol):
    config = protocol.config("image")
    same(config["name"], "image")
    holds(config["max_batch_size"] >= 1, config)
    same([(tensor["name"], tensor["data_type"], tensor["dims"]) for tensor in config["input"]], [("input", "TYPE_FP32", [3, 32, 32])])
    same([(tensor["name"], tensor["data_type"], tensor["dims"]) for tensor in config["output"]], [("output", "TYPE_FP32", [10])])


@on_both("inference of several rows")
def inference(context, protocol):
    for rows in (1, 2, 3, 8):
        array = client_models.image(rows, rows)
        expected = context.expected.run("image", input=array)["output"]
        for binary in (True, False):
            answer = protocol.client.infer("image", [protocol.input("input", array, binary=binary)], outputs=[protocol.output("output", binary)])
            near(answer.as_numpy("output"), expected)
        near(protocol.client.infer("image", [protocol.input("input", array)], model_version="1").as_numpy("output"), expected)


@on_both("a request's id comes back")
def request_id(context, protocol):
    answer = protocol.client.infer("image", [protocol.input("input", client_models.image(1))], request_id="seventeen")
    response = answer.get_response()
    same(response["id"] if isinstance(response, dict) else response.id, "seventeen")


@on_both("two inputs, two outputs, in any order")
def two_outputs(context, protocol):
    arrays = client_models.pair(3)
    expected = context.expected.run("pair", **arrays)
    inputs = [protocol.input(name, arrays[name]) for name in ("right", "left")]
    for wanted in (None, ["sum"], ["difference"], ["difference", "sum"]):
        outputs = None if wanted is None else [protocol.output(name) for name in wanted]
        answer = protocol.client.infer("pair", inputs, outputs=outputs)
        for name in expected:
            if wanted is None or name in wanted:
                near(answer.as_numpy(name), expected[name])
            else:
                holds(answer.as_numpy(name) is None, f"{name} was not asked for")


def typed(kind):
    for name, _, data_type, values in client_models.TYPES + [client_models.BF16] * (kind == "weft"):
        array = numpy.array([values, values[::-1]], dtype=data_type)
        yield name, array


@on_both("every data type")
def data_types(context, protocol):
    for name, array in typed(context.kind):
        model = client_models.typed_model(name)
        # JSON has no numbers of half precision.
        for binary in (True,) if name in ("FP16", "BF16") else (True, False):
            answer = protocol.client.infer(model, [protocol.input("input", array, name, binary)], outputs=[protocol.output("output", binary)])
            got = answer.as_numpy("output")
            if name == "BYTES" and not binary:
                got = numpy.array([[text.encode() if isinstance(text, str) else text for text in row] for row in got], dtype=object)
            try:
                numpy.testing.assert_array_equal(got, array)
            except AssertionError as error:
                raise AssertionError(f"{name}, {'binary' if binary else 'JSON'}: {error}") from error


@on_both("classification")
def classification(context, protocol):
    array = client_models.image(2)
    expected = context.expected.run("image", input=array)["output"]
    answer = protocol.client.infer("image", [protocol.input("input", array)], outputs=[protocol.output("output", class_count=3)])
    rows = answer.as_numpy("output").reshape(2, 3)
    for row, scores in zip(rows, expected):
        entries = [entry.decode().split(":") for entry in row]
        same([int(entry[1]) for entry in entries], list(numpy.argsort(-scores)[:3]))
        near(numpy.array([float(entry[0]) for entry in entries], dtype=numpy.float32), numpy.sort(scores)[::-1][:3])


@on_both("wrong requests are told what is wrong")
def wrong_requests(context, protocol):
    client, image = protocol.client, client_models.image(1)
    good = protocol.input("input", image)
    bad, missing = ("400", "INVALID_ARGUMENT"), ("404", "NOT_FOUND", "400", "INVALID_ARGUMENT")
    refused(lambda: client.infer("nobody", [good]), ("404", "NOT_FOUND"), "nobody")
    refused(lambda: client.infer("image", [good], model_version="7"), missing)
    refused(lambda: client.infer("image", [protocol.input("input", image[:, :2])]), bad, "input")
    refused(lambda: client.infer("image", [protocol.input("input", image[0])]), bad, "input")
    refused(lambda: client.infer("image", [protocol.input("input", image.astype(numpy.float64))]), bad, "input")
    refused(lambda: client.infer("image", [protocol.input("picture", image)]), bad, "picture")
    refused(lambda: client.infer("image", []), bad)
    refused(lambda: client.infer("pair", [protocol.input("left", client_models.pair(1)["left"])]), bad)
    refused(lambda: client.infer("image", [good], outputs=[protocol.output("nothing")]), bad, "nothing")
    near(client.infer("image", [good]).as_numpy("output"), context.expected.run("image", input=image)["output"])


@on_both("rows that differ between inputs are refused", only="weft")
def differing_rows(context, protocol):
    two, three = client_models.pair(2), client_models.pair(3)
    inputs = [protocol.input("left", two["left"]), protocol.input("right", three["right"])]
    refused(lambda: protocol.client.infer("pair", inputs), ("400", "INVALID_ARGUMENT"))


@on_both("priority and timeout are taken")
def parameters(context, protocol):
    array = client_models.image(1)
    expected = context.expected.run("image", input=array)["output"]
    for options in ({"priority": 1}, {"priority": 2, "timeout": 30_000_000}, {"timeout": 30_000_000}, {"parameters": {"colour": "red", "weight": 3}}):
        near(protocol.client.infer("image", [protocol.input("input", array)], **options).as_numpy("output"), expected)


@on_both("a timeout that cannot be kept is refused", only="weft")
def short_timeout(context, protocol):
    array = numpy.zeros((1, 256, 1024), dtype=numpy.float32)
    protocol.client.infer("slow", [protocol.input("input", array)])
    message = refused(lambda: protocol.client.infer("slow", [protocol.input("input", array)], timeout=100), ("504", "DEADLINE_EXCEEDED", "429", "RESOURCE_EXHAUSTED"))
    holds("predict" in message or "deadline" in message or "timeout" in message or "time" in message, message)


@on_both("statistics count every row")
def statistics(context, protocol):
    def counts():
        model, = protocol.ask("get_inference_statistics", "pair")["model_stats"]
        return model

    before = counts()
    arrays = client_models.pair(3)
    for _ in range(5):
        protocol.client.infer("pair", [protocol.input(name, array) for name, array in arrays.items()])
    after = counts()
    same(after["inference_count"] - before.get("inference_count", 0), 15)
    executed = after["execution_count"] - before.get("execution_count", 0)
    holds(1 <= executed <= 5, f"{executed} executions")
    success = after["inference_stats"]["success"]
    same(success["count"] - before["inference_stats"]["success"].get("count", 0), 5)
    holds(success["ns"] > before["inference_stats"]["success"].get("ns", 0))
    holds(len(protocol.ask("get_inference_statistics")["model_stats"]) >= len(context.expected.models))


@on_both("models are unloaded and loaded again")
def repository(context, protocol):
    client = protocol.client
    same({name for name, entry in protocol.index().items() if entry.get("state") == "READY"}, set(context.expected.models))
    arrays = client_models.pair(1)
    inputs = [protocol.input(name, array) for name, array in arrays.items()]
    client.unload_model("pair")
    context.eventually(lambda: not client.is_model_ready("pair"))
    refused(lambda: client.infer("pair", inputs), ("400", "404", "503", "UNAVAILABLE", "NOT_FOUND"), "pair")
    context.eventually(lambda: protocol.index()["pair"].get("state") == "UNAVAILABLE")
    client.load_model("pair")
    context.eventually(lambda: client.is_model_ready("pair"))
    near(client.infer("pair", inputs).as_numpy("sum"), context.expected.run("pair", **arrays)["sum"])
    refused(lambda: client.load_model("nobody"), "nobody")
    holds(client.is_model_ready("image"))


@on_both("compressed requests and answers")
def compression(context, protocol):
    array = client_models.image(4)
    expected = context.expected.run("image", input=array)["output"]
    for options in protocol.compressions:
        near(protocol.client.infer("image", [protocol.input("input", array)], **options).as_numpy("output"), expected)


@checks.add("HTTP: many requests at once")
def http_concurrent(context):
    protocol = context.protocol(Http)
    arrays = [client_models.image(1 + seed % 3, seed) for seed in range(12)]
    pending = [protocol.client.async_infer("image", [protocol.input("input", array)]) for array in arrays]
    for array, request in zip(arrays, pending):
        near(request.get_result().as_numpy("output"), context.expected.run("image", input=array)["output"])


def completed(count):
    """A callback for `async_infer`, and a function that waits for `count` calls of it."""
    answers, done = [], threading.Semaphore(0)

    def callback(result, error, index=None):
        answers.append((result, error))
        done.release()

    def wait():
        for _ in range(count):
            holds(done.acquire(timeout=60), f"{len(answers)} of {count} answers after a minute")
        return answers

    return callback, wait


@checks.add("gRPC: many requests at once")
def grpc_concurrent(context):
    protocol = context.protocol(Grpc)
    arrays = [client_models.image(1 + seed % 3, seed) for seed in range(24)]
    callback, wait = completed(len(arrays))
    for seed, array in enumerate(arrays):
        protocol.client.async_infer("image", [protocol.input("input", array)], callback, request_id=str(seed))
    for result, error in wait():
        holds(error is None, error)
        array = arrays[int(result.get_response().id)]
        near(result.as_numpy("output"), context.expected.run("image", input=array)["output"])


@checks.add("gRPC: typed contents instead of raw ones")
def typed_contents(context):
    protocol = context.protocol(Grpc)
    messages = protocol.module.service_pb2
    fields = {"FP32": "fp32_contents", "FP64": "fp64_contents", "BOOL": "bool_contents", "INT8": "int_contents", "INT16": "int_contents",
              "INT32": "int_contents", "INT64": "int64_contents", "UINT8": "uint_contents", "UINT16": "uint_contents",
              "UINT32": "uint_contents", "UINT64": "uint64_contents", "BYTES": "bytes_contents"}
    for name, array in typed(context.kind):
        if name not in fields:
            continue
        request = messages.ModelInferRequest(model_name=client_models.typed_model(name))
        tensor = request.inputs.add(name="input", datatype=name, shape=array.shape)
        getattr(tensor.contents, fields[name]).extend(array.reshape(-1).tolist())
        answer = protocol.module.InferResult(protocol.client._client_stub.ModelInfer(request))
        numpy.testing.assert_array_equal(answer.as_numpy("output"), array, err_msg=name)


@checks.add("gRPC: a call ends when its client's time is over")
def client_timeout(context):
    protocol = context.protocol(Grpc)
    tensor = protocol.input("input", numpy.zeros((1, 256, 1024), dtype=numpy.float32))
    refused(lambda: protocol.client.infer("slow", [tensor], client_timeout=0.001), "DEADLINE_EXCEEDED")
    protocol.client.infer("slow", [tensor], client_timeout=60)


@checks.add("gRPC: a call can be cancelled")
def cancellation(context):
    protocol = context.protocol(Grpc)
    tensor = protocol.input("input", numpy.zeros((1, 256, 1024), dtype=numpy.float32))
    callback, wait = completed(8)
    calls = [protocol.client.async_infer("slow", [tensor], callback) for _ in range(8)]
    for call in calls:
        call.cancel()
    for result, error in wait():
        holds(result is not None or isinstance(error, InferenceServerException) and "CANCELLED" in str(error.status()), error)
    array = client_models.image(1)
    near(protocol.client.infer("image", [protocol.input("input", array)]).as_numpy("output"), context.expected.run("image", input=array)["output"])


@checks.add("HTTP: an OpenAPI document is served", only="weft")
def open_api(context):
    with urllib.request.urlopen(f"http://{context.server.http}/openapi.json") as answer:
        document = json.load(answer)
    holds(document["openapi"].startswith("3."), document.get("openapi"))
    for path in ("/v2/health/ready", "/v2/models/{model}/infer", "/v2/repository/index"):
        holds(any(path.split("{")[0] in known for known in document["paths"]), f"{path} is not in {list(document['paths'])}")
