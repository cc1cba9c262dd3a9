"""The command line as a user meets it: good runs, and bad input that must end in exit code 2 and one clear message."""
import fcntl
import json
import os
import pty
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import termios
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy
import onnx
from onnx import TensorProto, helper

WEFT = sys.argv[1]
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOUR_MODELS = os.path.join(ROOT, "workloads", "four-models.toml")
passed = failed = 0


def run(*arguments):
    return subprocess.run([WEFT, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def expect(name, condition, detail=""):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {name}: {detail}")


def good(name, *arguments, says=""):
    result = run(*arguments)
    expect(name, result.returncode == 0 and says in result.stdout, result.stderr or result.stdout)
    return result


def bad(name, *arguments, says):
    result = run(*arguments)
    message = result.stderr
    is_clear = result.returncode == 2 and says in message and "panicked" not in message
    expect(name, is_clear, f"exit {result.returncode}: {message}")


def save_model(path, nodes, inputs, outputs, initialisers=(), opset=17):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initialisers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    with open(path, "wb") as file:
        file.write(model.SerializeToString())


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def good_runs(folder):
    model = os.path.join(folder, "tiny.onnx")
    good("zoo lists", "zoo", says="resnet50")
    good("zoo writes", "zoo", "tiny_resnet", "-o", model, says="nodes")
    good("zoo external", "zoo", "tiny_vgg", "-o", os.path.join(folder, "external.onnx"), "--external-data")
    good("external data is read", "infer", os.path.join(folder, "external.onnx"), "--random", 1, says="ms on cores")
    good("inspect", "inspect", model, "--steps", says="fold-batch-norm")
    good("inspect plans for a GPU, here or not", "inspect", model, "--device", "cuda", "--sms", 32, "--steps", says="planned  for 32 SMs")
    report = json.loads(good("inspect json", "inspect", model, "--json").stdout)
    expect("inspect counts", report["flops"] > 0 and report["arena_bytes"] > 0 and len(report["steps"]) > 5)
    devices = json.loads(good("devices json", "devices", "--json").stdout)
    expect("devices", devices["devices"][0]["kind"] == "cpu")
    kinds = [device["kind"] for device in devices["devices"]]
    expect("a GPU is here or the reason why not", ("cuda" in kinds) != ("cuda" in devices["absent"]), devices)
    shape = report["inputs"][0]["shape"]
    x = os.path.join(folder, "x.npy")
    y = os.path.join(folder, "y.npy")
    numpy.save(x, numpy.random.default_rng(1).standard_normal(shape, dtype=numpy.float32))
    good("infer", "infer", model, "--input", f"input={x}", "--output", y, "--cores", "0", says="ms on cores 0")
    expect("output is written", numpy.isfinite(numpy.load(y)).all())
    groups = json.loads(good("groups", "bench", "groups", "zoo:tiny_resnet", "--tenants", "1,3", "--cores", 1, "--rounds", 1, "--json").stdout)
    expect("both numbers of tenants", [(row["tenants"], row["gain"] > 0) for row in groups] == [(1, True), (3, True)], groups)
    good("bench", "bench", "model", model, "--batch", "1,2", "--seconds", "0.05", "--steps", says="% of peak")
    profiles, plot = os.path.join(folder, "profiles.toml"), os.path.join(folder, "profiles.svg")
    good("profile", "profile", model, "--batches", "1,2", "--units", 1, "--seconds", "0.02", "-o", profiles, says="1 unit")
    good("profiles are added to", "profile", model, "zoo:tiny_vgg", "--batches", "1,2", "--units", 1, "--seconds", "0.02", "-o", profiles, "--add", says="tiny_vgg")
    expect("what was in the file is kept", open(profiles).read().count("[models.") == 2)
    good("profiles are read back and drawn", "profile", "--from", profiles, "--plot", plot, says="tiny")
    expect("the drawing has a line and a knee per batch", open(plot).read().count("<circle") == 4)
    mix, drawing, trace = (os.path.join(folder, name) for name in ("mix.toml", "mix.svg", "trace.json"))
    with open(mix, "w") as file:
        file.write('[[models]]\nmodel = "tiny.onnx"\ncount = 2\n[[models]]\nmodel = "zoo:tiny_mobilenet_v2"\nbatch = 2\n')
    options = ("--budget", "300ms", "--svg", drawing, "--trace", trace, "--no-database")
    found = json.loads(good("regulate", "regulate", mix, *options, "--json").stdout)
    ways = {"one_after_another", "free_running_threads", "even_partitions", "regulated"}
    expect("a mix runs in every way", set(found["times_us"]) == ways and min(found["times_us"].values()) > 0, found["times_us"])
    for place in range(3):
        ranges = [(part["first_step"], part["end_step"]) for part in found["segments"] if part["model"] == place]
        is_in_order = all(before[1] == after[0] for before, after in zip(ranges, ranges[1:]))
        expect("all steps of a mix run in order", ranges and ranges[0][0] == 0 and is_in_order, ranges)
    expect("a mix is drawn", "regulated" in open(drawing).read() and "tiny_mobilenet_v2" in open(drawing).read())
    events = json.load(open(trace))["traceEvents"]
    expect("a mix is traced", sum(event["ph"] == "X" for event in events) >= 6, events)
    tracks = {(event["pid"], event["tid"]) for event in events if event["ph"] == "X"}
    expect("its tracks have names", tracks <= {(event["pid"], event.get("tid")) for event in events if event["name"] == "thread_name"}, events)
    expect("models that are the same are told apart", [name.rsplit("/")[-1] for name in found["models"]] == ["tiny.onnx b1 (1)", "tiny.onnx b1 (2)", "zoo:tiny_mobilenet_v2 b2"], found["models"])
    good("regulate for people", "regulate", mix, "--cores", 1, "--budget", "100ms", "--coordinate-descent", "--no-database", says="free-running threads")
    rows = json.loads(good("bench regulation", "bench", "regulation", "tiny_resnet+zoo:tiny_vgg", "--budget", "0.2", "--rounds", 1, "--json").stdout)
    expect("a mix of the benchmark", [(row["mix"], row["gain"] > 0) for row in rows] == [("tiny_resnet+zoo:tiny_vgg", True)], rows)
    for command in (("regulate", mix, "--budget", "10ms", "--no-database"), ("bench", "groups", "zoo:tiny_resnet", "--tenants", 1, "--rounds", 1), ("inspect", model, "--steps"), ("zoo",), ("devices",)):
        read, written = os.pipe()
        os.close(read)
        unread = subprocess.run([WEFT, *map(str, command)], stdout=written, stderr=subprocess.PIPE, text=True, timeout=120)
        os.close(written)
        expect(f"nobody reads what {command[0]} says", unread.returncode == 0 and "panicked" not in unread.stderr, unread.stderr)
        with open("/dev/full", "w") as full:
            unwritten = subprocess.run([WEFT, *map(str, command)], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
            expect(f"what {command[0]} says has no place", unwritten.returncode == 2 and "standard output" in unwritten.stderr, unwritten.stderr)
    rows = subprocess.run([WEFT, "bench", "regulation", "tiny_resnet", "--budget", "0.01", "--rounds", "1"], stdout=subprocess.PIPE, stderr=open("/dev/full", "w"), text=True, timeout=120)
    expect("notes that cannot be written end nothing", rows.returncode == 0 and "tiny_resnet" in rows.stdout, rows)
    wrong = subprocess.run([WEFT, "regulate", "none.toml"], stderr=open("/dev/full", "w"), timeout=120)
    expect("nor does a message that cannot be", wrong.returncode == 2, wrong.returncode)
    return model, x


def kept_schedules(folder):
    mix, database, lines = (os.path.join(folder, name) for name in ("kept.toml", "schedules.db", "schedules.jsonl"))
    with open(mix, "w") as file:
        file.write('[[models]]\nmodel = "zoo:tiny_resnet"\n[[models]]\nmodel = "zoo:tiny_vgg"\n')
    # No search follows what is known: it is all that is run.
    once = ("regulate", mix, "--cores", 1, "--budget", "100ms", "--database", database)
    again = ("regulate", mix, "--cores", 1, "--budget", "1us", "--database", database)
    good("a mix that is not known", *once, says="schedule found now")
    good("a mix that is known", *again, says=time.strftime("schedule known since %Y-%m-", time.gmtime()))
    known = json.loads(good("a mix that is known, as JSON", *again, "--json").stdout)["known_since_unix_ms"]
    listed = json.loads(good("schedules are counted", "tuning", "list", "--json", "--database", database).stdout)
    expect("one schedule", [platform["schedules"] for platform in listed["platforms"]] == [1], listed)
    dumped = json.loads(good("schedules as JSON", "tuning", "dump", "--schedules", "--json", "--database", database).stdout)["schedules"]
    expect("the schedule is that of the first run", [(row["units"], row["recorded_unix_ms"]) for row in dumped] == [(1, known)], dumped)
    expect("its models are named", dumped[0]["models"] == ["zoo:tiny_resnet b1", "zoo:tiny_vgg b1"], dumped)
    good("schedules for people", "tuning", "dump", "--schedules", "--database", database, says="zoo:tiny_resnet b1 + zoo:tiny_vgg b1")
    bad("no such chip to dump schedules of", "tuning", "dump", "--schedules", "--chip", "three", "--database", database, says="'three'")
    good("what is known is not asked for", *once[:-2], "--no-database", says="schedule found now")
    with open(mix, "a") as file:
        file.write("batch = 2\n")
    good("another batch is another mix", *once, says="schedule found now")
    with open(mix) as file:
        text = file.read().replace("batch = 2\n", "")
    with open(mix, "w") as file:
        file.write(text)

    exporting = good("schedules are exported", "tuning", "export", "--database", database).stdout
    header, *records = map(json.loads, exporting.splitlines())
    expect("an export with schedules says so", header == {"weft_tuning_export": 2, "records": 2}, header)
    for name, change, says in (
        ("a schedule that is no text of one", lambda stages: stages[1:], "is not used: it cannot be read"),
        ("a schedule of other steps", lambda stages: stages.replace('"steps":[', '"steps":[1', 1), "steps, and has"),
        ("a schedule of more units", lambda stages: stages.replace('"units":[', '"units":[9', 1), "more than 1 units"),
    ):
        with open(lines, "w") as file:
            file.write(json.dumps(header) + "\n")
            for record in records:
                of = record["schedule"]
                file.write(json.dumps({"schedule": {**of, "stages": change(of["stages"])}}) + "\n")
        strange = os.path.join(folder, f"{abs(hash(name))}.db")
        good(f"{name} is imported", "tuning", "import", lines, "--database", strange, says="2 records, 2 taken in")
        result = good(name, *once[:-1], strange, says="schedule found now")
        expect(f"{name} is not used", says in result.stderr, result.stderr)
        good(f"{name} is replaced", *once[:-3], "1us", "--database", strange, says="schedule known since")
        good(f"{name} is shown", "tuning", "dump", "--schedules", "--database", strange, says="2 schedules")

    connection = sqlite3.connect(database)
    connection.execute("UPDATE schedules SET stages = stages || ' '")
    connection.commit()
    connection.close()
    bad("a schedule that was damaged", *once, says="the checksum of a schedule does not fit it")
    environment = {**os.environ, "WEFT_TUNING_DB": database}
    result = subprocess.run([WEFT, *map(str, once[:-2])], capture_output=True, text=True, timeout=120, env=environment)
    expect("a damaged database that nobody named is only mentioned", result.returncode == 0 and "checksum" in result.stderr, result.stderr)
    good("old schedules go", "tuning", "prune", "--older-than", "0m", "--database", strange, says="2 schedules forgotten")


def bad_mixes(folder):
    mix = os.path.join(folder, "wrong.toml")

    def written(text):
        with open(mix, "w") as file:
            file.write(text)
        return mix

    tiny = '[[models]]\nmodel = "zoo:tiny_resnet"\n'
    bad("no such mix", "regulate", os.path.join(folder, "none.toml"), says="none.toml")
    bad("a mix of nothing", "regulate", written(""), says="models")
    bad("a mix whose second model is missing", "regulate", written(tiny + "[[models]]\nbatch = 2\n"), says="line 3: 'model' is missing")
    bad("a mix with a typing error", "regulate", written(tiny + "btach = 2\n"), says="btach")
    bad("a mix with no such model", "regulate", written('[[models]]\nmodel = "zoo:resnet51"\n'), says="resnet51")
    bad("a mix with a model that is not there", "regulate", written('[[models]]\nmodel = "none.onnx"\n'), says="none.onnx")
    bad("a mix on more cores than there are", "regulate", written(tiny), "--cores", 999, says="999 cores asked for")
    bad("a mix on no cores", "regulate", written(tiny), "--cores", 0, says="0 cores asked for")
    bad("a mix on no such GPU", "regulate", written(tiny), "--device", "cuda:99", says="CUDA device cannot be used")
    bad("a GPU's kernels for a mix on a CPU", "regulate", written(tiny), "--choice", "estimated", says="--choice")
    nowhere = os.path.join(folder, "nowhere", "mix.svg")
    bad("a drawing that cannot be written is no matter of hours", "regulate", written(tiny), "--budget", "300m", "--svg", nowhere, says=nowhere)
    bad("a trace that cannot be written", "regulate", written(tiny), "--budget", "300m", "--trace", folder, says=folder)
    bad("a drawing in place of the mix", "regulate", written(tiny), "--svg", mix, says="named twice")
    expect("leaves the mix as it is", open(mix).read() == tiny)
    bad("two drawings in one file", "regulate", written(tiny), "--svg", nowhere, "--trace", nowhere, says="named twice")
    full = run("regulate", written(tiny), "--budget", "10ms", "--no-database", "--svg", "/dev/full")
    expect("what cannot be drawn is said all the same", full.returncode == 2 and "schedule found now" in full.stdout and "/dev/full" in full.stderr, full)
    several = written(tiny + '[[models]]\nmodel = "zoo:tiny_bert"\n')
    bad("a dimension that is too long for one model", "regulate", several, "--no-database", says="zoo:tiny_bert")
    bad("a dimension that no model has", "regulate", several, "--dim", "width=8", says="no model has a dimension 'width'; they have batch, sequence")
    good("a dimension that one model has", "regulate", several, "--dim", "sequence=8", "--budget", "10ms", "--no-database", says="zoo:tiny_bert b1")
    early = run("bench", "regulation", "tiny_resnet+tiny_vgg", "tiny_resnet+resnet51", "--budget", "0.1")
    expect("a wrong model of a later mix is known at once", early.returncode == 2 and "resnet51" in early.stderr and "regulated" not in early.stderr, early.stderr)
    bad("a mix in no rounds", "bench", "regulation", "tiny_resnet", "--rounds", 0, says="--rounds")
    bad("a mix searched for ever", "bench", "regulation", "tiny_resnet", "--budget", "inf", says="--budget")
    bad("a mix without end", "regulate", "/dev/zero", says="larger than 16 MiB")
    bad("a mix searched for no time", "bench", "regulation", "tiny_resnet", "--budget", 0, says="--budget")
    bad("a mix of no batch", "bench", "regulation", "tiny_resnet", "--batch", 0, says="--batch")


def bad_arguments(model, x, folder):
    bad("no such file", "infer", os.path.join(folder, "none.onnx"), says="none.onnx")
    bad("no such zoo model", "zoo", "resnet51", says="resnet50")
    bad("missing input", "infer", model, says="'input'")
    bad("wrong input name", "infer", model, "--input", f"image={x}", says="'image'")
    bad("input given twice", "infer", model, "--input", x, "--input", x, says="twice")
    bad("no such core", "infer", model, "--input", x, "--cores", "99", says="99")
    bad("no such device", "infer", model, "--input", x, "--device", "tpu", says="tpu")
    bad("no such GPU", "infer", model, "--input", x, "--device", "cuda:99", says="CUDA device cannot be used")
    bad("precision of a CPU", "infer", model, "--input", x, "--precision", "f16", says="--precision")
    bad("a group of nobody", "bench", "groups", "zoo:tiny_resnet", "--tenants", 0, says="--tenants")
    bad("a group on more cores than there are", "bench", "groups", "zoo:tiny_resnet", "--cores", 999, says="999 cores asked for")
    bad("a group at another precision", "bench", "groups", "zoo:tiny_resnet", "--precision", "f16", says="--precision")
    dimension = ("bench", "groups", "zoo:tiny_bert", "zoo:tiny_resnet", "--tenants", 1, "--rounds", 1, "--dim")
    good("a dimension that one group has", *dimension, "sequence=8", says="zoo:tiny_resnet")
    bad("a dimension that no group has", *dimension, "width=8", says="no model has a dimension 'width'")
    bad("no such table", "bench", "gpu", "speed", says="latency")
    bad("no such model in a table", "bench", "gpu", "--models", "resnet51", says="resnet50")
    bad("no such GPU to measure", "bench", "gpu", "--device", "cuda:99", says="CUDA device cannot be used")
    bad("no such GPU to share", "bench", "superkernel", "--device", "cuda:99", says="CUDA device cannot be used")
    bad("no such product", "bench", "superkernel", "--shapes", "round", says="MxNxK")
    bad("a product of nothing", "bench", "superkernel", "--shapes", "0x4x4", says="MxNxK")
    bad("no such precision", "infer", model, "--input", x, "--device", "cuda", "--precision", "f8", says="f8")
    bad("SMs of a CPU", "infer", model, "--input", x, "--sms", 8, says="--sms")
    bad("no cores", "infer", model, "--input", x, "--cores", "", says="cores")
    bad("no such dimension", "inspect", model, "--dim", "time=3", says="time")
    bad("unknown output", "infer", model, "--input", x, "--output", "z=y.npy", says="'z'")
    wrong = os.path.join(folder, "wrong.npy")
    numpy.save(wrong, numpy.zeros((1, 3, 7), dtype=numpy.float32))
    bad("wrong rank", "infer", model, "--input", wrong, says="rank 3")
    numpy.save(wrong, numpy.zeros((1, 5, 32, 32), dtype=numpy.float32))
    bad("wrong channels", "infer", model, "--input", wrong, says="axis 1")
    numpy.save(wrong, numpy.zeros((1, 3, 32, 32), dtype=numpy.int64))
    bad("wrong type", "infer", model, "--input", wrong, says="int64")
    with open(wrong, "wb") as file:
        file.write(b"\x93NUMPY nonsense")
    bad("broken array", "infer", model, "--input", wrong, says="wrong.npy")
    bad("output folder missing", "infer", model, "--input", x, "--output", os.path.join(folder, "no", "y.npy"), says="y.npy")


def bad_profiles(model, folder):
    bad("no model to profile", "profile", says="MODELS")
    bad("no such model to profile", "profile", os.path.join(folder, "none.onnx"), says="none.onnx")
    bad("profile of batch 0", "profile", model, "--batches", "0", says="--batches")
    bad("profile on more units than there are", "profile", model, "--units", "4096", says="4096")
    bad("profile of no seconds", "profile", model, "--seconds=-1", says="--seconds")
    bad("profile of one model twice", "profile", model, model, "--batches", 1, "--units", 1, "--seconds", 0, says="'tiny'")
    bad("profile into no folder", "profile", model, "--batches", 1, "--units", 1, "--seconds", 0, "-o", os.path.join(folder, "no", "p.toml"), says="p.toml")
    bad("profile with no memory's bandwidth", "profile", model, "--bandwidth", 0, says="--bandwidth")
    bad("a GPU's options on a CPU", "profile", model, "--choice", "estimated", says="--choice")
    bad("profiles added to no file", "profile", model, "--add", says="--output")
    h200 = os.path.join(folder, "h200.toml")
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    shutil.copy(os.path.join(root, "profiles", "h200.toml"), h200)
    bad("profiles of two devices in one file", "profile", model, "-o", h200, "--add", says="NVIDIA H200")
    path = os.path.join(folder, "bad.toml")
    with open(path, "w") as file:
        file.write("[device]\nname = 'd'\nunits = 0\n[models.a]\nbatches = [1, 1]\n")
    for problem in ("line 1: 'unit' is missing", "line 3: 'units' must be", "line 4: 'latency_us' is missing", "line 5: 1 is given twice"):
        bad(f"all problems of a profile file: {problem}", "profile", "--from", path, says=problem)
    with open(path, "wb") as file:
        file.write(b"\xff\x00[")
    bad("a profile file that is no text", "profile", "--from", path, says="bad.toml")


def hostile_models(model, folder):
    path = os.path.join(folder, "hostile.onnx")
    whole = open(model, "rb").read()
    for length in (0, 1, 10, len(whole) // 2, len(whole) - 1):
        with open(path, "wb") as file:
            file.write(whole[:length])
        bad(f"truncated at {length}", "inspect", path, says="hostile.onnx")
    with open(path, "wb") as file:
        file.write(os.urandom(4096))
    bad("garbage", "inspect", path, says="hostile.onnx")

    x, y = value("x", [2]), value("y", [2])
    node = helper.make_node
    save_model(path, [node("Relu", ["a"], ["b"], "one"), node("Relu", ["b"], ["a"], "two"), node("Add", ["a", "x"], ["y"])], [x], [y])
    bad("cycle", "inspect", path, says="cycle")
    save_model(path, [node("Add", ["x", "missing"], ["y"], "sum")], [x], [y])
    bad("undefined value", "inspect", path, says="'missing'")
    save_model(path, [node("Nonsense", ["x"], ["z"], "n1"), node("Gibberish", ["z"], ["y"], "n2")], [x], [y])
    bad("unsupported operators are all named", "inspect", path, says="Gibberish")
    bad("with their nodes", "inspect", path, says="'n1'")
    save_model(path, [node("Add", ["x", "w"], ["y"], "sum")], [x], [y], [helper.make_tensor("w", TensorProto.FLOAT, [3], [1, 2, 3])])
    bad("shapes that do not fit", "inspect", path, says="'sum'")
    huge = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1 << 40, 1 << 40])
    save_model(path, [node("Add", ["x", "w"], ["y"], "sum")], [x], [y], [huge])
    bad("overflowing weights", "inspect", path, says="'w'")
    short = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1000], raw_data=b"1234")
    save_model(path, [node("Add", ["x", "w"], ["y"], "sum")], [x], [y], [short])
    bad("weights that are not there", "inspect", path, says="'w'")
    shape = helper.make_tensor("s", TensorProto.INT64, [2], [1 << 33, 1 << 20])
    save_model(path, [node("Expand", ["x", "s"], ["y"], "big")], [value("x", [1])], [value("y", None)], [shape])
    bad("a result past the limit", "infer", path, "--random", 1, says="'big'")
    outside = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for location in ("../secret", "/etc/passwd", "nowhere.bin"):
        del outside.external_data[:]
        outside.external_data.add(key="location", value=location)
        save_model(path, [node("Add", ["x", "w"], ["y"], "sum")], [x], [y], [outside])
        bad(f"external data at {location}", "inspect", path, says=os.path.basename(location))
    index = value("i", [1], TensorProto.INT64)
    save_model(path, [node("Gather", ["x", "i"], ["y"], "pick")], [x, index], [value("y", [1])])
    i, v = os.path.join(folder, "i.npy"), os.path.join(folder, "v.npy")
    numpy.save(i, numpy.array([7]))
    numpy.save(v, numpy.zeros(2, dtype=numpy.float32))
    bad("an index past the end", "infer", path, "--input", f"i={i}", "--input", f"x={v}", says="'pick'")


