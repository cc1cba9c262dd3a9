"""`weft run` on a machine with a GPU: shares hold, and the MPS service comes and goes with those who need it.

Usage: shares.py WEFT
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

WEFT = sys.argv[1]
folder = tempfile.mkdtemp(prefix="weft-shares-")
environment = {**os.environ, "WEFT_MPS_DIR": os.path.join(folder, "mps")}
environment.pop("CUDA_MPS_PIPE_DIRECTORY", None)
PID_FILE = os.path.join(environment["WEFT_MPS_DIR"], "pipe", "nvidia-cuda-mps-control.pid")
SHOW = 'echo "$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE $CUDA_MPS_CLIENT_PRIORITY $CUDA_MPS_PIPE_DIRECTORY"'
failed = 0


def expect(name, condition, detail=""):
    global failed
    failed += not condition
    print("ok    " if condition else "FAILED", name, detail if not condition else "", flush=True)


def bounded(*arguments, **options):
    command = [WEFT, "run", "--device", "cuda", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, env=environment, **options)


def started(*arguments):
    """A bounded program that says when it runs."""
    command = [WEFT, "run", "--device", "cuda", *arguments, "--", "sh", "-c", "echo runs; exec sleep 600"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment, text=True)
    expect("a program starts", process.stdout.readline() == "runs\n")
    return process


def service():
    """The process of the service, where there is one that lives."""
    try:
        number = int(open(PID_FILE).read())
        state = open(f"/proc/{number}/stat").read().rsplit(")", 1)[1].split()[0]
        return None if state == "Z" else number
    except (OSError, ValueError):
        return None


report = os.path.join(folder, "report.json")
for share in (10, 30, 70, 100):
    result = bounded("--share", f"{share}%", "--priority", "low", "--json", report, "--", "sh", "-c", SHOW)
    print(result.stderr, end="")
    expect(f"{share}% is started", result.returncode == 0, result.stderr)
    if result.returncode == 0:
        bounds = json.load(open(report))["bounds"]
        asked = bounds["sms_in_all"] * share / 100
        expect(f"{share}% holds", asked - 8 <= bounds["sms"] <= asked + 8, bounds)
        expect("the program is told", result.stdout.split()[:2] == [str(share), "1"], result.stdout)
expect("the service has ended with the last", service() is None)

first = started("--share", "30%")
number = service()
expect("the service is there", number is not None)
second = started("--share", "70%")
expect("two share it", service() == number)
first.terminate()
expect("a program that is ended says so", first.wait(timeout=60) == 128 + signal.SIGTERM)
expect("the other keeps the service", service() == number)
second.kill()
second.wait()
expect("the program of one that was killed keeps it", service() == number)
result = bounded("--share", "30%", "--", "true")
expect("and others use it", result.returncode == 0 and service() == number, result.stderr)
orphans = subprocess.run(["pgrep", "-f", "^sleep 600$"], capture_output=True, text=True).stdout.split()
for orphan in orphans:
    # Only what this test has started lives in its folder.
    try:
        if folder in open(f"/proc/{orphan}/environ").read():
            os.kill(int(orphan), signal.SIGKILL)
    except OSError:
        pass
time.sleep(1)
expect("the next one ends it", bounded("--share", "30%", "--", "true").returncode == 0 and service() is None)

third = started("--share", "30%")
dead = service()
if dead is not None:
    os.kill(dead, signal.SIGKILL)
time.sleep(1)
result = bounded("--share", "30%", "--", "true")
expect("a service that died is started anew", result.returncode == 0, result.stderr)
third.terminate()
third.wait(timeout=60)
expect("and ends", service() is None)
print(f"{failed} failed")
sys.exit(1 if failed else 0)
