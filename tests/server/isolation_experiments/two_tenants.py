"""A small model with an objective beside a large one that always has four requests in flight, on the same cores."""
import statistics

from isolation_experiments.setting import model, percentile_ms
from summary import table

NAMES = ("mobilenet_v2", "resnet50")
SLO_MS = 50
RATE = 30
SERVERS = ("weft", "weft:time-sharing", "triton")


def run(setting, contenders):
    small = ["--model", "mobilenet_v2", "--rate", RATE, "--slo", f"{SLO_MS}ms"]
    large = ["--model", "resnet50", "--concurrency", 4]
    settings = f"[models.mobilenet_v2]\nslo_ms = {SLO_MS}\nrate_per_s = {RATE}\n[models.resnet50]\nbest_effort = true\n"
    results = {contender: {"alone_ms": [], "beside_ms": [], "resnet50_per_s": [], "attainment": []} for contender in contenders}
    for round_number in range(setting.rounds):
        first = round_number % len(contenders)
        for contender in contenders[first:] + contenders[:first]:
            of = results[contender]
            with setting.start(contender, NAMES, settings) as server:
                of["alone_ms"].append(percentile_ms(setting.load(server, *small, seed=round_number), "mobilenet_v2"))
                report = setting.load(server, *small, *large, seed=round_number)
            of["beside_ms"].append(percentile_ms(report, "mobilenet_v2"))
            of["resnet50_per_s"].append(model(report, "resnet50")["answered_per_s"])
            of["attainment"].append(model(report, "mobilenet_v2")["attainment"])
            print(f"round {round_number + 1}: {contender} " + ", ".join(f"{key} {values[-1]:.3g}" for key, values in of.items()), flush=True)
    rows = []
    for name, of in results.items():
        middle = {key: statistics.median(values) for key, values in of.items()}
        rows.append([name, f"{middle['alone_ms']:.1f}", f"{middle['beside_ms']:.1f}", f"{middle['beside_ms'] / middle['alone_ms']:.2f}",
                     f"{middle['attainment']:.2%}", f"{middle['resnet50_per_s']:.1f}"])
    print(table(["server", "mobilenet_v2 p99 ms alone", "beside resnet50", "ratio", f"within {SLO_MS} ms", "resnet50/s"], rows))
    return results
