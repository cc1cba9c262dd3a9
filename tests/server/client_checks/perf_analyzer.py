"""NVIDIA's perf_analyzer, short runs with each way of sending that it has."""
import os
import re
import subprocess

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


def run(context, options):
    address = context.server.grpc if "grpc" in options else context.server.http
    load = [] if any("rate-range" in option for option in options) else ["--concurrency-range=2"]
    # A number of requests instead of windows that are repeated until they agree, which on a busy machine they may never do.
    command = [os.path.join(PEERS, "triton", "bin", "perf_analyzer"), "-m", "pair", "-u", address, *load, *options]
    command += ["--request-count=50"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "LD_LIBRARY_PATH": LIBRARIES})
    text = result.stdout + result.stderr
    holds(result.returncode == 0, f"exit {result.returncode}: {text[-1500:]}")
    rate = re.search(r"throughput: ([\d.]+) infer/sec", text, re.IGNORECASE)
    holds(rate and float(rate.group(1)) > 1, text[-1500:])
    holds("Failed Request Count" not in text, text[-1500:])


for name, options in RUNS.items():
    checks.add(f"perf_analyzer: {name}")(lambda context, options=options: run(context, options))
