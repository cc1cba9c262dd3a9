"""A tenant that asks for five times as much as it may: what the others notice of it."""
import json
import statistics
import subprocess

from isolation_experiments.setting import model, percentile_ms
from summary import table

NAMES = ("mobilenet_v2", "resnet18")
QUIET_RATE, NOISY_LIMIT, TIMES = 20, 10, 5
SLO_MS = 100
SERVERS = ("weft",)


def new_key(weft):
    """A key and its hash, as `weft key` makes them."""
    return json.loads(subprocess.run([weft, "key", "--json"], check=True, capture_output=True, text=True).stdout)


def run(setting, contenders):
    quiet, noisy = new_key(setting.weft), new_key(setting.weft)
    settings = (
        f"[models.mobilenet_v2]\nslo_ms = {SLO_MS}\nrate_per_s = {QUIET_RATE}\n[models.resnet18]\nslo_ms = {SLO_MS * 2}\nrate_per_s = {NOISY_LIMIT}\n"
        f"[tenants.quiet]\nkey_hashes = ['{quiet['hash']}']\n[tenants.noisy]\nkey_hashes = ['{noisy['hash']}']\nrate_per_s = {NOISY_LIMIT}\nburst = {NOISY_LIMIT}\n"
    )
    asked = ["--model", "mobilenet_v2", "--rate", QUIET_RATE, "--slo", f"{SLO_MS}ms"]
    results = {"within_limit_ms": [], "past_limit_ms": [], "noisy_answered_per_s": [], "noisy_refused": []}
    for round_number in range(setting.rounds):
        with setting.start("weft", NAMES, settings, quiet["key"]) as server:
            for key, rate in (("within_limit_ms", NOISY_LIMIT * 0.9), ("past_limit_ms", NOISY_LIMIT * TIMES)):
                neighbour = setting.load_process(server, "--model", "resnet18", "--rate", rate, api_key=noisy["key"], seed=round_number + 50)
                report = setting.load(server, *asked, api_key=quiet["key"], seed=round_number)
                of_neighbour = model(neighbour.report(), "resnet18")
                results[key].append(percentile_ms(report, "mobilenet_v2"))
            results["noisy_answered_per_s"].append(of_neighbour["answered_per_s"])
            results["noisy_refused"].append({reason: of["count"] for reason, of in of_neighbour["refused"].items()})
    within, past = (statistics.median(results[key]) for key in ("within_limit_ms", "past_limit_ms"))
    print(table(["the neighbour asks for", "p99 of the other, ms", "ratio"],
                [[f"{NOISY_LIMIT * 0.9:.0f}/s, less than it may", f"{within:.1f}", ""], [f"{NOISY_LIMIT * TIMES}/s, {TIMES} times what it may", f"{past:.1f}", f"{past / within:.2f}"]]))
    print(f"the neighbour was answered {statistics.median(results['noisy_answered_per_s']):.1f} times a second, and refused {results['noisy_refused']}")
    return results
