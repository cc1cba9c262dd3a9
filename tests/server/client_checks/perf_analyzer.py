"""NVIDIA's perf_analyzer, short runs with each way of sending that it has."""
import os
import re
import subprocess
import urllib.request

from checks import Checks, holds
from install import LIBRARIES, PEERS

checks = Checks()
RUNS = {
    "HTTP": ["-i", "http"],
    "HTTP, asynchronous": ["-i", "http", "--async"],
    "HTTP, system shared memory": ["-i", "http", "--shared-memory=system"],
    "HTTP, two rows each": ["-i", "http", "-b", "2"],
    "gRPC": ["-i", "grpc"],
    "gRPC, asynchronous": ["-i", "grpc", "--async"],
    "gRPC, streams": ["-i", "grpc", "--async", "--streaming"],
    "gRPC, system shared memory": ["-i", "grpc", "--shared-memory=system"],
    "gRPC, a given rate": ["-i", "grpc", "--request-rate-range=50"],
}
# A run takes a second or two. On a busy machine perf_analyzer has been seen to wait for itself for ever, so that it is started anew:
# but only where the server owes nobody an answer.
RUN_SECONDS, TRIES = 40, 3
PENDING = "weft_requests_in_flight"


def owes_answers(context):
    """Whether requests that have come in were not answered, refused or given up."""
    if context.kind != "weft":
        return False
    with urllib.request.urlopen(f"http://{context.server.admin}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    waiting = [float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(PENDING)]
    holds(waiting, f"no metric {PENDING}")
    return sum(waiting) > 0


def analysed(context, command):
    """What a run of perf_analyzer printed, and its exit code."""
    for last in (False,) * (TRIES - 1) + (True,):
        try:
            result = subprocess.run(
                command, capture_output=True, text=True, timeout=RUN_SECONDS, env={**os.environ, "LD_LIBRARY_PATH": LIBRARIES}
            )
            return result.stdout + result.stderr, result.returncode
        except subprocess.TimeoutExpired:
            holds(not owes_answers(context), "the server owes an answer")
            if last:
                raise


def run(context, options):
    address = context.server.grpc if "grpc" in options else context.server.http
    load = [] if any("rate-range" in option for option in options) else ["--concurrency-range=2"]
    # A number of requests instead of windows that are repeated until they agree, which on a busy machine they may never do.
    command = [os.path.join(PEERS, "triton", "bin", "perf_analyzer"), "-m", "pair", "-u", address, *load, *options]
    command += ["--request-count=50"]
    text, code = analysed(context, command)
    holds(code == 0, f"exit {code}: {text[-1500:]}")
    rate = re.search(r"throughput: ([\d.]+) infer/sec", text, re.IGNORECASE)
    holds(rate and float(rate.group(1)) > 1, text[-1500:])
    holds("Failed Request Count" not in text, text[-1500:])


for name, options in RUNS.items():
    checks.add(f"perf_analyzer: {name}")(lambda context, options=options: run(context, options))
