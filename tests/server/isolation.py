"""Models that share a machine, measured: what they do to each other on Weft, on its baselines, and on other servers.

    tests/server/.peers/triton/bin/python tests/server/isolation.py EXPERIMENT --weft target/release/weft [--json out.json]

The client is `weft load`, over gRPC. Servers are measured in turns, in an order that moves on from round to round.
"""
import argparse
import json
import os
import tempfile

from isolation_experiments import endurance, noisy_neighbour, three_models, two_tenants
from isolation_experiments.setting import Setting

EXPERIMENTS = {"three-models": three_models, "two-tenants": two_tenants, "noisy-neighbour": noisy_neighbour, "endurance": endurance}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("experiment", choices=EXPERIMENTS)
    arguments.add_argument("--weft", required=True, help="the binary")
    arguments.add_argument("--servers", help="which servers, with commas; the first is compared with the others")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--seconds", type=float, default=30, help="of each measurement; 600 for endurance as promised")
    arguments.add_argument("--warm-up", type=float, default=2, help="seconds before each measurement that do not count")
    arguments.add_argument("--json", help="where every single measurement is written")
    options = arguments.parse_args()
    experiment = EXPERIMENTS[options.experiment]
    contenders = tuple(options.servers.split(",")) if options.servers else experiment.SERVERS
    with tempfile.TemporaryDirectory() as folder:
        load_before = os.getloadavg()[0]
        result = experiment.run(Setting(options, folder), contenders)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"experiment": options.experiment, "cores": os.cpu_count(), "load_average_before": load_before, "rounds": options.rounds,
                       "seconds": options.seconds, "result": result}, file, indent=1)


if __name__ == "__main__":
    main()
