"""Runs a command where there is no GPU, on one in software: `emulated.py --nvrtc FOLDER COMMAND...`.

FOLDER is where CUDA's compiler is, with `lib` and `include`. The GPU takes the place of the driver, and passes on to the compiler.
"""
import argparse
import glob
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def link(target, path):
    if os.path.lexists(path):
        os.remove(path)
    os.symlink(target, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvrtc", required=True, metavar="FOLDER")
    parser.add_argument("--out", default=os.path.join(ROOT, "out", "emulated"), help="where links and caches are put")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("a command is missing")

    compilers = glob.glob(os.path.join(os.path.abspath(options.nvrtc), "lib", "libnvrtc.so.*"))
    if len(compilers) != 1:
        sys.exit(f"one libnvrtc.so is needed in {options.nvrtc}/lib, and there are {len(compilers)}")
    # Kernels are interpreted, which takes long: the emulator is made for this machine, apart from what is made for all.
    target = os.path.join(ROOT, os.environ.get("CARGO_TARGET_DIR", "target"), "emulator")
    build = ["cargo", "build", "--quiet", "--release", "--package", "weft-emulator", "--target-dir", target]
    subprocess.run(build, cwd=ROOT, check=True, env=os.environ | {"RUSTFLAGS": "-C target-cpu=native"})
    emulator = os.path.join(target, "release", "libweft_emulator.so")

    out = os.path.abspath(options.out)
    cuda = os.path.join(out, "cuda")
    os.makedirs(cuda, exist_ok=True)
    for name in ("libcuda.so.1", os.path.basename(compilers[0])):
        link(emulator, os.path.join(cuda, name))
    link(os.path.join(os.path.abspath(options.nvrtc), "include"), os.path.join(cuda, "include"))

    environment = os.environ | {
        "WEFT_CUDA_PATH": cuda,
        "WEFT_EMULATOR_NVRTC": compilers[0],
        "WEFT_REQUIRE_GPU": "1",
        # What measures much is cut short.
        "WEFT_EMULATED": "1",
        # What is kept for this GPU is code and timings that no other one can use.
        "WEFT_CACHE_DIR": os.path.join(out, "cache"),
    }
    os.execvpe(options.command[0], options.command, environment)


main()