def simulations(folder):
    result, again, drawing = (os.path.join(folder, name) for name in ("result.json", "again.json", "report.svg"))

    def simulated(name, *arguments):
        good(name, "simulate", *arguments, "--json", result)
        with open(result) as file:
            return json.load(file)

    text = good("simulate", "simulate", FOUR_MODELS, "--json", again, "--svg", drawing, says="equal-partitions").stdout
    with open(again) as file:
        policies = json.load(file)
    expect("prediction errors are said", "predictions off by, %" in text)
    errors = {policy["policy"]: policy["prediction_error"] for policy in policies["policies"]}
    # Durations stray by a standard deviation of 3 %: half of them by less than two thirds of that.
    expect("and are those of the noise", 0.01 < errors["weft"]["median"] < 0.03 < errors["weft"]["p95"] < 0.1)
    expect("who predicts nothing has none", errors["round-robin"] is None)
    expect("a simulation can be repeated", simulated("simulate again", FOUR_MODELS) == policies)
    expect("another seed draws otherwise", simulated("another seed", FOUR_MODELS, "--seed", 2)["policies"] != policies["policies"])
    for policy in policies["policies"]:
        for of in policy["models"]:
            ended = of["in_time"] + of["late"] + of["refused"] + of["shed"]
            expect("every request ends once", ended == of["arrived"], f"{policy['policy']}: {of}")
        for key in ("arrived", "in_time"):
            total = sum(of[key] for of in policy["models"])
            expect(f"intervals add up: {key}", sum(policy["intervals"][key]) == total, policy["intervals"])
        expect("every policy is in the table", policy["policy"] in text, text)
    expect("a dot for each model of each policy", open(drawing).read().count("<circle") == 4 * len(policies["policies"]))
    one = ("--policies", "time-sharing")
    half = simulated("half the rates", FOUR_MODELS, *one, "--scale", "0.5")["policies"][0]
    arrived = sum(of["arrived"] for of in half["models"])
    expect("rates are scaled", 7000 < arrived < 9000, arrived)
    loose = simulated("longer objectives", FOUR_MODELS, *one, "--slo-scale", 2)["policies"][0]
    expect("objectives are scaled", loose["models"][0]["slo_us"] == 2 * policies["policies"][0]["models"][0]["slo_us"])

    path = os.path.join(folder, "trace.json")
    good("trace", "simulate", FOUR_MODELS, *one, "--trace", path)
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    executions = [event for event in events if event.get("cat") == "execution"]
    answered = policies["policies"][0]["models"]
    expected = sum(of["in_time"] + of["late"] for of in answered)
    expect("every answer is in the trace", sum(event["args"]["batch"] for event in executions) == expected, len(executions))
    good("traces of two policies", "simulate", FOUR_MODELS, "--policies", "time-sharing,equal-partitions", "--trace", path)
    expect("each has its own", all(os.path.exists(os.path.join(folder, f"trace.{name}.json")) for name in ("time-sharing", "equal-partitions")))

    most = simulated("most load", FOUR_MODELS, "--policies", "time-sharing,equal-partitions", "--max-rate", "--target", "0.95")["policies"]
    expect("the most load keeps the target", all(0.95 <= of["attainment"] < 0.98 and of["factor"] > 0 for of in most), most)
    expect("the best is compared with the other", abs(most[0]["to_best_other"] * most[1]["to_best_other"] - 1) < 1e-9, most)

    fleet = os.path.join(folder, "fleet.toml")
    with open(fleet, "w") as file:
        file.write(f"profiles = '{ROOT}/profiles/h200.toml'\nseconds = 1\ndevices = 3\n[models.net]\nprofile = 'resnet50'\nrate = 500\nslo_factor = 5\ncopies = 9\n")
    of = simulated("a fleet", fleet, *one, "--svg", drawing)["policies"][0]
    expect("devices add up", len(of["devices"]) == 3 and sum(device["arrived"] for device in of["devices"]) == sum(of["arrived"] for of in of["models"]), of)
    expect("a dot for each model and device", open(drawing).read().count("<circle") == 9 + 3)
    bad("a trace of a fleet", "simulate", fleet, "--trace", path, says="--trace")
    bad("the most load of a fleet", "simulate", fleet, "--max-rate", says="--max-rate")
    bad("a plan of a fleet", "plan", fleet, says="3 devices")

    many = os.path.join(folder, "many.toml")
    with open(many, "w") as file:
        file.write(f"profiles = '{ROOT}/profiles/h200.toml'\nseconds = 1\n[models.net]\nprofile = 'resnet50'\nrate = 10\nslo_factor = 5\ncopies = 40\n")
    few = good("of many models the worst", "simulate", many, *one, says="of 40 models the 3 worst").stdout
    whole = good("all of them", "simulate", many, *one, "--all-models", says="net 40").stdout
    expect("few and all", few.count("net ") == 3 and whole.count("net ") == 40, few)


