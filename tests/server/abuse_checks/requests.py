"""Requests that are wrong in one way each: every one must be answered with an error that says so."""
import copy
import gzip
import json
import zlib

from abuse_checks.raw import ALLOWED, GOOD, INFER, ask, connected, head, post, read_answer, typed
from checks import Checks, holds, same

checks = Checks()
WRONG, MISSING, LARGE, NOT_OFFERED = 400, 404, 413, 501


def changed(**changes):
    """The good request with other fields in its input."""
    request = copy.deepcopy(GOOD)
    for name, value in changes.items():
        if value is None:
            del request["inputs"][0][name]
        else:
            request["inputs"][0][name] = value
    return request


def with_data(text):
    """The good request with a text in place of its first number."""
    return json.dumps(GOOD).replace("[0.0,", f"[{text},", 1).encode()


BODIES = {
    "an empty body": b"",
    "no JSON": b"hello",
    "half of the JSON": json.dumps(GOOD).encode()[:50],
    "something after the JSON": json.dumps(GOOD).encode() + b" x",
    "not UTF-8": json.dumps(GOOD).encode().replace(b"input", b"in\xffut", 1),
    "a list": b"[]",
    "null": b"null",
    "a number": b"17",
    "nothing in it": {},
    "no inputs": {"inputs": []},
    "inputs that are a text": {"inputs": "input"},
    "an input that is a number": {"inputs": [5]},
    "an input twice": {"inputs": GOOD["inputs"] * 2},
    "brackets without end": b"[" * 100_000,
    "inputs nested without end": b'{"inputs":' + b"[" * 100_000,
    "data nested without end": json.dumps(changed(data=None)).encode()[:-3] + b',"data":' + b"[" * 50_000 + b"]" * 50_000 + b"}]}",
    "NaN": with_data("NaN"),
    "Infinity": with_data("Infinity"),
    "-Infinity": with_data("-Infinity"),
    "nan": with_data("nan"),
    "a null among the data": with_data("null"),
    "a text among the data": with_data('"0"'),
    "a truth among the data": with_data("true"),
    "a number too few": changed(data=[0.0] * 15),
    "a number too many": changed(data=[0.0] * 17),
    "no data": changed(data=None),
    "data that is a text": changed(data="zeros"),
    "no name": changed(name=None),
    "another name": changed(name="picture"),
    "a name that is a number": changed(name=7),
    "no type": changed(datatype=None),
    "another type": changed(datatype="INT64"),
    "no such type": changed(datatype="FP31"),
    "no shape": changed(shape=None),
    "a shape of another width": changed(shape=[1, 8], data=[0.0] * 8),
    "a shape of lower rank": changed(shape=[16]),
    "a shape of higher rank": changed(shape=[1, 1, 16]),
    "a shape of very high rank": changed(shape=[1] * 5000),
    "a negative shape": changed(shape=[-1, 16]),
    "two negatives that cancel out": changed(shape=[-1, -16]),
    "a shape of fractions": changed(shape=[1.5, 16]),
    "a shape of texts": changed(shape=["1", "16"]),
    "a shape past all memory": changed(shape=[1 << 62, 16]),
    "a shape that wraps around": changed(shape=[1 << 60, 16]),
    "a shape past 64 bits": changed(shape=[1 << 70, 16]),
    "a priority that is none": {**GOOD, "parameters": {"priority": "urgent"}},
    "a timeout below zero": {**GOOD, "parameters": {"timeout": -5}},
    "an output that is not there": {**GOOD, "outputs": [{"name": "nothing"}]},
    "an output without a name": {**GOOD, "outputs": [{}]},
    "an output twice": {**GOOD, "outputs": [{"name": "output"}] * 2},
    "shared memory that is not there": changed(data=None, parameters={"shared_memory_region": "none", "shared_memory_byte_size": 64}),
}


def register_bodies():
    for name, body in BODIES.items():
        def run(context, body=body):
            answer = post(context.server, body)
            holds(typed(answer, (WRONG, MISSING)), answer)
        checks.add(f"wrong request: {name}")(run)


register_bodies()


@checks.add("wrong request: a number that no float holds is refused or infinite")
def huge_number(context):
    answer = post(context.server, with_data("1e400"))
    holds(typed(answer, WRONG) or answer[0] == 200, answer)


@checks.add("wrong request: no rows are refused or answered with none")
def no_rows(context):
    answer = post(context.server, changed(shape=[0, 16], data=[]))
    holds(typed(answer, WRONG) or answer[0] == 200 and json.loads(answer[1])["outputs"][0]["shape"] == [0, 16], answer)


