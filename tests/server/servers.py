"""Inference servers as processes on free ports of the loopback: Weft, Triton and MLServer, started alike and measured alike."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from install import HERE, python, site_packages

READY_S = 120
STOP_S = 20
PEERS_CODE = os.path.join(HERE, "peers")


def free_port():
    """A port that nobody listens on now. Whoever wants it should bind it soon."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def process_tree(process_id):
    """A process and all its children."""
    children = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            children.setdefault(int(stat_fields(entry)[1]), []).append(int(entry))
        except (FileNotFoundError, ProcessLookupError):
            continue
    tree = [process_id]
    for process in tree:
        tree.extend(children.get(process, []))
    return tree


def stat_fields(process_id):
    """The fields of /proc/PID/stat after the name, which may hold spaces and parentheses."""
    with open(f"/proc/{process_id}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()


class Server:
    """A running server. `http` and `grpc` are `host:port`, as the clients of tritonclient take them."""

    def __init__(self, name, command, http_port, grpc_port, log, models=(), environment=None, folder=None, api_key=None):
        self.name, self.log, self.models = name, log, models
        self.headers = {"X-API-Key": api_key} if api_key else {}
        self.http, self.grpc = f"127.0.0.1:{http_port}", f"127.0.0.1:{grpc_port}"
        self.command, self.environment, self.folder = command, {**os.environ, **(environment or {})}, folder
        self.process = None
        self.start()

    def start(self):
        """Starts the process and waits until it says that it is ready; raises with the end of its log if it does not."""
        started = time.monotonic()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, env=self.environment, cwd=self.folder, start_new_session=True)
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() - started > READY_S:
                self.kill()
                with open(self.log, errors="replace") as log:
                    raise RuntimeError(f"{self.name} did not start: {log.read()[-4000:]}")
            time.sleep(0.01)
        self.ready_s = time.monotonic() - started

    def is_ready(self):
        """Whether the server and every model of the repository are ready: MLServer calls itself so before it has read any."""
        try:
            for path in ["/v2/health/ready", *(f"/v2/models/{model}/ready" for model in self.models)]:
                request = urllib.request.Request(f"http://{self.http}{path}", headers=self.headers)
                with urllib.request.urlopen(request, timeout=2) as answer:
                    if answer.status != 200:
                        return False
            return True
        except (OSError, urllib.error.URLError):
            return False

    def resident_bytes(self):
        """Resident memory of the process and its children."""
        return sum(int(stat_fields(process)[21]) for process in process_tree(self.process.pid)) * os.sysconf("SC_PAGE_SIZE")

    def processor_s(self):
        """Processor time that the process and its children have used."""
        ticks = sum(int(field) for process in process_tree(self.process.pid) for field in stat_fields(process)[11:13])
        return ticks / os.sysconf("SC_CLK_TCK")

    def is_running(self):
        return self.process.poll() is None

    def kill(self):
        """Ends the process and its children at once, as a crash of the machine would."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def stop(self):
        """Asks the server to end, and gives back its exit code."""
        if self.is_running():
            self.process.terminate()
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                pass
        self.kill()
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def models_in(repository):
    """The models of a repository in which each has a folder."""
    return sorted(entry.name for entry in os.scandir(repository) if entry.is_dir())


def weft(binary, repository, folder, *options, name="weft", api_key=None):
    """`weft serve` over a repository. One port serves HTTP and gRPC; what it keeps of its own lies in `folder`.

    Where the repository's settings name tenants, `api_key` is what asks whether the models are ready.
    """
    port, admin = free_port(), free_port()
    state = os.path.join(folder, "state")
    command = [binary, "serve", repository, "--host", "127.0.0.1", "--port", str(port), "--admin-port", str(admin), "--state", state, *map(str, options)]
    server = Server(name, command, port, port, os.path.join(folder, f"{name}.log"), models_in(repository), api_key=api_key)
    server.admin = f"127.0.0.1:{admin}"
    return server


def triton(repository, folder, *options, name="triton"):
    """The Triton server of the wheel, over a repository whose models name the back end `python` or `identity`."""
    packages = site_packages("triton")
    home = os.path.join(packages, "pytriton", "tritonserver")
    http, grpc = free_port(), free_port()
    command = [os.path.join(home, "bin", "tritonserver"), f"--model-repository={repository}", f"--backend-directory={home}/backends"]
    command += ["--http-address=127.0.0.1", f"--http-port={http}", "--grpc-address=127.0.0.1", f"--grpc-port={grpc}", "--allow-metrics=false", *options]
    # The Python back end looks for packages in the working folder first, and ignores PYTHONPATH.
    libraries = {"LD_LIBRARY_PATH": os.path.join(sys.base_prefix, "lib")}
    return Server(name, command, http, grpc, os.path.join(folder, f"{name}.log"), models_in(repository), libraries, packages)


def mlserver(repository, folder, *, name="mlserver", **settings):
    """MLServer over a folder with one folder for each model."""
    http, grpc = free_port(), free_port()
    settings = {"host": "127.0.0.1", "http_port": http, "grpc_port": grpc, "metrics_port": free_port(), "debug": False, **settings}
    with open(os.path.join(repository, "settings.json"), "w") as file:
        json.dump(settings, file)
    shutil.copy(os.path.join(PEERS_CODE, "mlserver_onnx.py"), repository)
    command = [os.path.join(os.path.dirname(python("mlserver")), "mlserver"), "start", repository]
    log = os.path.join(folder, f"{name}.log")
    return Server(name, command, http, grpc, log, models_in(repository), {"PYTHONPATH": repository}, repository)
