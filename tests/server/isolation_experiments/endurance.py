"""Long load at 80 % of what the server carries: no request is lost, and memory does not grow."""
from dataclasses import asdict

import tritonclient.grpc as grpc_client

from isolation_experiments.capacity import find
from isolation_experiments.setting import model
from summary import table

NAMES = ("resnet18", "mobilenet_v2", "minilm_l6")
RATES = {"resnet18": 6.0, "mobilenet_v2": 20.0, "minilm_l6": 4.0}
SLO_MS = 500
SHARE = 0.8
SETTLING_S = 60
SEARCH_S = 15
# Before its run, `weft load` asks once for each model to see that it is answered.
TRIED = 1
SERVERS = ("weft",)


def counts(server):
    """Requests that each model has answered and failed, as the server counts them."""
    client = grpc_client.InferenceServerClient(server.grpc)
    statistics = client.get_inference_statistics().model_stats
    client.close()
    return {of.name: of.inference_stats.success.count + of.inference_stats.fail.count for of in statistics}


def run(setting, contenders):
    settings = "".join(f"[models.{name}]\nslo_ms = {SLO_MS}\nrate_per_s = {RATES[name]}\n" for name in NAMES)

    def asked(factor):
        return [part for name in NAMES for part in ("--model", name, "--rate", f"{RATES[name] * factor:.3f}", "--slo", f"{SLO_MS}ms")]

    with setting.start("weft", NAMES, settings) as server:
        best, steps = find(setting.lasting(SEARCH_S), server, asked)
        carried = best.factor
        setting.load(server, *asked(SHARE * carried), seconds=SETTLING_S)
        settled_bytes, before = server.resident_bytes(), counts(server)
        # Without requests that the client does not count.
        report = setting.load(server, *asked(SHARE * carried), seconds=setting.seconds, warm_up_s=0)
        after, ended_bytes = counts(server), server.resident_bytes()
    rows, lost = [], {}
    for name in NAMES:
        of = model(report, name)
        refused, failed = (sum(reason["count"] for reason in of[kind].values()) for kind in ("refused", "failed"))
        counted = after[name] - before[name]
        lost[name] = of["due"] + TRIED - counted - refused
        rows.append([name, of["due"], of["answered"], refused, failed + of["dropped"], counted, f"{of['attainment']:.2%}"])
    growth = ended_bytes / settled_bytes - 1
    print(table(["model", "due", "answered", "refused", "failed", "counted by the server", "in time"], rows))
    print(f"lost: {sum(lost.values())} requests that the client sent, {TRIED} of each model before its run, and the server did not count")
    print(f"resident {settled_bytes / 1e6:.1f} MB, after {setting.seconds:.0f} s {ended_bytes / 1e6:.1f} MB: {growth:+.2%}")
    return {"factor": carried, "search": [asdict(step) for step in steps], "report": report, "counted": {name: after[name] - before[name] for name in NAMES}, "lost": lost,
            "settled_bytes": settled_bytes, "ended_bytes": ended_bytes}