@checks.add("wrong request: paths and methods")
def paths(context):
    for path in ("/v2/models/nobody/infer", "/v2/models/identity/versions/9/infer", "/v2/models/identity/versions/x/infer", "/v2/models//infer",
                 "/v2/models/..%2f..%2fetc/infer", "/v2/models/%00/infer", "/v2/models/identity/infer/more", "/nowhere", "/", "/v2/models/" + "a" * 5000 + "/infer"):
        answer = post(context.server, GOOD, path)
        holds(typed(answer, (WRONG, MISSING, 405)), f"{path[:60]}: {answer}")
    for method in ("GET", "PUT", "DELETE", "PATCH", "NONSENSE"):
        answer = ask(context.server, head(INFER, 0, method=method))
        holds(typed(answer, (WRONG, 405)), f"{method}: {answer}")
    answer = ask(context.server, head("/v2/health/live", 0))
    holds(typed(answer, 405), answer)


def binary(header=None, data=bytes(64), header_length=None, size=64):
    tensor = {"name": "input", "shape": [1, 16], "datatype": "FP32", "parameters": {"binary_data_size": size}}
    header = json.dumps({"inputs": [tensor]}).encode() if header is None else header
    return header + data, {"Inference_Header_Content_Length": len(header) if header_length is None else header_length}


@checks.add("wrong request: tensors as bytes")
def binary_tensors(context):
    body, headers = binary()
    same(post(context.server, body, **headers)[0], 200)
    wrong = {
        "too few bytes": binary(data=bytes(60)), "too many bytes": binary(data=bytes(68)), "no bytes": binary(data=b""),
        "a size too small": binary(size=32), "a size too large": binary(size=128), "a size below zero": binary(size=-1), "a size past 64 bits": binary(size=1 << 70),
        "a size that is a text": binary(size="many"),
        "a header past the body": binary(header_length=10_000), "a header past all memory": binary(header_length=1 << 63), "a header below zero": binary(header_length=-1),
        "a header that ends early": binary(header_length=10), "a header's length in words": binary(header_length="many"),
    }
    for name, (body, headers) in wrong.items():
        answer = post(context.server, body, **headers)
        holds(typed(answer, WRONG), f"{name}: {answer}")


@checks.add("wrong request: bytes alone, without any JSON")
def only_bytes(context):
    body, headers = binary(b"", bytes(64))
    answer = post(context.server, body, **headers)
    holds(typed(answer, (WRONG, NOT_OFFERED)), answer)


@checks.add("a body that is said to be over the limit is not read")
def declared_too_large(context):
    before = context.server.resident_bytes()
    for length in (context.body_limit_bytes + 1, 1 << 40, (1 << 63) - 1):
        answer = ask(context.server, head(INFER, length))
        holds(typed(answer, LARGE), f"{length}: {answer}")
    answer = ask(context.server, head(INFER, 1 << 70))
    holds(answer is None or answer[0] in (WRONG, LARGE), answer)
    holds(context.server.resident_bytes() - before < 16 << 20, "memory was taken for it")


@checks.add("a body without a length ends at the limit")
def chunked_too_large(context):
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    with connected(context.server) as stream, context.good_clients("beside an endless body"):
        stream.sendall(head(INFER, Transfer_Encoding="chunked"))
        try:
            for _ in range(context.body_limit_bytes // 0x100000 + 64):
                stream.sendall(chunk)
        except ConnectionError:
            pass
        answer = read_answer(stream)
    holds(answer is None or typed(answer, LARGE), answer)


@checks.add("a small body that unpacks to a large one")
def bomb(context):
    before = context.server.resident_bytes()
    for encoding, packed in (("gzip", gzip.compress(bytes(1 << 28), 1)), ("deflate", zlib.compress(bytes(1 << 28), 1))):
        answer = post(context.server, packed, Content_Encoding=encoding)
        holds(typed(answer, (LARGE, WRONG)), answer)
    holds(context.server.resident_bytes() - before < 2 * context.body_limit_bytes, "all of it was unpacked")


@checks.add("bodies whose encoding is not what they say")
def encodings(context):
    body = json.dumps(GOOD).encode()
    for encoding, data in (("gzip", body), ("deflate", body), ("gzip", gzip.compress(body)[:-6]), ("br", body), ("gzip, gzip", gzip.compress(body)), ("nonsense", body)):
        answer = post(context.server, data, Content_Encoding=encoding)
        holds(typed(answer, (WRONG, 415)), f"{encoding}: {answer}")
    same(post(context.server, gzip.compress(body), Content_Encoding="gzip")[0], 200)


@checks.add("lengths that contradict each other")
def smuggling(context):
    body = json.dumps(GOOD).encode()
    for lines in (f"Content-Length: {len(body)}\r\nContent-Length: 5", f"Content-Length: {len(body)}\r\nTransfer-Encoding: chunked", "Content-Length: -1",
                  "Content-Length: five", "Content-Length: 5, 5", "Transfer-Encoding: nonsense"):
        answer = ask(context.server, f"POST {INFER} HTTP/1.1\r\nHost: weft\r\n{lines}\r\nConnection: close\r\n\r\n".encode() + body)
        holds(answer is None or answer[0] in ALLOWED, f"{lines}: {answer}")
