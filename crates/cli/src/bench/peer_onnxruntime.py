"""Runs onnxruntime for `weft bench peers`: reads one JSON command per line, answers each with one line of JSON."""
import json
import os
import sys
import time


def memory_mib(key):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(key):
                return int(line.split()[1]) / 1024


def import_runtime():
    import numpy
    import onnxruntime

    return numpy, onnxruntime


def hello(state, command):
    numpy, runtime = import_runtime()
    return {"version": runtime.__version__, "numpy": numpy.__version__}


def load(state, command):
    numpy, runtime = import_runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = command["threads"]
    options.inter_op_num_threads = 1
    # The same cores as Weft's partition: without this the process may run anywhere.
    os.sched_setaffinity(0, command["cores"])
    before = memory_mib("VmRSS:")
    start = time.perf_counter()
    state["session"] = runtime.InferenceSession(command["model"], options, providers=["CPUExecutionProvider"])
    load_ms = (time.perf_counter() - start) * 1e3
    state["inputs"] = {name: numpy.load(path) for name, path in command["inputs"].items()}
    return {"load_ms": load_ms, "before_mib": before, "peak_mib": memory_mib("VmHWM:"), "resident_mib": memory_mib("VmRSS:")}


def run(state, command):
    session, inputs = state["session"], state["inputs"]
    start = time.perf_counter()
    for _ in range(command.get("times", 1)):
        session.run(None, inputs)
    return {"ms": (time.perf_counter() - start) * 1e3 / command.get("times", 1), "peak_mib": memory_mib("VmHWM:")}


def outputs(state, command):
    numpy, _ = import_runtime()
    results = state["session"].run(None, state["inputs"])
    for result, path in zip(results, command["files"]):
        numpy.save(path, result)
    return {"count": len(results)}


def main():
    state = {}
    actions = {"hello": hello, "load": load, "run": run, "outputs": outputs}
    for line in sys.stdin:
        try:
            command = json.loads(line)
            answer = actions[command["do"]](state, command)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
