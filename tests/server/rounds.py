"""Requests for several models that come together, again and again: with regulation and without, in turns in one run.

    python3 tests/server/rounds.py --weft target/release/weft [--device cuda] [--models resnet50,vgg16,mobilenet_v3_large] [--slo-times 0.9] [--json out.json]

Two servers of the same models are started, one of them with `regulation = false`. `weft load` asks all models at the same instants, at
several rates of rounds; at each, both servers have their turns. Measured: the share of requests within the objective, and when the last
answers of a round come. Objectives are so many times what all models take one after another, each alone. With `--beside` another model is
asked meanwhile, independently of the rounds.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import urllib.request

from servers import Server, free_port
from summary import table


class Setting:
    """The binary, the models, and how they are asked."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.names = options.models.split(",")
        self.all_names = self.names + [options.beside] * (options.beside is not None)
        self.beside_per_s = 0
        self.models = os.path.join(folder, "models")
        os.makedirs(self.models)
        for name in self.all_names:
            path = os.path.join(self.models, f"{name}.onnx")
            subprocess.run([options.weft, "zoo", name, "-o", path], check=True, capture_output=True)

    def start(self, slo_ms, is_regulated):
        """A server of all models, and where its metrics are."""
        options, kind = self.options, "on" if is_regulated else "off"
        config, admin = os.path.join(self.folder, f"{kind}.toml"), free_port()
        with open(config, "w") as file:
            file.write(f"[server]\nregulation = {str(is_regulated).lower()}\n[defaults]\nslo_ms = {slo_ms:.3f}\nrate_per_s = 1\nmax_batch = 1\n")
        http, grpc = free_port(), free_port()
        command = [options.weft, "serve", self.models, "--config", config, "--device", options.device, "--port", http, "--grpc-port", grpc, "--admin-port", admin,
                   "--state", os.path.join(self.folder, "state"), "--tuning-database", os.path.join(self.folder, "tuning.db"), "--dim", f"sequence={options.dimension}"]
        server = Server("weft", [str(part) for part in command], http, grpc, os.path.join(self.folder, f"{kind}.log"), models=self.all_names)
        server.admin = f"127.0.0.1:{admin}"
        return server

    def load(self, server, *arguments, seconds):
        """One run of `weft load`; gives back its report."""
        command = [self.options.weft, "load", server.grpc, "--protocol", "grpc", "--seconds", seconds, "--warm-up", 0, "--connections", 8, "--json", "-", *arguments]
        if self.options.shared_memory:
            command.append("--shared-memory")
        result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if result.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: {result.stderr}")
        return json.loads(result.stdout)

    def of(self, name, *arguments):
        return ("--model", name, "--dimension", str(self.options.dimension), *arguments)

    def rounds(self, server, per_s, slo_ms, seconds):
        """All models of the rounds at the same instants, so many times a second, and the other one as it comes."""
        objective = ("--slo", f"{slo_ms:.3f}ms")
        asked = [part for name in self.names for part in self.of(name, "--rate", f"{per_s:.3f}", "--cv", "0", *objective)]
        if self.options.beside:
            asked += self.of(self.options.beside, "--rate", f"{self.beside_per_s:.3f}", *objective)
        return self.load(server, *asked, seconds=seconds)


def metric(server, name):
    """A number that the server counts."""
    with urllib.request.urlopen(f"http://{server.admin}/metrics", timeout=5) as page:
        lines = page.read().decode().splitlines()
    return next((float(line.split()[-1]) for line in lines if line.startswith(f"{name} ")), 0.0)


def alone_ms(setting):
    """What each model takes while nobody else is asked, as the client sees it: medians."""
    with setting.start(10_000, False) as server:
        reports = [setting.load(server, *setting.of(name, "--concurrency", "1"), seconds=1.5) for name in setting.all_names]
    return [report["models"][0]["latency_us"]["p50"] / 1000 for report in reports]