def sharing(folder):
    path = os.path.join(folder, "sharing.json")
    text = good("bench sharing", "bench", "sharing", "--mixes", "a", "--slo", 5, "--seconds", "0.2", "--json", path, says="to fixed").stdout
    with open(path) as file:
        report = json.load(file)
    case = report["most_load"][0]
    rates = case["rate_per_s"]
    expect("every policy carries something", len(report["most_load"]) == 1 and len(rates) > 5 and min(rates.values()) > 0, rates)
    best = max(rate for policy, rate in rates.items() if policy != "weft")
    expect("weft is compared with the best of the others", abs(case["to_any"] - rates["weft"] / best) < 1e-9, case)
    expect("every policy has a column", all(policy in text for policy in rates), text)
    expect("nothing moves in mix a", report["moving"] == [] and "moves" not in text, text)
    bad("no such mix", "bench", "sharing", "--mixes", "z", says="e-idle")
    bad("objectives that nobody keeps", "bench", "sharing", "--slo", "0.5", says="--slo")
    bad("runs of no time", "bench", "sharing", "--seconds", 0, says="--seconds")
    bad("profiles without the models of a mix", "bench", "sharing", "--mixes", "b", "--profiles", os.path.join(ROOT, "profiles", "h200-pytorch.toml"), says="there is no profile 'alexnet'")


