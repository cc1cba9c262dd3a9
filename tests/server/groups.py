"""Tenants that each serve weights of their own for one architecture: with groups and without, under Poisson load.

    python3 tests/server/groups.py --weft target/release/weft [--device cuda] [--model minilm_l6] [--tenants 32] [--json out.json]

Measured: what one request takes alone, the highest rate at which 99 % are answered within five times that with groups and without,
what the other tenants notice of one that sends ten times its share, and how far the tenants lie apart. The client is `weft load`,
over gRPC, on the same machine; tensors are in shared memory, so that the server is measured and not the transport.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from isolation_experiments.capacity import find
from servers import Server, free_port
from summary import table

SLO_TIMES = 5
FLOOD_TIMES = 10
# Shares of what the group carries at which one tenant floods.
FLOOD_SHARES = (0.5, 0.8)
# How often a server that still loses requests is given time to settle.
SETTLE_TIMES = 4
SETTLED = 0.99
# `find` begins with a quarter of what it is asked for.
FIRST_OF_FIND = 0.25


class Setting:
    """The binary, the tenants' models, and how they are asked."""

    def __init__(self, options, folder):
        self.options, self.folder, self.count = options, folder, 0
        self.names = [f"tenant_{number:02}" for number in range(options.tenants)]
        self.models = os.path.join(folder, "models")
        os.makedirs(self.models)

        def export(number):
            path = os.path.join(self.models, f"{self.names[number]}.onnx")
            subprocess.run([options.weft, "zoo", options.model, "--seed", str(number), "-o", path], check=True, capture_output=True)

        with ThreadPoolExecutor(os.cpu_count()) as threads:
            list(threads.map(export, range(options.tenants)))

    def start(self, slo_ms, has_groups):
        """A server of all tenants."""
        self.count += 1
        options, config = self.options, os.path.join(self.folder, f"{self.count}.toml")
        with open(config, "w") as file:
            file.write(f"[server]\ngroups = {str(has_groups).lower()}\n[defaults]\nslo_ms = {slo_ms:.3f}\nrate_per_s = 1\nmax_batch = {options.max_batch}\n")
        http, grpc = free_port(), free_port()
        command = [options.weft, "serve", self.models, "--config", config, "--device", options.device, "--port", http, "--grpc-port", grpc,
                   "--state", os.path.join(self.folder, "state"), "--dim", f"sequence={options.dimension}"]
        log = os.path.join(self.folder, f"{self.count}.log")
        server = Server("weft", [str(part) for part in command], http, grpc, log, models=self.names)
        print(f"groups {'on' if has_groups else 'off'}: ready after {server.ready_s:.1f} s", flush=True)
        return server

    def load(self, server, *arguments, seconds=None, seed=1):
        """One run of `weft load`; gives back its report."""
        options = self.options
        command = [options.weft, "load", server.grpc, "--protocol", "grpc", "--seconds", seconds or options.seconds, "--warm-up", options.warm_up,
                   "--connections", options.connections, "--seed", seed, "--json", "-", *arguments]
        if options.shared_memory:
            command.append("--shared-memory")
        result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if result.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: {result.stderr}")
        return json.loads(result.stdout)

    def asked(self, rates, slo_ms):
        """Arguments for a load of so many requests a second of each tenant."""
        return [part for name, rate in zip(self.names, rates)
                for part in ("--model", name, "--rate", f"{rate:.3f}", "--slo", f"{slo_ms:.3f}ms", "--dimension", str(self.options.dimension))]


def solo_ms(setting):
    """What one request takes while nobody else asks, as the client sees it: the median."""
    with setting.start(1000, False) as server:
        alone = ("--model", setting.names[0], "--concurrency", "1", "--dimension", str(setting.options.dimension))
        return setting.load(server, *alone)["models"][0]["latency_us"]["p50"] / 1000


def percentiles_ms(report, which):
    """Each model's percentile, in milliseconds."""
    return {of["model"]: of["latency_us"][which] / 1000 for of in report["models"] if of["latency_us"]}


