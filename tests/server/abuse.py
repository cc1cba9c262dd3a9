"""Hostile and broken clients against a server: every one of them gets a typed error, and nobody else notices.

    tests/server/.peers/triton/bin/python tests/server/abuse.py target/release/weft [--full] [--on triton] [--only PART] [--verbose]

`--full` opens 10 000 idle connections and lets slow clients take their time; without it the same checks run small. Beside them
a good client asks all the time: it must always be answered, and soon. At the end the server must be as small as before.
"""
import argparse
import contextlib
import os
import resource
import sys
import tempfile
import threading
import time

import client_models
import repositories
import servers
from abuse_checks import connections, crashes, mutations, requests
from abuse_checks.raw import GOOD, post
from checks import Checks, holds

GROUPS = (connections, requests, mutations)
# Of the good client's requests. Generous, since machines that run tests do other things, too.
SLOWEST_S = 2.0
MEDIAN_S = 0.25
GROWTH_BYTES = 16 << 20


class Probe:
    """A good client that asks all the time, on a connection of its own for each request."""

    def __init__(self, server):
        self.server, self.latencies_s, self.failures = server, [], []
        self.may_run, self.is_idle, self.is_over = threading.Event(), threading.Event(), False
        self.resume()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.is_over:
            if not self.may_run.is_set():
                self.is_idle.set()
                self.may_run.wait()
                self.is_idle.clear()
            started = time.monotonic()
            try:
                answer = post(self.server, GOOD)
                if answer is None or answer[0] != 200:
                    self.failures.append(answer)
            except OSError as error:
                self.failures.append(error)
            self.latencies_s.append(time.monotonic() - started)
            time.sleep(0.01)

    def pause(self):
        """Returns when no request is under way."""
        self.is_idle.clear()
        self.may_run.clear()
        self.is_idle.wait(60)

    def resume(self):
        self.may_run.set()

    def wait_for(self, count):
        """Until so many more requests have been answered."""
        target = len(self.latencies_s) + count
        while len(self.latencies_s) < target:
            time.sleep(0.005)

    def end(self):
        self.is_over = True
        self.resume()
        self.thread.join(60)


class Context:
    """What a check may use, and how much of everything there is."""

    body_limit_bytes = 64 << 20

    def __init__(self, server, repository, options):
        self.kind, self.server, self.repository, self.verbose = options.on, server, repository, options.verbose
        self.idle_connections = 10_000 if options.full else 1_000
        self.slow_clients = 200 if options.full else 20
        self.slow_s = 60 if options.full else 2
        self.broken_clients = 2_000 if options.full else 200
        self.mutations = options.mutations
        self.kills = 5 if options.full else 1
        # Of all checks again. Memory from 10 000 connections is in pieces at first, and settles in a few rounds.
        self.rounds = 4 if options.full else 1
        self.notes = []
        self.probe = Probe(server)

    def note(self, text):
        """Something worth reading even where nothing is wrong."""
        self.notes.append(text)

    @contextlib.contextmanager
    def good_clients(self, when):
        """Checks that the good client fared well in the meantime."""
        start, failures = len(self.probe.latencies_s), len(self.probe.failures)
        self.probe.wait_for(2)
        yield
        self.probe.wait_for(2)
        latencies = sorted(self.probe.latencies_s[start:])
        holds(len(self.probe.failures) == failures, f"{when}, a good request failed: {self.probe.failures[failures:][:3]}")
        median, slowest = latencies[len(latencies) // 2], latencies[-1]
        holds(median < MEDIAN_S and slowest < SLOWEST_S, f"{when}, good requests took {median * 1000:.0f} ms, the slowest {slowest * 1000:.0f} ms")
        self.note(f"{when}: {len(latencies)} good requests, median {median * 1000:.1f} ms, slowest {slowest * 1000:.1f} ms")


def raise_descriptors(count):
    """Lets this process, and the server that inherits it, open so many files; says how many it may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = count if hard == resource.RLIM_INFINITY else min(count, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed


def started(options, repository, models, folder):
    if options.on == "weft":
        return servers.weft(options.weft, repositories.weft_repository(repository, models), folder)
    return servers.triton(repositories.triton_repository(repository, models), folder)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("weft", help="the binary")
    arguments.add_argument("--on", choices=("weft", "triton"), default="weft")
    arguments.add_argument("--full", action="store_true", help="in full size")
    arguments.add_argument("--mutations", type=int, default=1000, help="of each kind of request")
    arguments.add_argument("--only", default="", help="checks that have this in their name")
    arguments.add_argument("--verbose", action="store_true", help="say how long each check takes, and what was seen")
    options = arguments.parse_args()
    descriptors = raise_descriptors(20_000)
    checks, ends = Checks(), Checks()
    for group in GROUPS:
        checks.extend(group.checks)
    ends.extend(crashes.checks)
    with tempfile.TemporaryDirectory() as folder:
        models = {name: os.path.join(folder, f"{name}.onnx") for name in ("identity", "slow")}
        repositories.save_identity(models["identity"])
        client_models.slow(models["slow"])
        repository = os.path.join(folder, "repository")
        with started(options, repository, models, folder) as server:
            context = Context(server, repository, options)
            context.idle_connections = min(context.idle_connections, descriptors - 1000)
            process, at_first = server.process.pid, server.resident_bytes()
            passed, failed = checks.run(context, options.only)
            # What the first rounds leave behind is memory that is used again; what one more adds is lost.
            for _ in range(context.rounds):
                settled = server.resident_bytes()
                again = checks.without("a byte a second").run(context, options.only)
                passed, failed = passed + again[0], failed + again[1]
            growth = server.resident_bytes() - settled
            context.note(f"resident: {at_first / 1e6:.1f} MB at the start, {settled / 1e6:.1f} MB after all checks {context.rounds} times, {growth / 1e6:+.1f} MB after all of them again")
            if growth > GROWTH_BYTES:
                failed += 1
                print(f"FAILED memory grows: {growth} bytes by repeating the checks")
            if not server.is_running() or server.process.pid != process:
                failed += 1
                with open(server.log, errors="replace") as log:
                    print(f"FAILED the server ended with {server.process.returncode}: {log.read()[-2000:]}")
            else:
                after = ends.run(context, options.only)
                passed, failed = passed + after[0], failed + after[1]
            context.probe.end()
            with open(server.log, errors="replace") as log:
                if "panicked" in log.read():
                    failed += 1
                    print("FAILED the server panicked")
    if options.verbose:
        print("\n".join(context.notes))
    print(f"abuse: {passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