def measured(setting, server, per_s, slo_ms):
    """What became of rounds at a rate."""
    mixed = metric(server, "weft_mixed_launches_total")
    report = setting.rounds(server, per_s, slo_ms, setting.options.seconds)
    mixed = metric(server, "weft_mixed_launches_total") - mixed
    of_rounds = report["models"][:len(setting.names)]
    answered = [of["latency_us"] for of in of_rounds if of["latency_us"]]
    return {
        "in_time": statistics.mean(of["attainment"] for of in of_rounds),
        "beside_in_time": report["models"][-1]["attainment"] if setting.options.beside else None,
        "last_p50_ms": max((of["p50"] / 1000 for of in answered), default=None),
        "last_p99_ms": max((of["p99"] / 1000 for of in answered), default=None),
        "mixed": mixed / max(1, of_rounds[0]["due"]),
    }


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--weft", required=True, help="the binary")
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--models", default="resnet18,mobilenet_v2,mobilenet_v3_large", help="of the zoo")
    arguments.add_argument("--dimension", type=int, default=128, help="of what models leave open")
    arguments.add_argument("--beside", metavar="MODEL", help="of the zoo, none of the others: asked besides, as Poisson has it")
    arguments.add_argument("--beside-load", type=float, default=0.1, help="of what it alone would fill the time with")
    arguments.add_argument("--slo-times", default="0.9,1.2,2", help="objectives, of what all models take one after another")
    arguments.add_argument("--loads", default="0.3,0.6", help="rounds, of those that one after another would fill the time")
    arguments.add_argument("--settle", type=float, default=12, help="seconds of rounds before anything is measured")
    arguments.add_argument("--seconds", type=float, default=4, help="of each run of the load")
    arguments.add_argument("--turns", type=int, default=2, help="of each server at each rate")
    arguments.add_argument("--shared-memory", action=argparse.BooleanOptionalAction, default=True, help="tensors travel through it")
    arguments.add_argument("--json", help="where every result is written")
    options = arguments.parse_args()
    rows, results = [], []
    with tempfile.TemporaryDirectory() as folder:
        setting = Setting(options, folder)
        alone = alone_ms(setting)
        if options.beside:
            setting.beside_per_s = options.beside_load * 1000 / alone.pop()
            print(f"{options.beside} beside it, {setting.beside_per_s:.1f} a second", flush=True)
        all_ms = sum(alone)
        print(f"{options.models} on {options.device}: {' + '.join(f'{ms:.3f}' for ms in alone)} ms alone, one after another {all_ms:.3f} ms", flush=True)
        for times in map(float, options.slo_times.split(",")):
            slo_ms = times * all_ms
            with setting.start(slo_ms, False) as off, setting.start(slo_ms, True) as on:
                for load in map(float, options.loads.split(",")):
                    per_s = load * 1000 / all_ms
                    for server in (off, on):
                        setting.rounds(server, per_s, slo_ms, options.settle)
                    turns = {"off": [], "on": []}
                    for _ in range(options.turns):
                        for kind, server in (("off", off), ("on", on)):
                            turns[kind].append(measured(setting, server, per_s, slo_ms))
                    median = {kind: {key: statistics.median(of[key] or 0 for of in turns[kind]) for key in turns[kind][0]} for kind in turns}
                    results.append({"slo_ms": slo_ms, "rounds_per_s": per_s, "turns": turns})
                    a, b = median["off"], median["on"]
                    row = [f"{slo_ms:.2f} ({times:g})", f"{per_s:.0f} ({load:.0%})", f"{a['in_time']:.2%}", f"{b['in_time']:.2%}", f"{a['last_p50_ms']:.3f}", f"{b['last_p50_ms']:.3f}",
                           f"{a['last_p99_ms']:.3f}", f"{b['last_p99_ms']:.3f}", f"{b['mixed']:.0%}"]
                    rows.append(row + [f"{of['beside_in_time']:.2%}" for of in (a, b)] * (options.beside is not None))
                    print(" | ".join(rows[-1]), flush=True)
            with open(on.log, errors="replace") as log:
                print("\n".join(line.rstrip() for line in log if " mix " in line)[-600:], flush=True)
    header = ["objective, ms", "rounds/s", "in time, off", "on", "last answer p50, ms, off", "on", "p99, off", "on", "as a mix"]
    print(table(header + ["beside in time, off", "on"] * (options.beside is not None), rows))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"alone_ms": alone, "results": results}, file, indent=1)


if __name__ == "__main__":
    main()
