"""The heaviest load that a server carries, found by single runs of `weft load`.

`weft load --find-capacity` stops where its generator falls behind, since what lies beyond may be the client's limit. Here client
and server share the cores, so that any load near the limit delays the client. Latency counts from the instant a request
was due, late or not: the delay counts against the server, for every server alike, and is reported with the result.
"""
from dataclasses import asdict, dataclass

FIRST_FACTOR = 0.25
CLOSE = 1.08
MAX_STEPS = 14


@dataclass
class Step:
    factor: float
    due_per_s: float
    attainment: float
    send_delay_ms_p99: float
    is_carried: bool


class NotFound(RuntimeError):
    """The limit was not closed in on; there is no number to report."""


def measured(setting, server, asked, factor, target, seed):
    report = setting.load(server, *asked(factor), seed=seed)
    delays = [of["send_delay_us"]["p99"] for of in report["models"] if of["send_delay_us"]]
    attainment = report["attainment"]
    return Step(factor, report["total"]["due_per_s"], attainment, max(delays) / 1000, attainment >= target)


def find(setting, server, asked, target=0.99, seed=1):
    """The heaviest step that was carried, next to one that was not, and all steps. `asked` makes arguments of a factor."""
    low = high = None
    steps, factor = [], FIRST_FACTOR
    while low is None or high is None or high.factor > low.factor * CLOSE:
        if len(steps) == MAX_STEPS:
            raise NotFound(f"no limit after {MAX_STEPS} runs: {[asdict(step) for step in steps]}")
        step = measured(setting, server, asked, factor, target, seed + len(steps))
        steps.append(step)
        print(f"  {step.due_per_s:.1f} requests/s: {step.attainment:.2%} in time, sent up to {step.send_delay_ms_p99:.1f} ms late (p99)", flush=True)
        if step.is_carried:
            low = step
        else:
            high = step
        factor = (low.factor * high.factor) ** 0.5 if low and high else factor * 2 if low else factor / 2
    return low, steps