def repositories(folder):
    root = os.path.join(folder, "models")

    def written(name, text=""):
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    made = json.loads(good("a key", "key", "--json").stdout)
    text = good("a key for people", "key", says="key_hashes = [").stdout
    expect("every key is another", made["key"] not in text and made["hash"] not in text, text)
    written("net/1/model.onnx", "1")
    written("net/2/model.onnx", "22")
    written("net/config.pbtxt", "name: 'net'\nmax_batch_size: 8\ninstance_group [{ count: 2 }]\n")
    written("plain.onnx")
    written("weft.toml", f"[models.net]\nslo_ms = 20\ntenant = 'red'\n[tenants.red]\nkey_hashes = ['{made['hash']}']\n")
    text = good("a repository", "check", root, says="2 models, no problems").stdout
    expect("what is agreed is shown", "20.00 ms at 0.99" in text and "red" in text and "best effort" in text, text)
    expect("what is not used is said", "net/config.pbtxt:3: ignored: instance_group" in text, text)
    report = json.loads(good("a repository as JSON", "check", root, "--json").stdout)
    net = report["models"][0]
    expect("versions and agreements", net["serves"] == [2] and len(net["versions"]) == 2 and net["agreed"]["slo_ms"] == 20 and net["agreed"]["max_batch"] == 8, net)

    written("torn/1/model.onnx")
    written("torn/config.pbtxt", "max_batch_size: many\n")
    written("weft.toml", "[models.ghost]\nslo_ms = 1\n[models.net]\nslo_ms = 20\n")
    torn = run("check", root)
    for problem in ("weft.toml:1: there is no model 'ghost'", "torn/config.pbtxt:1: 'max_batch_size' must be", "2 models, 2 problems"):
        expect(f"problems of a repository: {problem}", torn.returncode == 2 and problem in torn.stdout, torn.stdout)
    report = json.loads(run("check", root, "--json").stdout)
    expect("problems are counted", report["problems"] == 2 and not report["models"][2]["usable"], report)
    other = os.path.join(folder, "other.toml")
    with open(other, "w") as file:
        file.write("[server]\nlisten = '0.0.0.0:80'\n[models.net]\ntenant = 'blue'\n")
    wrong = run("check", root, "--config", other)
    for problem in ("there are no tenants", "there is no [tenants.blue]"):
        expect(f"problems of settings: {problem}", wrong.returncode == 2 and problem in wrong.stdout, wrong.stdout)
    bad("no repository", "check", os.path.join(folder, "none"), says="none")
    bad("other machines without tenants", "serve", "zoo:tiny_resnet", "--host", "0.0.0.0", says="there are no tenants")
    bad("no rows in a batch", "serve", "zoo:tiny_resnet", "--max-batch", 0, says="--max-batch")
    bad("no connections", "serve", "zoo:tiny_resnet", "--max-connections", 0, says="--max-connections")
    bad("gRPC for other machines", "serve", "zoo:tiny_resnet", "--host", "::", "--grpc-port", "0", says="grpc_listen")


def demonstration():
    good("the demo serves three models under load", "demo", "--seconds", "1", "--model-seconds", "0.05", says="resnet18")


def loads(folder):
    """Load for a server of our own, over both protocols."""
    command = [WEFT, "serve", "zoo:tiny_resnet", "zoo:tiny_mobilenet_v2", "--port", "0", "--admin-port", "0"]
    sent = 0
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            address = next(line for line in server.stderr if "http://" in line).split("http://")[1].split(",")[0]
            admin = next(line for line in server.stderr if "traces on http://" in line).split("http://")[1].strip()
            models = ["--model", "tiny_resnet", "--rate", 50, "--slo", "2s", "--model", "tiny_mobilenet_v2", "--concurrency", 2]
            drawing = os.path.join(folder, "load.svg")
            for protocol in ("http", "grpc"):
                result = good(f"load over {protocol}", "load", address, "--protocol", protocol, *models, "--seconds", 1.5, "--check=1e-4", "--json", "-", "--svg", drawing)
                report = json.loads(result.stdout)
                of_rate, of_clients = report["models"]
                expect(f"answers over {protocol}", 40 < of_rate["answered"] == of_rate["due"] and of_clients["answered"] > 10, result.stdout)
                sent += of_rate["sent"]
                expect(f"every request over {protocol} ends once", report["total"]["sent"] == report["total"]["answered"], report["total"])
            shares_memory(address)
            top = good("top shows models", "top", admin, "--once", says="tiny_resnet").stdout
            expect("top shows partitions", "PARTITIONS" in top and "ready" in top, top)
            with urllib.request.urlopen(f"http://{admin}/metrics") as page:
                metrics = page.read().decode()
            counted = 'weft_requests_total{model="tiny_resnet",outcome="ok"} '
            counted = next(line for line in metrics.splitlines() if line.startswith(counted)).split()[-1]
            expect("the server counts what the client sent", int(counted) >= sent, (counted, sent))
            bad("load for an unknown model", "load", address, "--model", "unheard", "--rate", 1, says="404 Not Found")
            server.stderr.close()
        finally:
            server.terminate()
        expect("a server ends well where nobody reads its log any more", server.wait(timeout=60) == 0, server.returncode)


def broken_changes(folder):
    """A model that is replaced by what is none is served on, and a model that never was one is not: the log tells them apart."""
    models = os.path.join(folder, "broken-changes")
    os.makedirs(models)
    good("a model that will be broken", "zoo", "tiny_resnet", "-o", os.path.join(models, "net.onnx"))
    command = [WEFT, "serve", models, "--device", "cpu", "--port", "0", "--admin-port", "0", "--state", folder]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        ended = threading.Timer(60, server.kill)
        ended.start()
        try:
            next(line for line in server.stderr if "traces on http://" in line)
            for name, says in (("net", "served as it was"), ("other", "not served")):
                with open(os.path.join(models, "copied.tmp"), "w") as file:
                    file.write("no model")
                os.rename(file.name, os.path.join(models, name + ".onnx"))
                line = next((line for line in server.stderr if "is not an ONNX file" in line), "")
                expect(f"what becomes of {name}.onnx is said", says in line and f'model="{name}"' in line, line)
        finally:
            ended.cancel()
            server.terminate()


def rounds(folder):
    """Two models that are asked for together are recognised and regulated, and answer as before."""
    config = os.path.join(folder, "rounds.toml")
    with open(config, "w") as file:
        file.write("[defaults]\nslo_ms = 800\nmax_batch = 1\n")
    models, log = os.path.join(folder, "rounds"), os.path.join(folder, "rounds.log")
    os.makedirs(models)
    # A mix of models that take less time than passes between two requests of a round would gain nothing.
    names = ("squeezenet1_1", "mobilenet_v2")
    for name in names:
        good("a model of a round", "zoo", name, "-o", os.path.join(models, name + ".onnx"))
    command = [WEFT, "serve", models, "--config", config, "--device", "cpu", "--port", "0", "--admin-port", "0", "--state", folder, "--tuning-database", os.path.join(folder, "rounds.db")]
    with open(log, "w") as written, subprocess.Popen(command, stderr=written, stdout=written, text=True) as server:
        try:
            def said(text, seconds):
                """The first line of the log with a text in it, once it is there."""
                for _ in range(seconds * 10):
                    with open(log) as lines:
                        line = next((line for line in lines if text in line), None)
                    if line is not None:
                        return line
                    time.sleep(0.1)
                return ""

            admin = said("traces on http://", 60).split("http://")[1].strip()
            address = said("serving 2 models on http://", 60).split("http://")[1].split(",")[0]
            asked = [part for name in names for part in ("--model", name, "--rate", 20, "--cv", 0, "--slo", "800ms")]
            line = ""
            for _ in range(6):
                report = json.loads(good("rounds", "load", address, "--protocol", "grpc", *asked, "--seconds", 8, "--warm-up", 0, "--check=1e-4", "--json", "-").stdout)
                line = line or said(" a mix ", 1)
                if line:
                    break
            expect("rounds are answered", report["total"]["answered"] >= 0.9 * report["total"]["due"], report["total"])
            expect("a mix is regulated", "a mix was regulated" in line and all(f"{name} x 1" in line for name in names), line)
            with urllib.request.urlopen(f"http://{admin}/metrics") as page:
                metrics = page.read().decode()
            expect("mixes are counted", all(f"\n{name} " in metrics for name in ("weft_mixes", "weft_mixed_launches_total")), metrics[-500:])
        finally:
            server.terminate()


def regions():
    """What the load generator has in shared memory."""
    return [name for name in os.listdir("/dev/shm") if name.startswith("weft-load-")]


