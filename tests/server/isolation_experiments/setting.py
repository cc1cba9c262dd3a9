"""What every experiment uses: models of the zoo, servers over them, and `weft load` as the client."""
import copy
import json
import os
import subprocess

import repositories
import servers
from install import PEERS

MODELS = os.path.join(PEERS, "models")


def zoo(weft, name):
    """The file of a real-sized model, written at its first use."""
    path = os.path.join(MODELS, f"{name}.onnx")
    if not os.path.exists(path):
        os.makedirs(MODELS, exist_ok=True)
        subprocess.run([weft, "zoo", name, "-o", f"{path}.new"], check=True, capture_output=True)
        os.replace(f"{path}.new", path)
    return path


class Setting:
    """How experiments are run: the binary, how long, how often, and where files go."""

    def __init__(self, options, folder):
        self.weft, self.seconds, self.rounds, self.warm_up_s, self.folder = options.weft, options.seconds, options.rounds, options.warm_up, folder
        self.count = 0

    def lasting(self, seconds):
        """The same setting with runs of another length."""
        other = copy.copy(self)
        other.seconds = seconds
        return other

    def start(self, kind, names, settings="", api_key=None):
        """A server of these models. `kind` is `weft`, `weft:POLICY`, `mlserver`, or `triton`; `settings` is Weft's weft.toml."""
        self.count += 1
        home = os.path.join(self.folder, f"{self.count}-{kind.replace(':', '-')}")
        os.makedirs(home)
        models = {name: zoo(self.weft, name) for name in names}
        if kind == "mlserver":
            # With a process for each core and one thread in each, as its authors advise for many models.
            return servers.mlserver(repositories.mlserver_repository(home, models, threads=1), self.folder, parallel_workers=os.cpu_count())
        if kind == "triton":
            return servers.triton(repositories.triton_repository(home, models, more="dynamic_batching { }\n"), self.folder)
        repositories.weft_repository(home, models)
        with open(os.path.join(home, "weft.toml"), "w") as file:
            file.write(settings)
        _, _, policy = kind.partition(":")
        return servers.weft(self.weft, home, self.folder, *(["--policy", policy] if policy else []), api_key=api_key)

    def load(self, server, *arguments, **options):
        """One run of `weft load` over gRPC; gives back its report."""
        return self.load_process(server, *arguments, **options).report()

    def load_process(self, server, *arguments, seconds=None, warm_up_s=None, api_key="", seed=1):
        """The same, while it still runs."""
        warm_up_s = self.warm_up_s if warm_up_s is None else warm_up_s
        command = [self.weft, "load", server.grpc, "--protocol", "grpc", "--seconds", seconds or self.seconds, "--warm-up", warm_up_s,
                   "--seed", seed, "--json", "-", *arguments]
        return LoadProcess([str(part) for part in command], api_key)


class LoadProcess:
    """A running `weft load`."""

    def __init__(self, command, api_key):
        environment = {**os.environ, "WEFT_API_KEY": api_key}
        self.command = command
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)

    def report(self):
        """What it saw, once it has ended."""
        out, errors = self.process.communicate()
        if not out:
            raise RuntimeError(f"{' '.join(self.command)}: {errors}")
        return json.loads(out)


def model(report, name):
    """The part of a report that is about one model."""
    return next(of for of in report["models"] if of["model"] == name)


def percentile_ms(report, name, percentile="p99"):
    """Of the answers; without any it is infinite, and the reasons are said."""
    of = model(report, name)
    if not of["latency_us"]:
        print(f"{name} was not answered once: refused {of['refused']}, failed {of['failed']}", flush=True)
        return float("inf")
    return of["latency_us"][percentile] / 1000
