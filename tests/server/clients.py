"""Unmodified clients against a server: tritonclient over HTTP and gRPC, blocking and asyncio, and NVIDIA's perf_analyzer.

    tests/server/.peers/triton/bin/python tests/server/clients.py target/release/weft [--on triton] [--only PART] [--verbose]

Starts `weft serve` on a free port over small models of its own making and compares every answer with onnxruntime. With
`--on triton` the same checks run against Triton, which shows that they ask for what Triton's clients are used to.
"""
import argparse
import os
import sys
import tempfile
import time

import client_models
import repositories
import servers
from checks import Checks
from client_checks import asynchronous, perf_analyzer, serving, shared_memory, streaming

GROUPS = (serving, asynchronous, streaming, shared_memory, perf_analyzer)


class Context:
    """What a check may use."""

    def __init__(self, kind, server, expected, verbose):
        self.kind, self.server, self.expected, self.verbose = kind, server, expected, verbose
        self.protocols = {}

    def protocol(self, of):
        """An open client of a protocol, made at its first use."""
        if of not in self.protocols:
            self.protocols[of] = of(self.server)
        return self.protocols[of]

    def eventually(self, condition, seconds=30):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s")
            time.sleep(0.02)


def start(kind, weft, models, folder):
    home = os.path.join(folder, "repository")
    if kind == "weft":
        return servers.weft(weft, repositories.weft_repository(home, models), folder)
    repository = repositories.triton_repository(home, models, "onnx", more="dynamic_batching { }\n")
    return servers.triton(repository, folder, "--model-control-mode=explicit", "--load-model=*")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("weft", help="the binary; it also writes the models for another server")
    arguments.add_argument("--on", choices=("weft", "triton"), default="weft")
    arguments.add_argument("--only", default="", help="checks that have this in their name")
    arguments.add_argument("--verbose", action="store_true", help="say how long each check takes")
    options = arguments.parse_args()
    checks = Checks()
    for group in GROUPS:
        checks.extend(group.checks)
    with tempfile.TemporaryDirectory() as folder:
        models = client_models.write(folder, options.weft, with_bf16=options.on == "weft")
        with start(options.on, options.weft, models, folder) as server:
            context = Context(options.on, server, client_models.Expected(models), options.verbose)
            passed, failed = checks.run(context, options.only)
            if not server.is_running():
                failed += 1
                with open(server.log, errors="replace") as log:
                    print(f"FAILED the server ended with {server.process.returncode}: {log.read()[-2000:]}")
    print(f"clients: {passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
