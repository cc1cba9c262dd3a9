"""Zoo models on Weft and on onnxruntime: outputs must agree to 1e-4 of the largest element, on one core and on two.

Usage: zoo_agreement.py WEFT [--full]      without --full: the tiny models and three small real ones
"""
import os
import subprocess
import sys
import tempfile

import numpy
import onnxruntime

TOLERANCE = 1e-4
SMALL = ["squeezenet1_1", "mobilenet_v2", "mobilenet_v3_large"]
SEQUENCE = 24


def weft(*arguments):
    result = subprocess.run([WEFT, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"weft {' '.join(map(str, arguments))}: {result.stderr}")
    return result.stdout


def zoo_names():
    lines = weft("zoo").splitlines()[2:]
    return [line.split()[0] for line in lines]


def size(dimension, batch):
    if isinstance(dimension, int):
        return dimension
    return batch if dimension == "batch" else SEQUENCE


def make_inputs(session, batch, random):
    inputs = {}
    for argument in session.get_inputs():
        shape = [size(dimension, batch) for dimension in argument.shape]
        if argument.type == "tensor(int64)":
            largest = 2 if "mask" in argument.name or "type" in argument.name else 50
            inputs[argument.name] = random.integers(0, largest, shape, dtype=numpy.int64)
        else:
            inputs[argument.name] = random.standard_normal(shape, dtype=numpy.float32)
    return inputs


def difference(ours, theirs):
    if ours.shape != theirs.shape:
        return float("inf")
    largest = numpy.abs(theirs).max()
    return float(numpy.abs(ours.astype(numpy.float64) - theirs).max() / (largest if largest > 0 else 1.0))


def check(name, folder, batch, cores):
    path = os.path.join(folder, f"{name}.onnx")
    if not os.path.exists(path):
        weft("zoo", name, "-o", path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    inputs = make_inputs(session, batch, numpy.random.default_rng(7))
    arguments = ["infer", path, "--cores", ",".join(map(str, range(cores)))]
    for index, (input_name, array) in enumerate(inputs.items()):
        file = os.path.join(folder, f"in{index}.npy")
        numpy.save(file, array)
        arguments += ["--input", f"{input_name}={file}"]
    names = [output.name for output in session.get_outputs()]
    files = [os.path.join(folder, f"out{index}.npy") for index in range(len(names))]
    for output_name, file in zip(names, files):
        arguments += ["--output", f"{output_name}={file}"]
    weft(*arguments)
    expected = session.run(None, inputs)
    return [numpy.load(file) for file in files], expected


def main():
    names = zoo_names()
    chosen = names if FULL else [name for name in names if name.startswith("tiny_")] + SMALL
    cores = min(2, os.cpu_count())
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            one, expected = check(name, folder, 2, 1)
            many, _ = check(name, folder, 2, cores)
            worst = max(difference(ours, theirs) for ours, theirs in zip(one, expected))
            spread = max(difference(ours, theirs) for ours, theirs in zip(many, one))
            is_good = worst <= TOLERANCE and spread <= 1e-5
            failed += not is_good
            print(f"{'ok    ' if is_good else 'FAILED'} {name:20} from onnxruntime {worst:.1e}, between 1 and {cores} cores {spread:.1e}", flush=True)
            os.remove(os.path.join(folder, f"{name}.onnx"))
    print(f"{len(chosen) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


WEFT = sys.argv[1]
FULL = "--full" in sys.argv[2:]
main()