def shares_memory(address):
    """Load through shared memory, which is gone after runs that end well, badly and by Ctrl-C."""
    models = ["--model", "tiny_resnet", "--rate", 50, "--model", "tiny_mobilenet_v2", "--concurrency", 2]
    for protocol in ("http", "grpc"):
        common = ["load", address, "--protocol", protocol, "--shared-memory", *models]

        def registered():
            with urllib.request.urlopen(f"http://{address}/v2/systemsharedmemory/status") as page:
                return json.load(page)

        result = good(f"shared memory over {protocol}", *common, "--seconds", 1.5, "--check=1e-4", "--json", "-")
        report = json.loads(result.stdout)
        of_rate, of_clients = report["models"]
        expect(f"answers through shared memory over {protocol}", 40 < of_rate["answered"] == of_rate["due"] and of_clients["answered"] > 10, result.stdout)
        expect(f"every request through shared memory over {protocol} ends once", report["shared_memory"] and report["total"]["sent"] == report["total"]["answered"], report["total"])
        expect(f"no memory is left over {protocol}", not regions() and not registered(), (regions(), registered()))
        bad(f"shared memory for an unknown model over {protocol}", *common, "--model", "unheard", "--rate", 1, says="unheard")
        expect(f"no memory is left after bad input over {protocol}", not regions() and not registered(), (regions(), registered()))
        with subprocess.Popen([WEFT, *map(str, common), "--seconds", "60", "--json", "-"], stdout=subprocess.PIPE, text=True) as load:
            deadline = time.monotonic() + 30
            while not registered() and time.monotonic() < deadline:
                time.sleep(0.05)
            load.send_signal(signal.SIGINT)
            text = load.communicate(timeout=30)[0]
        is_report = load.returncode == 0 and json.loads(text)["is_interrupted"] or load.returncode == 1 and not text
        expect(f"Ctrl-C ends a run over {protocol}", is_report, (load.returncode, text))
        expect(f"no memory is left after Ctrl-C over {protocol}", not regions() and not registered(), (regions(), registered()))


