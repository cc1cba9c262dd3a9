"""wrk over HTTP and h2load over gRPC as functions from a request to requests per second and latency."""
import os
import re
import statistics
import struct
import subprocess
import tempfile
from dataclasses import dataclass

from install import TOOLS

LIBRARY_PATH = {**os.environ, "LD_LIBRARY_PATH": os.path.join(TOOLS, "usr", "lib", "x86_64-linux-gnu")}
# `%q` of Lua reads back any bytes but these two; both are escaped by number.
WRK_SCRIPT = """
wrk.method = "POST"
wrk.body = %s
%s
function done(summary, latency, requests)
    local errors = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status + summary.errors.timeout
    print(string.format("RESULT %%d %%d %%d %%d %%d", summary.requests, summary.duration, errors, latency:percentile(50), latency:percentile(99)))
end
"""


@dataclass
class Measured:
    """What a closed loop of `concurrency` clients saw."""
    requests: int
    requests_per_s: float
    latency_us_p50: float
    latency_us_p99: float


def run(command):
    result = subprocess.run(command, capture_output=True, text=True, env=LIBRARY_PATH)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {result.stderr or result.stdout}")
    return result.stdout


def lua_string(data):
    return '"' + "".join(f"\\{byte:03d}" for byte in data) + '"'


def http(address, path, body, headers, concurrency, seconds):
    """wrk with one thread and `concurrency` connections, each with one request in flight. Any answer but 2xx is an error."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        lines = "\n".join(f'wrk.headers["{name}"] = "{value}"' for name, value in headers.items())
        script.write(WRK_SCRIPT % (lua_string(body), lines))
        script.flush()
        wrk = os.path.join(TOOLS, "usr", "bin", "wrk")
        out = run([wrk, "-t1", f"-c{concurrency}", f"-d{seconds}s", "-s", script.name, f"http://{address}{path}"])
    requests, duration_us, errors, p50, p99 = map(int, re.search(r"RESULT (.*)", out).group(1).split())
    if errors or not requests:
        raise RuntimeError(f"{errors} of {requests} requests to {address}{path} failed:\n{out}")
    return Measured(requests, requests / duration_us * 1e6, p50, p99)


def grpc(address, method, message, answer_bytes, concurrency, seconds):
    """h2load with one thread and `concurrency` connections, each with one call in flight.

    h2load takes any answer with HTTP status 200 for a success, which every gRPC error has; but those carry no message, so
    that `answer_bytes`, the size of the right message, tells them apart.
    """
    with tempfile.TemporaryDirectory() as folder:
        body, log = os.path.join(folder, "body"), os.path.join(folder, "log")
        with open(body, "wb") as file:
            file.write(struct.pack(">BI", 0, len(message)) + message)
        h2load = os.path.join(TOOLS, "usr", "bin", "h2load")
        command = [h2load, "-t1", f"-c{concurrency}", "-m1", f"-D{seconds}", f"--log-file={log}", "-d", body]
        command += ["-H", "content-type: application/grpc", "-H", "te: trailers", f"http://{address}{method}"]
        out = run(command)
        with open(log) as file:
            lines = [line.split("\t") for line in file]
    total, done, succeeded, failed = map(int, re.search(r"requests: (\d+) total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed", out).groups())
    data_bytes = float(re.search(r"\((\d+)\) data", out).group(1))
    # A connection cut by the end of the measurement may leave one answer per client half counted.
    strays = abs(data_bytes / (answer_bytes + 5) - done)
    if failed or not succeeded or strays > concurrency + 0.01 * done:
        raise RuntimeError(f"{failed} of {total} calls failed, {data_bytes / max(done, 1)} bytes of data for each, not {answer_bytes + 5}:\n{out}")
    rate = float(re.search(r"finished in .*?, ([\d.]+) req/s", out).group(1))
    latencies = sorted(int(line[2]) for line in lines if line[1] == "200")
    return Measured(done, rate, statistics.median(latencies), latencies[int(len(latencies) * 0.99)])
