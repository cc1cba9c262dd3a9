"""Three models under Poisson load with objectives at five times their latency alone: how much each server carries.

The rates are such that each model alone would keep the machine busy for the same share of the time. `weft load` searches the
factor on them at which 99 % of all requests are still answered in time.
"""
import statistics

from isolation_experiments.setting import percentile_ms
from summary import spread, table

NAMES = ("resnet18", "mobilenet_v2", "minilm_l6")
SLO_FACTOR = 5
SERVERS = ("weft", "weft:time-sharing", "weft:round-robin", "weft:equal-partitions", "mlserver")
# Of the machine's time that each model takes at the factor with which the search begins.
FIRST_SHARE = 0.2


def alone_ms(setting):
    """What each model takes alone, with all cores to itself."""
    latencies = {}
    with setting.start("weft", NAMES) as server:
        for name in NAMES:
            report = setting.load(server, "--model", name, "--concurrency", 1)
            latencies[name] = percentile_ms(report, name, "p50")
    return latencies


def run(setting, contenders):
    alone = alone_ms(setting)
    slo = {name: SLO_FACTOR * alone[name] for name in NAMES}
    rate = {name: FIRST_SHARE * 1000 / alone[name] for name in NAMES}
    settings = "".join(f"[models.{name}]\nslo_ms = {slo[name]:.3f}\nrate_per_s = {rate[name]:.3f}\n" for name in NAMES)
    arguments = [part for name in NAMES for part in ("--model", name, "--rate", f"{rate[name]:.3f}", "--slo", f"{slo[name]:.3f}ms")]
    carried = {contender: [] for contender in contenders}
    for round_number in range(setting.rounds):
        first = round_number % len(contenders)
        for contender in contenders[first:] + contenders[:first]:
            with setting.start(contender, NAMES, settings) as server:
                report = setting.load(server, *arguments, "--find-capacity", seed=1 + 100 * round_number)
            carried[contender].append(report["carried_per_s"] or 0.0)
            print(f"round {round_number + 1}: {contender} carries {carried[contender][-1]:.1f} requests/s", flush=True)
    own = statistics.median(carried[contenders[0]])
    rows = [[name, f"{statistics.median(runs):.1f}", f"±{spread(runs):.0%}" if min(runs) > 0 else "-", f"{own / max(statistics.median(runs), 1e-9):.2f}"]
            for name, runs in carried.items()]
    print(", ".join(f"{name} {alone[name]:.1f} ms alone, SLO {slo[name]:.0f} ms" for name in NAMES))
    print(table(["server", "requests/s with 99 % in time", "spread", f"{contenders[0]} to it"], rows))
    return {"alone_ms": alone, "slo_ms": slo, "carried_per_s": carried}