def flood(setting, server, each, slo_ms):
    """The others' p99 while all send `each`, and while one sends ten times that."""
    rates = [each] * len(setting.names)
    result = {}
    for kind, of_first in (("even", each), ("flooded", FLOOD_TIMES * each)):
        seconds = setting.options.flood_seconds
        report = setting.load(server, *setting.asked([of_first, *rates[1:]], slo_ms), seconds=seconds, seed=7)
        others = {name: p99 for name, p99 in percentiles_ms(report, "p99").items() if name != setting.names[0]}
        in_time = [of["attainment"] for of in report["models"] if of["model"] != setting.names[0]]
        result[kind] = {"p99_ms": statistics.median(others.values()), "in_time": statistics.mean(in_time), "report": report}
    return result


def spread(report):
    """How much longer the slowest tenant's median is than the fastest's."""
    medians = percentiles_ms(report, "p50").values()
    return max(medians) / min(medians) - 1


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--weft", required=True, help="the binary")
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--model", default="minilm_l6", help="of the zoo")
    arguments.add_argument("--dimension", type=int, default=128, help="of what the model leaves open")
    arguments.add_argument("--tenants", type=int, default=32)
    arguments.add_argument("--max-batch", type=int, default=8, help="of one model alone")
    arguments.add_argument("--seconds", type=float, default=3, help="of each run of the load")
    arguments.add_argument("--warm-up", type=float, default=0.5)
    arguments.add_argument("--settle", type=float, default=0, help="seconds of load before anything is measured, since layouts follow it; up to four times that while requests are lost")
    arguments.add_argument("--flood-seconds", type=float, help="of each run with a flood or beside one [as the others]")
    arguments.add_argument("--connections", type=int, default=8)
    arguments.add_argument("--shared-memory", action=argparse.BooleanOptionalAction, default=True, help="tensors travel through it")
    arguments.add_argument("--json", help="where every report is written")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        setting = Setting(options, folder)
        alone = solo_ms(setting)
        slo = SLO_TIMES * alone
        # As many as one after another would answer, for a search that begins well below.
        first = 1000 / alone / options.tenants / FIRST_OF_FIND
        print(f"{options.tenants} tenants of {options.model} on {options.device}: {alone:.3f} ms alone, objective {slo:.3f} ms", flush=True)
        carried, results = {}, {"solo_ms": alone, "slo_ms": slo, "search": {}, "flood": {}}

        def settle(server):
            """Has a server find its layout, under twice what one after another would answer."""
            if options.settle <= 0:
                return
            rates = [2 * first * FIRST_OF_FIND] * options.tenants
            for _ in range(SETTLE_TIMES):
                report = setting.load(server, *setting.asked(rates, slo), seconds=options.settle)
                print(f"  settled for {options.settle:g} s: {report['attainment']:.2%} in time", flush=True)
                if report["attainment"] >= SETTLED:
                    return

        def search(server, name):
            best, steps = find(setting, server, lambda factor: setting.asked([first * factor] * options.tenants, slo))
            carried[name], results["search"][name] = best.due_per_s, [asdict(step) for step in steps]

        with setting.start(slo, False) as server:
            settle(server)
            search(server, "apart")
        with setting.start(slo, True) as server:
            settle(server)
            search(server, "groups")
            for share in FLOOD_SHARES:
                results["flood"][share] = flood(setting, server, carried["groups"] * share / options.tenants, slo)
    gain = carried["groups"] / carried["apart"]
    print(table(["", "requests/s at 99 % in time"], [["apart", f"{carried['apart']:.0f}"], ["groups", f"{carried['groups']:.0f}"], ["gain", f"{gain:.2f}"]]))
    rows = []
    for share, of in results["flood"].items():
        even, flooded = of["even"], of["flooded"]
        rows.append([f"{share:.0%}", f"{even['p99_ms']:.3f}", f"{flooded['p99_ms']:.3f}", f"{flooded['p99_ms'] / even['p99_ms'] - 1:+.1%}",
                     f"{even['in_time']:.2%}", f"{flooded['in_time']:.2%}", f"{spread(even['report']):.1%}"])
    print(table(["load", "others' p99, ms", f"one at {FLOOD_TIMES} times", "moved by", "in time", "with it", "spread of p50"], rows))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
