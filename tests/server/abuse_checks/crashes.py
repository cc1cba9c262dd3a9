"""Ends of the server, wanted and not: what is accepted is finished, and what was killed serves again by being started."""
import hashlib
import json
import os
import threading
import time
import urllib.request

import numpy
import tritonclient.http as http_client

from abuse_checks.raw import GOOD, INFER, connected, head, post, read_answer
from checks import Checks, holds, same

checks = Checks()


def digest(folder):
    """Of every file under a folder: its name and its bytes."""
    of = hashlib.sha256()
    for path, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            full = os.path.join(path, name)
            of.update(os.path.relpath(full, folder).encode() + b"\0")
            with open(full, "rb") as file:
                of.update(hashlib.sha256(file.read()).digest())
    return of.hexdigest()


def in_background(server, count):
    """Clients that ask until the server is gone."""
    def ask_on():
        body = json.dumps(GOOD).encode()
        try:
            with connected(server) as stream:
                while True:
                    stream.sendall(head(INFER, len(body)) + body)
                    if read_answer(stream) is None:
                        return
        except OSError:
            pass

    threads = [threading.Thread(target=ask_on, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


@checks.add("killed under load, it serves again when started again")
def killed(context):
    before = digest(context.repository)
    for _ in range(context.kills):
        threads = in_background(context.server, 4)
        context.probe.pause()
        for _ in range(20):
            post(context.server, GOOD)
        context.server.kill()
        for thread in threads:
            thread.join(30)
        context.server.start()
        context.probe.resume()
        same(json.loads(post(context.server, GOOD)[1])["outputs"][0]["data"], GOOD["inputs"][0]["data"])
    same(digest(context.repository), before, "the repository was changed")
    context.note(f"killed {context.kills} times, ready again after {context.server.ready_s:.2f} s")


def until_in_flight(server, count):
    """Waits until the server has taken in so many requests: what is still on its way when it is asked to end is refused."""
    for _ in range(3000):
        with urllib.request.urlopen(f"http://{server.admin}/status", timeout=10) as answer:
            if json.load(answer)["requests_in_flight"] >= count:
                return
        time.sleep(0.01)
    raise AssertionError(f"{count} requests are not in flight after half a minute")


@checks.add("asked to end, it finishes what it has accepted")
def ended(context):
    context.probe.pause()
    array = numpy.zeros((1, 256, 1024), dtype=numpy.float32)
    tensor = http_client.InferInput("input", list(array.shape), "FP32").set_data_from_numpy(array)
    body, header_length = http_client.InferenceServerClient.generate_request_body([tensor])
    streams = [connected(context.server, 120) for _ in range(3)]
    for stream in streams:
        stream.sendall(head("/v2/models/slow/infer", len(body), Inference_Header_Content_Length=header_length) + body)
    if context.kind == "weft":
        until_in_flight(context.server, len(streams))
    code = context.server.stop()
    answers = [read_answer(stream) for stream in streams]
    context.server.start()
    context.probe.resume()
    same([answer and answer[0] for answer in answers], [200] * len(streams))
    same(code, 0, "exit code")