class Elsewhere(BaseHTTPRequestHandler):
    """A server that offers what it is told to, and has none of this machine's memory."""
    extensions = []

    def do_GET(self):
        tensor = {"name": "x", "datatype": "FP32", "shape": [1, 2]}
        self.answer(200, {"name": "elsewhere", "extensions": self.extensions, "inputs": [tensor], "outputs": [tensor]})

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/infer"):
            self.answer(200, {"model_name": "a", "outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]})
        else:
            self.answer(400, {"error": "Unable to open shared memory region"})

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

    protocol_version = "HTTP/1.1"


def bad_shared_memory():
    for extensions, says in (([], "does not offer the extension 'system_shared_memory'"), (["system_shared_memory"], "is it on this machine?")):
        handler = type("Handler", (Elsewhere,), {"extensions": extensions})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        bad(f"shared memory where {says}", "load", f"127.0.0.1:{server.server_port}", "--model", "a", "--rate", 1, "--shared-memory", says=says)
        server.shutdown()
    expect("no memory is left that nobody took", not regions(), regions())


def bad_loads(folder):
    bad("load of nothing", "load", "localhost", says="nothing is asked for")
    bad("load for no address", "load", "https://localhost", "--model", "a", "--rate", 1, says="not encrypted")
    bad("load without a rate", "load", "localhost", "--model", "a", "--slo", "50ms", says="--rate, --concurrency or --trace")
    bad("a rate of no model", "load", "localhost", "--rate", 1, "--model", "a", says="after the --model")
    bad("an objective without a unit", "load", "localhost", "--model", "a", "--rate", 1, "--slo", 50, says="unit")
    bad("no workload", "load", "localhost", "--workload", os.path.join(folder, "none.toml"), says="none.toml")
    bad("all problems of a workload", "load", "localhost", "--workload", FOUR_MODELS, says="'slo_factor' is for simulations only")
    bad("a capacity for nothing", "load", "localhost", "--model", "a", "--rate", 1, "--find-capacity", says="--slo")
    bad("top of nothing", "top", "127.0.0.1:1", "--once", says="no server answers at 127.0.0.1:1")
    nobody = run("load", "127.0.0.1:1", "--model", "a", "--rate", 1)
    expect("nobody listens", nobody.returncode == 1 and "cannot connect to 127.0.0.1:1" in nobody.stderr, nobody.stderr)


def bad_workloads(folder):
    path = os.path.join(folder, "workload.toml")
    profiles = os.path.join(ROOT, "profiles", "h200.toml")

    def written(text):
        with open(path, "w") as file:
            file.write(text)
        return path

    holey = os.path.join(folder, "holey.toml")
    with open(holey, "w") as file:
        file.write(
            "[device]\nname = 'd'\nunits = 4\nunit = 'core'\nbandwidth_gb_per_s = 10\nmemory_mb = 100\n"
            "[models.a]\nbatches = [1]\nunits = [1, 8]\nlatency_us = [[9, 5]]\ndram_mb = 1\nmemory_mb = 1\n"
            "[models.b]\nbatches = [1, 2]\nunits = [1, 4]\nlatency_us = [[9, 5], [12]]\ndram_mb = 1\nmemory_mb = 1\n"
        )
    several = "profiles = 'holey.toml'\n[models.a]\nrate = 0\nslo_ms = 1\nslo_factor = 3\n[models.b]\nrate = 1\nlow_rate = 2\n"
    impossible = f"profiles = '{profiles}'\n[models.resnet50]\nrate = 1\nslo_ms = 0.1\n[models.vgg16]\nrate = 1\nslo_factor = 0.9\n[models.x]\nrate = 1\n"
    for command in ("plan", "simulate"):
        bad("no workload", command, os.path.join(folder, "none.toml"), says="none.toml")
        bad("no profiles", command, written("profiles = 'none.toml'\n[models.a]\nrate = 1\n"), says="none.toml")
        bad("all problems with their lines", command, written("profiles = 'x'\nseconds = 0\n[models.a]\nrate = -1\n"), says="line 4:")
        for problem in ("workload.toml, line 3: 'rate' must be", "line 5: 'slo_ms' and 'slo_factor' contradict", "line 8: 'low_rate' is above 'rate'",
                        "holey.toml, line 9: 8 in 'units', but the device has 4", "line 16: 'latency_us' has 1 numbers, one for each of the 2"):
            bad(f"all problems of a workload and its profiles: {problem}", command, written(several), says=problem)
        for problem in ("line 4: the objective of 'resnet50', 100.0 us, cannot be kept: one item takes", "line 7: the objective of 'vgg16'", "line 8: there is no profile 'x'"):
            bad(f"impossible objectives: {problem}", command, written(impossible), says=problem)
        bad("a model without a profile", command, written(f"profiles = '{profiles}'\n[models.unheard]\nrate = 1\n"), says="line 2: there is no profile 'unheard'")
        bad("no load at all", command, FOUR_MODELS, "--scale", 0, says="--scale")
        bad("objectives of nothing", command, FOUR_MODELS, "--slo-scale", "nan", says="--slo-scale")
    bad("an unknown policy", "simulate", FOUR_MODELS, "--policies", "best", says="best")
    bad("a drawing of a search", "simulate", FOUR_MODELS, "--max-rate", "--svg", "x.svg", says="--svg")
    bad("a target of nothing", "simulate", FOUR_MODELS, "--max-rate", "--target", 0, says="--target")
    bad("a trace into no folder", "simulate", FOUR_MODELS, "--trace", os.path.join(folder, "no", "t.json"), says="t.")
    bad("no time at all", "plan", FOUR_MODELS, "--at=-1", says="--at")


def plans(folder):
    path, drawing = os.path.join(folder, "plan.json"), os.path.join(folder, "plan.svg")
    text = good("plan", "plan", FOUR_MODELS, "--json", path, "--svg", drawing, says="every SLO holds").stdout
    expect("no colours where nobody sees them", "\x1b" not in text)
    expect("a hundred columns where nobody says how many", max(map(len, text.splitlines())) <= 100, text)
    with open(path) as file:
        plan = json.load(file)
    units = sum(partition["units"] for partition in plan["partitions"]) + plan["best_effort_units"]
    expect("all units are planned", plan["fits"] and units == plan["units"] == 16, plan)
    shares = [share for partition in plan["partitions"] for share in partition["shares"]]
    given = {share["model"]: 0 for share in shares}
    for share in shares:
        given[share["model"]] += share["rate_per_s"]
        expect("predictions keep objectives", share["predicted_latency_us"] <= share["slo_us"] * 1.000001, share)
        expect("every model is named", share["model"] in text, text)
    expect("every model has its rate", len(given) == 4 and all(abs(rate - 400) < 0.1 for rate in given.values()), given)
    layout = plan["layout"]
    expect("the layout has all units", sum(layout["sizes"]) == 16 and len(layout["seats"]) == len(layout["sizes"]), layout)
    expect("the layout carries the load", layout["room"] >= 1 and layout["lost_now"] < 0.01, layout)
    served = {seat["model"] for seats in layout["seats"] for seat in seats}
    expect("the layout serves every model", served == set(given), layout)
    sentence = " ".join(text.split("\n\n")[-1].split())
    expect("the layout in words", sentence.startswith("Weft serves this load with ") and "times the load" in sentence, text)
    text = good("layout", "plan", FOUR_MODELS, "--layout", says="batch on").stdout
    rows = text.split("\n\n")[-1].splitlines()[2:]
    expect("a row for each model", {row.split()[0] for row in rows} == set(given), text)
    expect("every band is drawn", open(drawing).read().count("<title>") == len(shares))
    result = run("plan", FOUR_MODELS, "--scale", 20)
    expect("what does not fit is exit code 1", result.returncode == 1 and "\ndoes not fit: " in result.stdout, result.stdout)
    expect("what the layout loses is said", "% of the requests" in " ".join(result.stdout.split()), result.stdout)
    expect("with the shortfall in words", "of 8000 requests/s: " in result.stdout and "would make it fit" in result.stdout, result.stdout)


def exported_choice(operator, size, candidate, chip="Chip One", driver="1", recorded=1_700_000_000_000, time_ns=5000):
    task = {"chip": chip, "driver": driver, "kernels": "k", "operator": operator, "precision": "f16", "partition_size": size}
    return {"choice": {"task": task, "candidate": candidate, "time_ns": time_ns, "untuned_candidate": "plain", "untuned_time_ns": 10000, "trials": 7, "recorded_unix_ms": recorded}}


def exported(path, *records):
    with open(path, "w") as file:
        for line in ({"weft_tuning_export": 1, "records": len(records)}, *records):
            file.write(json.dumps(line) + "\n")
    return path


def tuning_databases(folder):
    first, second, other = (os.path.join(folder, name) for name in ("first.db", "second.db", "other.jsonl"))
    lines = exported(
        os.path.join(folder, "tuning.jsonl"),
        exported_choice("conv", 8, "a"),
        exported_choice("conv", 32, "b", time_ns=2500),
        exported_choice("gemm", 8, "c", chip="Chip Two"),
        exported_choice("gemm", 8, "c", chip="Chip Two", driver="2", recorded=1_800_000_000_000),
    )
    good("import makes a database", "tuning", "import", lines, "--database", first, says="4 records, 4 taken in")
    good("import again", "tuning", "import", lines, "--database", first, says="4 records, 0 taken in")
    good("list", "tuning", "list", "--database", first, says="Chip Two")
    report = json.loads(good("list json", "tuning", "--database", first, "list", "--json").stdout)
    expect("platforms are counted", [platform["choices"] for platform in report["platforms"]] == [2, 1, 1], report)
    good("dump", "tuning", "dump", "--database", first, says="geometric mean of the gains: 2.83")
    report = json.loads(good("dump json", "tuning", "dump", "--chip", "chip one", "--json", "--database", first).stdout)
    expect("gains are told", [choice["gain"] for choice in report["choices"]] == [2, 4], report)
    good("export", "tuning", "export", other, "--database", first)
    expect("the standard output is the same", open(other).read() == good("export to nowhere", "tuning", "export", "--database", first).stdout)
    exported(lines, exported_choice("conv", 8, "newer", recorded=1_700_000_000_001), exported_choice("pool", 8, "d"))
    good("another database", "tuning", "import", lines, "--database", second, says="2 taken in")
    good("merge", "tuning", "merge", second, "--database", first, says="2 records, 2 taken in")
    good("merge again", "tuning", "merge", second, "--database", first, says="0 taken in")
    good("the newer choice stays", "tuning", "dump", "--database", first, says="newer")
    text = good("prune, not yet", "tuning", "prune", "--superseded", "--dry-run", "--database", first).stdout
    expect("what would go is said", "no trials, 1 choice and no schedules would be forgotten" in text, text)
    good("prune", "tuning", "prune", "--superseded", "--database", first, says="no trials, 1 choice and no schedules forgotten")
    good("prune chips", "tuning", "prune", "--keep-chip", "two", "--database", first, says="3 choices and no schedules forgotten")
    report = json.loads(good("what is left", "tuning", "list", "--json", "--database", first).stdout)
    expect("one platform is left", [platform["chip"] for platform in report["platforms"]] == ["Chip Two"], report)
    good("prune all that is old", "tuning", "prune", "--older-than", "0m", "--banned", "--database", second, says="2 choices and no schedules forgotten")
    good("nothing is left", "tuning", "list", "--database", second, says="nothing is in it yet")

    environment = {**os.environ, "WEFT_TUNING_DB": first}
    result = subprocess.run([WEFT, "tuning", "list"], capture_output=True, text=True, timeout=120, env=environment)
    expect("the environment names the database", first in result.stdout, result.stderr)


def bad_tuning_databases(folder):
    none, database, lines, broken = (os.path.join(folder, name) for name in ("none.db", "good.db", "good.jsonl", "broken"))
    exported(lines, *(exported_choice(f"conv {number}", 8, "candidate") for number in range(200)))
    good("a good database", "tuning", "import", lines, "--database", database)
    for command in (["list"], ["dump"], ["export"], ["prune", "--banned"]):
        bad(f"no database to {command[0]}", "tuning", *command, "--database", none, says="there is no tuning database at")
    expect("looking makes none", not os.path.exists(none))
    bad("no other to merge", "tuning", "merge", none, "--database", database, says="none.db")
    bad("no file to import", "tuning", "import", none, "--database", none, says="cannot read")
    expect("importing nothing makes none", not os.path.exists(none))
    bad("a folder that cannot be", "tuning", "import", lines, "--database", "/proc/weft/tuning.db", says="cannot be written")
    bad("a folder for a database", "tuning", "list", "--database", folder, says="not a file")
    bad("nothing to prune by", "tuning", "prune", "--database", database, says="--superseded")
    bad("an age of no unit", "tuning", "prune", "--older-than", "3y", "--database", database, says="3y")
    bad("no such chip to keep", "tuning", "prune", "--keep-chip", "three", "--database", database, says="'three'")
    bad("no such chip to dump", "tuning", "dump", "--chip", "three", "--database", database, says="'three'")
    bad("an export onto the database", "tuning", "export", database, "--database", database, says="the database itself")
    bad("an export into no folder", "tuning", "export", os.path.join(folder, "no", "x.jsonl"), "--database", database, says="x.jsonl")
    whole = open(lines).read()
    for name, text, says in (
        ("no export", "hello\n", "line 1: this is not an export"),
        ("a later form", whole.replace(":1,", ":9,", 1).replace(": 1,", ": 9,", 1), "version 9"),
        ("a cut export", whole[: len(whole) // 2], "line "),
        ("an export with something else in it", whole.replace('"trials"', '"songs"', 1), "line 2: unknown field `songs`"),
        ("a partition of nothing", whole.replace('"partition_size": 8', '"partition_size": 0', 1), "line 2: a partition of size 0"),
    ):
        with open(broken, "w") as file:
            file.write(text)
        bad(name, "tuning", "import", broken, "--database", database, says=says)
        bad(f"{name}: nothing was taken in", "tuning", "import", broken, "--database", database, says="nothing was imported")

    content = open(database, "rb").read()
    tables = 4096
    content = content[:tables] + content[tables:].replace(b"candidate", b"candidatE")
    for name, content, says in (
        ("a damaged database", content, "is damaged"),
        ("a text for a database", b"This is a letter. " * 100, "not a database at all"),
        ("a short text for a database", b"hello", "not a database at all"),
    ):
        with open(broken, "wb") as file:
            file.write(content)
        bad(name, "tuning", "list", "--database", broken, says=says)
        bad(f"{name} is set aside", "tuning", "export", "--database", broken, says="aside")
        bad(f"{name} is not merged", "tuning", "merge", broken, "--database", database, says="broken")
        expect(f"{name} is left alone", open(broken, "rb").read() == content)


def tuning(folder):
    database = os.path.join(folder, "tuned.db")
    quick = ("--effort", 1, "--trials", 8, "--database", database)
    good("tune", "tune", "zoo:tiny_resnet", *quick, says="times as fast")
    report = json.loads(good("tune again", "tune", "zoo:tiny_resnet", *quick, "--json").stdout)
    expect("nothing is tried twice", report[0]["trials"] == 0, report[0])
    expect("all is decided", all(operator["kernel"] for operator in report[0]["operators"]), report[0])
    listed = json.loads(good("what was tuned", "tuning", "list", "--json", "--database", database).stdout)
    expect("choices are kept", listed["platforms"][0]["choices"] == len(report[0]["operators"]), listed)
    good("a model with tuned kernels", "bench", "model", "zoo:tiny_resnet", "--seconds", 0.1, "--tuning-database", database, says="operators tuned")
    result = good("a model without", "bench", "model", "zoo:tiny_resnet", "--seconds", 0.1, "--untuned")
    expect("it says so", "tuned" not in result.stdout, result.stdout)
    report = json.loads(good("hardly any time", "tune", "zoo:tiny_vgg", *quick, "--budget", "1us", "--json").stdout)
    expect("what was begun is all that is tried", report[0]["trials"] <= 4 * os.cpu_count(), report[0])
    if os.cpu_count() > 1:
        report = json.loads(good("two workers", "tune", "zoo:tiny_mobilenet_v2", *quick, "--workers", 2, "--json").stdout)
        expect("both have tried", report[0]["benches"] == 2 and report[0]["trials"] > 0, report[0])
    good("at random", "tune", "zoo:tiny_vit", *quick, "--random", "--one-at-a-time", says="on 1 partitions")
    trust = json.loads(good("trust", "bench", "tuning-trust", "zoo:resnet18", "--candidates", 120, "--effort", 1, "--json").stdout)
    expect("order is a correlation", -1 <= trust["spearman"] <= 1 and trust["candidates"] > 20, trust)
    plot = os.path.join(folder, "grid.svg")
    grid = json.loads(good("grid", "bench", "tuning-grid", "zoo:tiny_resnet", "--cores", "1", "--effort", 1, "--trials", 6, "--rounds", 1, "--plot", plot, "--json").stdout)
    expect("one size is its own best", grid["worst_diagonal"] == 1.0 and "<svg" in open(plot).read(), grid)


def child_of(parent):
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                # The name, in brackets, may have spaces.
                if int(file.read().rpartition(")")[2].split()[1]) == parent:
                    return int(entry)
        except (FileNotFoundError, ProcessLookupError):
            continue
    raise RuntimeError(f"process {parent} has no child")


def ended_tuning(folder):
    """Processes that tune are interrupted, killed, and stuck in a candidate."""
    database = os.path.join(folder, "ended.db")
    command = [WEFT, "tune", "zoo:resnet18", "--database", database, "--effort", "20"]

    def started():
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        deadline = time.time() + 60
        while time.time() < deadline:
            listed = run("tuning", "list", "--json", "--database", database)
            platforms = json.loads(listed.stdout)["platforms"] if listed.returncode == 0 else []
            if platforms and platforms[0]["measured"] > 5:
                return process, platforms[0]["measured"]
            time.sleep(0.2)
        raise RuntimeError("no trial within a minute")

    process, before = started()
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    expect("an interruption keeps what was found", process.returncode == 0 and "times as fast" in output, errors)

    process, before = started()
    os.kill(child_of(process.pid), signal.SIGKILL)
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    expect("a worker that is killed is started again", process.returncode == 0 and "started again" in errors, errors)
    dump = run("tuning", "list", "--json", "--database", database)
    expect("the database is whole", dump.returncode == 0 and json.loads(dump.stdout)["platforms"][0]["measured"] >= before, dump.stderr)

    stuck = os.path.join(folder, "stuck.db")
    result = run("tune", "zoo:tiny_resnet", "--effort", 300, "--trials", 3, "--limit", "2ms", "--database", stuck)
    expect("a candidate that does not end is ended", "a candidate did not end" in result.stderr and result.returncode == 2, result.stderr)
    listed = json.loads(good("it is noted", "tuning", "list", "--json", "--database", stuck).stdout)
    expect("as one that hung", listed["platforms"][0]["hung"] > 0, listed)


def tuning_while_serving(folder):
    """A server tunes what it serves, under load, and another one that may not says so."""
    database = os.path.join(folder, "serving.db")
    models = os.path.join(folder, "served")
    os.mkdir(models)
    for name in ("tiny_resnet", "tiny_vgg"):
        good("a model to serve", "zoo", name, "-o", os.path.join(models, name + ".onnx"))
    with open(os.path.join(models, "weft.toml"), "w") as file:
        file.write("[models.tiny_resnet]\nslo_ms = 250\n")

    def serving(*options):
        command = [WEFT, "serve", models, "--device", "cpu", "--port", "0", "--admin-port", "0", "--state", folder, *options]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        address = next(line for line in server.stderr if "http://" in line).split("http://")[1].split(",")[0]
        return server, address, next(line for line in server.stderr if "traces on http://" in line).split("http://")[1].strip()

    server, address, admin = serving("--tuning-database", database)
    try:
        beside = ("tune", "--while-serving", f"http://{admin}", "--effort", 1)
        bad("tune what is not served", *beside, "unheard", says="no model 'unheard' is served")
        bad("the server has its device", *beside, "--device", "cpu", says="cannot be used with")
        long = subprocess.Popen([WEFT, *map(str, beside), "--trials", "4096"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.time() + 20
        while "measured" not in run("tuning", "list", "--json", "--database", database).stdout and time.time() < deadline:
            time.sleep(0.1)
        bad("two sessions at once", *beside, says="tuning is under way")
        long.send_signal(signal.SIGINT)
        output, errors = long.communicate(timeout=30)
        expect("an interruption ends the session", long.returncode == 0 and database in output, (output, errors))
        load = subprocess.Popen([WEFT, "load", address, "--model", "tiny_resnet", "--rate", "40", "--slo", "250ms", "--seconds", "3", "--check=1e-3", "--json", "-"], stdout=subprocess.PIPE, text=True)
        report = json.loads(good("tune while serving", *beside, "tiny_resnet", "--batches", 1, "--trials", 6, "--json").stdout)
        of_load = json.loads(load.communicate(timeout=30)[0])["models"][0]
        expect("the objective holds meanwhile", of_load["attainment"] >= 0.98 and of_load["answered"] == of_load["due"], of_load["latency_us"])
        expect("all is decided", report and all(operator["kernel"] for size in report for operator in size["operators"]), report)
        listed = json.loads(good("what was tuned beside", "tuning", "list", "--json", "--database", database).stdout)
        expect("choices of a server are kept", listed["platforms"][0]["choices"] >= len(report[0]["operators"]), listed)
    finally:
        server.terminate()
        server.wait()
    server, address, admin = serving("--untuned")
    try:
        bad("a server that does not tune", "tune", "--while-serving", admin, says="does not tune")
    finally:
        server.terminate()
        server.wait()
    bad("tune beside nothing", "tune", "--while-serving", "127.0.0.1:1", says="no server answers at 127.0.0.1:1")
    bad("neither models nor a server", "tune", says="required")


def bad_tuning(folder):
    broken = os.path.join(folder, "no-database.db")
    with open(broken, "wb") as file:
        file.write(os.urandom(4096))
    quick = ("--effort", 1, "--trials", 2)
    bad("tune into a broken database", "tune", "zoo:tiny_resnet", *quick, "--database", broken, says="not a database")
    bad("run with a broken database", "bench", "model", "zoo:tiny_resnet", "--tuning-database", broken, says="not a database")
    bad("run with no database", "bench", "model", "zoo:tiny_resnet", "--tuning-database", broken + "x", says="there is no tuning database")
    bad("tune where nothing can be written", "tune", "zoo:tiny_resnet", *quick, "--database", "/proc/weft/tuning.db", says="cannot be written")
    database = os.path.join(folder, "bad-tuning.db")
    quick = (*quick, "--database", database)
    bad("tune for more cores than there are", "tune", "zoo:tiny_resnet", *quick, "--cores", 4096, says="4096")
    bad("tune for no cores", "tune", "zoo:tiny_resnet", *quick, "--cores", 0, says="0")
    bad("tune for SMs of a CPU", "tune", "zoo:tiny_resnet", *quick, "--sms", 8, says="--cores")
    bad("more workers than partitions", "tune", "zoo:tiny_resnet", *quick, "--workers", os.cpu_count() + 1, says="processes cannot share")
    bad("far too many workers", "tune", "zoo:tiny_resnet", *quick, "--workers", 4096, says="--workers")
    bad("no workers", "tune", "zoo:tiny_resnet", *quick, "--workers", 0, says="--workers")
    bad("no trials", "tune", "zoo:tiny_resnet", "--trials", 0, says="--trials")
    bad("no effort", "tune", "zoo:tiny_resnet", "--effort", 0, says="--effort")
    bad("no model", "tune", os.path.join(folder, "none.onnx"), *quick, says="none.onnx")
    bad("no batch", "tune", "zoo:tiny_resnet", *quick, "--batches", 0, says="--batches")
    bad("a budget without a number", "tune", "zoo:tiny_resnet", *quick, "--budget", "soon", says="a number with its unit")
    lines = exported(os.path.join(folder, "elsewhere.jsonl"), exported_choice("conv", 8, "fast"))
    elsewhere = os.path.join(folder, "elsewhere.db")
    good("a database of another chip", "tuning", "import", lines, "--database", elsewhere)
    result = good("is not used", "bench", "model", "zoo:tiny_resnet", "--seconds", 0.1, "--tuning-database", elsewhere)
    expect("which is said", "other chips" in result.stderr and "tuned" not in result.stdout, result.stderr)


AFFINITY = "import os; print(sorted(os.sched_getaffinity(0)))"


def ends_with(name, code, *arguments, says=""):
    result = run("run", *arguments)
    expect(name, result.returncode == code and says in result.stderr, f"exit {result.returncode}: {result.stderr}")
    return result


def bounded_programs(folder):
    """`weft run`: a program and its children keep to their cores, and it ends as it would by itself."""
    cores = sorted(os.sched_getaffinity(0))
    on_cpu = ("--device", "cpu")
    half = (*on_cpu, "--share", "50%")
    last = cores[-max(1, int(len(cores) / 2 + 0.5)):]
    result = good("a program in half of the cores", "run", *half, "--", sys.executable, "-c", AFFINITY)
    expect("it has the last of them", json.loads(result.stdout) == last, result.stdout)
    expect("which is said", f"{len(last)} of {len(cores)} cores ({','.join(map(str, last))})" in result.stderr, result.stderr)
    expect("and how long it ran", "of processor time" in result.stderr, result.stderr)
    result = good("a child of a child", "run", *half, "-q", "--", "sh", "-c", f"sh -c '{sys.executable} -c \"{AFFINITY}\"'")
    expect("keeps to them too", json.loads(result.stdout) == last and not result.stderr, result.stdout + result.stderr)
    result = good("a named core", "run", "--cores", cores[0], "--", sys.executable, "-c", AFFINITY)
    expect("is the one it has", json.loads(result.stdout) == cores[:1], result.stdout)
    result = good("a whole share", "run", *on_cpu, "--share", "100%", "--", sys.executable, "-c", AFFINITY)
    expect("is all cores", json.loads(result.stdout) == cores, result.stdout)
    before = os.nice(0)
    result = good("low priority", "run", *half, "--priority", "low", "--", sys.executable, "-c", "import os; print(os.nice(0))")
    expect("is nice", int(result.stdout) == max(before, 10), result.stdout)
    result = good("a share of a share", "run", *half, "-q", "--", WEFT, "run", *half, "--", sys.executable, "-c", AFFINITY)
    expect("lies within it", set(json.loads(result.stdout)) <= set(last), result.stdout)
    piped = subprocess.run([WEFT, "run", *half, "-q", "--", "cat"], input="words", capture_output=True, text=True, timeout=60)
    expect("input and output are the program's", piped.stdout == "words", piped)

    report = os.path.join(folder, "run.json")
    ends_with("the program's exit code", 7, *half, "--json", report, "--", "sh", "-c", "exit 7")
    report = json.load(open(report))
    expect("is in the report", report["exit_code"] == 7 and report["bounds"]["cores"] == last and report["bounds"]["is_checked"], report)
    ends_with("a program that is killed", 128 + signal.SIGKILL, *half, "--", "sh", "-c", "kill -KILL $$")
    ends_with("a program that is not there", 127, *half, "--", "no-such-program", says="'no-such-program' is not found")
    plain = os.path.join(folder, "plain.txt")
    open(plain, "w").close()
    ends_with("a file that is no program", 126, *half, "--", plain, says="cannot be run")
    nowhere = os.path.join(folder, "nowhere", "run.json")
    result = ends_with("a report that cannot be written", 2, *half, "--json", nowhere, "--", "echo", "ran", says=nowhere)
    expect("is known before the program is started", "ran" not in result.stdout, result.stdout)
    unwritten = os.path.join(folder, "unwritten.json")
    ends_with("a report of nothing", 127, *half, "--json", unwritten, "--", "no-such-program", says="is not found")
    expect("leaves no file", not os.path.exists(unwritten), unwritten)
    pipe = os.path.join(folder, "report.pipe")
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True)
    ends_with("a report to a pipe", 0, *half, "--json", pipe, "--", "true")
    expect("is read from it", json.loads(reader.communicate(timeout=60)[0])["exit_code"] == 0, pipe)
    full = run("run", *half, "-q", "--json", "/dev/full", "--", "sh", "-c", "exit 7")
    expect("a report on a full disk takes no exit code", full.returncode == 7 and "/dev/full" in full.stderr, full)
    mute = subprocess.run([WEFT, "run", *half, "--", "sh", "-c", "exit 7"], stderr=open("/dev/full", "w"), timeout=60)
    expect("nor does what nobody can be told", mute.returncode == 7, mute.returncode)
    heedless = lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    program = subprocess.Popen([WEFT, "run", *half, "--", "sh", "-c", "exit 7"], stderr=subprocess.PIPE, text=True, preexec_fn=heedless)
    _, errors = program.communicate(timeout=60)
    expect("one whose starter takes no notice of children", program.returncode == 7, errors)
    told_to_end(half)

    for share in ("0%", "101%", "-5%", "30", "a lot", "nan%", ""):
        bad(f"a share of '{share}'", "run", f"--share={share}", "--", "true", says="--share")
    bad("no share", "run", "--", "true", says="<--share <PERCENT%>|--cores <CORES>>")
    bad("a share and cores", "run", "--share", "50%", "--cores", "0", "--", "true", says="--cores")
    bad("no program", "run", "--share", "50%", says="PROGRAM")
    bad("a core that is not there", "run", "--cores", "60000", "--", "true", says="60000")
    bad("a priority that is not there", "run", *half, "--priority", "high", "--", "true", says="low")
    bad("cores of a GPU", "run", "--device", "cuda", "--cores", "0", "--", "true", says="--cores is for CPUs")
    kinds = [device["kind"] for device in json.loads(run("devices", "--json").stdout)["devices"]]
    if "cuda" not in kinds:
        bad("a share of no GPU", "run", "--device", "cuda", "--share", "30%", "--", "true", says="--device cpu")
    good("help of run", "run", "--help", says="--priority")


def told_to_end(half):
    """What asks `weft run` to end reaches the program and what it has started, and the program says how it ends."""
    ready = "import signal, sys, time, subprocess\n"
    asks = ready + "signal.signal(signal.%s, lambda *_: sys.exit(9)); print('ready', flush=True); time.sleep(60)"
    # Programs that `nohup` starts, these tests perhaps among them, are heedless.
    heedful = lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)
    heedless = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        bounded = [WEFT, "run", *half, "--", sys.executable, "-c", asks % name]
        process = subprocess.Popen(bounded, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heedful)
        process.stdout.readline()
        process.send_signal(getattr(signal, name))
        _, errors = process.communicate(timeout=30)
        expect(f"{name} reaches the program", process.returncode == 9, f"{process.returncode} {errors}")
    bounded = [WEFT, "run", *half, "--", "sh", "-c", "echo ready; sleep 1; exit 5"]
    process = subprocess.Popen(bounded, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heedless)
    process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=30)
    expect("a hangup that is ignored is no matter", process.returncode == 5, process.returncode)
    # In a terminal: asked from elsewhere, and as it goes, which a shell tells its group.
    counts = ready + "told = []; signal.signal(signal.SIGHUP, lambda *_: told.append(1)); print('ready', flush=True)\n"
    counts += "while not told: time.sleep(0.05)\ntime.sleep(0.5); sys.exit(len(told))"
    shell = "import os, signal, subprocess, sys\nprogram = subprocess.Popen(sys.argv[1:])\n"
    shell += "tell = lambda *_: (signal.signal(signal.SIGHUP, signal.SIG_IGN), os.killpg(0, signal.SIGHUP))\n"
    shell += "signal.signal(signal.SIGHUP, tell); sys.exit(program.wait())"
    own = lambda: (heedful(), fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    for name, by in (("a hangup from elsewhere", ()), ("a terminal that goes", ()), ("a shell's terminal that goes", (sys.executable, "-c", shell))):
        keeper, end = pty.openpty()
        bounded = [*by, WEFT, "run", *half, "--", sys.executable, "-c", counts]
        process = subprocess.Popen(bounded, stdin=end, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=own)
        os.close(end)
        process.stdout.readline()
        if name == "a hangup from elsewhere":
            process.send_signal(signal.SIGHUP)
        else:
            os.close(keeper)
        expect(f"{name} is told the program once", process.wait(timeout=30) == 1, process.returncode)
    child = ready + "child = subprocess.Popen(['sleep', '60']); print(child.pid, flush=True); child.wait()"
    bounded = [WEFT, "run", *half, "--", sys.executable, "-c", child]
    process = subprocess.Popen(bounded, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    grandchild = int(process.stdout.readline())
    process.terminate()
    process.communicate(timeout=30)
    expect("a program that does not care is ended", process.returncode == 128 + signal.SIGTERM, process.returncode)
    expect("with what it has started", has_ended(grandchild))


def training_beside_inference():
    if len(os.sched_getaffinity(0)) < 2:
        return
    quick = ("bench", "training", "--model", "zoo:tiny_resnet", "--pace", "5ms", "--seconds", "0.6", "--json")
    report = json.loads(good("training beside inference", *quick).stdout)
    ways = {way["way"]: way for way in report["ways"]}
    both = ways["both, by weft run"]
    expect("all ways are there", len(ways) == 5 and both["requests"] > 0 and both["steps_per_s"] > 0, report)
    expect("alone is alone", ways["training alone"]["requests"] == 0 and ways["inference alone"]["steps_per_s"] is None, report)
    expect("what it is compared with", ways["inference alone"]["p99_over_alone"] == 1 and ways["training alone"]["rate_over_alone"] == 1, report)
    command = "while sleep 0.1; do echo a library prints; echo '{\"steps_per_s\": 2}'; done"
    report = json.loads(good("any training job", *quick, "--training", command).stdout)
    expect("its rate is taken", [way["steps_per_s"] for way in report["ways"]] == [None, 2, None, 2, 2], report)
    bad("a training job that ends", *quick, "--training", "exit 3", says="the training job ended")
    bad("a training job that says something else", *quick, "--training", "while echo 7; do sleep 1; done", says="steps_per_s")
    bad("a model to train beside that is not there", "bench", "training", "--model", "none.onnx", says="none.onnx")
    bad("a precision of cores to train beside", *quick, "--precision", "f16", says="--precision")
    command = "echo '{\"steps_per_s\": 2}'; echo $$ >&2; exec sleep 60"
    for number in (signal.SIGINT, signal.SIGTERM):
        with tempfile.TemporaryDirectory() as place:
            process = subprocess.Popen([WEFT, *quick, "--training", command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": place})
            job = int(process.stderr.readline())
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
            expect("a measurement that is interrupted says so", process.returncode == 128 + number and "interrupted" in errors, f"{process.returncode} {errors}")
            left = [name for name in os.listdir(place) if name.startswith(".")]
            expect("and leaves nothing", has_ended(job) and not left, left)
    bad("all for training", *quick, "--share", 100, says="--share")
    bad("no time to measure", *quick[:-3], "--seconds", 0, says="--seconds")
    bad("for ever to measure", *quick[:-3], "--seconds", "1e300", says="--seconds")
    bad("a second GPU", "bench", "training", "--device", "cuda:1", says="--device")


def has_ended(process):
    """True once a process is gone, or is only waited for by nobody."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if open(f"/proc/{process}/stat").read().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


with tempfile.TemporaryDirectory() as folder:
    model, x = good_runs(folder)
    bad_arguments(model, x, folder)
    kept_schedules(folder)
    bad_mixes(folder)
    bad_profiles(model, folder)
    hostile_models(model, folder)
    simulations(folder)
    plans(folder)
    sharing(folder)
    demonstration()
    loads(folder)
    broken_changes(folder)
    rounds(folder)
    bad_loads(folder)
    bad_shared_memory()
    bad_workloads(folder)
    repositories(folder)
    tuning_databases(folder)
    bad_tuning_databases(folder)
    tuning(folder)
    ended_tuning(folder)
    tuning_while_serving(folder)
    bad_tuning(folder)
    bounded_programs(folder)
    training_beside_inference()
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
