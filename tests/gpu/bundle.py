"""Gathers what a machine with a GPU and without cargo needs into one folder: `bundle.py --data ONNX_DATA --out FOLDER`."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT_BYTES = 60 << 20


def executables(*command):
    """Runs a cargo command, and says which executables it made, by their targets' names."""
    command = ["cargo", *command, "--message-format=json-render-diagnostics"]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    messages = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return {message["target"]["name"]: message["executable"] for message in messages if message.get("executable")}


def put(source, path):
    """A copy without what only debuggers read."""
    subprocess.run(["strip", "-o", path, source], check=True)


def pack(folder, out, name):
    with tarfile.open(os.path.join(out, f"{name}.tar.xz"), "w:xz", preset=1) as archive:
        archive.add(folder, arcname=name)


def size_bytes(folder):
    return {
        os.path.relpath(os.path.join(place, name), folder): os.path.getsize(os.path.join(place, name))
        for place, _, names in os.walk(folder)
        for name in names
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="the folder of the ONNX standard's test cases")
    parser.add_argument("--out", required=True, help="the folder to make, which is replaced")
    options = parser.parse_args()

    programs = executables("build", "--release", "--package", "weft-cli", "--package", "weft-conformance")
    # Tests that use a GPU are unit tests or begin with `gpu`; the others have nothing to find out there.
    tests = executables("test", "--release", "--package", "weft-cuda", "--lib", "--test", "gpu*", "--no-run")

    shutil.rmtree(options.out, ignore_errors=True)
    os.makedirs(options.out)
    for name in ("weft", "weft-conformance"):
        put(programs[name], os.path.join(options.out, name))
    with tempfile.TemporaryDirectory() as folder:
        for name, source in tests.items():
            put(source, os.path.join(folder, name))
        pack(folder, options.out, "tests")
    pack(options.data, options.out, "onnx-data")
    shutil.copy(os.path.join(HERE, "run.sh"), options.out)

    sizes = size_bytes(options.out)
    for name, size in sorted(sizes.items()):
        print(f"{size / (1 << 20):8.1f} MiB  {name}")
    total = sum(sizes.values())
    print(f"{total / (1 << 20):8.1f} MiB  {options.out}")
    if total > LIMIT_BYTES:
        sys.exit(f"{options.out} is larger than {LIMIT_BYTES >> 20} MiB")


main()
