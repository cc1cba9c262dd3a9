"""Three models under Poisson load with objectives at five times their latency alone: how much each server carries.

The rates are such that each model alone would keep the machine busy for the same share of the time. Searched is the factor on
them at which 99 % of all requests are still answered in time. Objectives are the same for every server: five times what
the first of them takes; what each takes alone is reported.
"""
import statistics
from dataclasses import asdict

from isolation_experiments.capacity import find
from isolation_experiments.setting import percentile_ms
from summary import spread, table

NAMES = ("resnet18", "mobilenet_v2", "minilm_l6")
SLO_FACTOR = 5
SERVERS = ("weft", "weft:time-sharing", "weft:round-robin", "weft:equal-partitions", "mlserver")


def alone_ms(setting, contender):
    """The median latency of each model with one client and nobody else."""
    with setting.start(contender, NAMES) as server:
        return {name: percentile_ms(setting.load(server, "--model", name, "--concurrency", 1), name, "p50") for name in NAMES}


def run(setting, contenders):
    alone = {contender: alone_ms(setting, contender) for contender in contenders}
    own = alone[contenders[0]]
    slo = {name: SLO_FACTOR * own[name] for name in NAMES}
    rate = {name: 1000 / own[name] for name in NAMES}
    settings = "".join(f"[models.{name}]\nslo_ms = {slo[name]:.3f}\n" for name in NAMES)

    def asked(factor):
        return [part for name in NAMES for part in ("--model", name, "--rate", f"{rate[name] * factor:.3f}", "--slo", f"{slo[name]:.3f}ms")]

    searches = {contender: [] for contender in contenders}
    for round_number in range(setting.rounds):
        first = round_number % len(contenders)
        for contender in contenders[first:] + contenders[:first]:
            with setting.start(contender, NAMES, settings) as server:
                best, steps = find(setting, server, asked, seed=1 + 100 * round_number)
            searches[contender].append({"best": asdict(best), "steps": [asdict(step) for step in steps]})
            print(f"round {round_number + 1}: {contender} carries {best.due_per_s:.1f} requests/s, {best.attainment:.2%} in time, "
                  f"sent up to {best.send_delay_ms_p99:.1f} ms late (p99), {len(steps)} runs", flush=True)
    carried = {contender: [search["best"]["due_per_s"] for search in of] for contender, of in searches.items()}
    mine = statistics.median(carried[contenders[0]])
    rows = []
    for contender, runs in carried.items():
        late = max(search["best"]["send_delay_ms_p99"] for search in searches[contender])
        rows.append([contender, ", ".join(f"{alone[contender][name]:.1f}" for name in NAMES), f"{statistics.median(runs):.1f}", f"±{spread(runs):.0%}",
                     f"{mine / statistics.median(runs):.2f}", f"{late:.1f}"])
    print("SLOs: " + ", ".join(f"{name} {slo[name]:.0f} ms" for name in NAMES))
    print(table(["server", "ms alone", "requests/s with 99 % in time", "spread", f"{contenders[0]} to it", "client late ms p99"], rows))
    return {"alone_ms": alone, "slo_ms": slo, "searches": searches}
