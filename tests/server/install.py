"""Installs the clients and the peers that tests/server uses, from the registries of Python and of Debian, into tests/server/.peers.

    python3 tests/server/install.py [triton] [mlserver] [tools]

`triton` holds tritonclient, perf_analyzer and the Triton server, `mlserver` MLServer, both with onnxruntime; `tools` are wrk and
h2load. Without arguments all three. What is installed already and still asked for by the requirements is left alone.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import venv

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.path.join(HERE, ".peers")
LIBRARIES = os.path.join(PEERS, "lib")
TOOLS = os.path.join(PEERS, "tools")
# wrk, h2load, and the libraries of theirs that a plain Debian lacks.
DEBIAN_PACKAGES = ["wrk", "nghttp2-client", "libluajit-5.1-2", "libnghttp2-14", "libev4", "libjemalloc2"]


def python(environment):
    """The interpreter of an installed environment."""
    return os.path.join(PEERS, environment, "bin", "python")


def site_packages(environment):
    """Where the packages of an environment lie."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return os.path.join(PEERS, environment, "lib", version, "site-packages")


def environment(name):
    path = os.path.join(PEERS, name)
    shutil.rmtree(path, ignore_errors=True)
    venv.create(path, with_pip=True)
    requirements = os.path.join(HERE, "requirements", f"{name}.txt")
    subprocess.run([python(name), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", requirements], check=True)


def one_file(folder, start):
    names = [name for name in os.listdir(folder) if name.startswith(start)]
    if len(names) != 1:
        sys.exit(f"{folder} should hold one file {start}*, and holds {names}")
    return os.path.join(folder, names[0])


def linked(target, link):
    os.makedirs(os.path.dirname(link), exist_ok=True)
    if os.path.lexists(link):
        os.remove(link)
    os.symlink(os.path.relpath(target, os.path.dirname(link)), link)


def triton():
    environment("triton")
    packages = site_packages("triton")
    libraries = os.path.join(packages, "nvidia_pytriton.libs")
    # perf_analyzer asks for these by their plain names, the wheel carries them under names of its own.
    linked(one_file(libraries, "libb64"), os.path.join(LIBRARIES, "libb64.so.0d"))
    linked(one_file(libraries, "libcudart"), os.path.join(LIBRARIES, "libcudart.so.12"))
    server = os.path.join(packages, "pytriton", "tritonserver")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    stub = "triton_python_backend_stub"
    linked(os.path.join(server, "python_backend_stubs", version, stub), os.path.join(server, "backends", "python", stub))
    native = os.path.join(server, "backends", "identity")
    os.makedirs(native, exist_ok=True)
    source = os.path.join(HERE, "peers", "triton_identity.c")
    subprocess.run(["cc", "-O2", "-Wall", "-shared", "-fPIC", "-o", os.path.join(native, "libtriton_identity.so"), source], check=True)


def mlserver():
    environment("mlserver")


def tools():
    """Unpacks Debian packages without installing them: no root, and nothing of the machine changes."""
    shutil.rmtree(TOOLS, ignore_errors=True)
    packages, state = os.path.join(TOOLS, "packages"), os.path.join(TOOLS, "apt")
    for folder in (packages, os.path.join(state, "lists", "partial"), os.path.join(state, "archives", "partial")):
        os.makedirs(folder)
    own = ["-o", f"Dir::State::lists={state}/lists", "-o", f"Dir::Cache={state}", "-o", "APT::Sandbox::User="]
    subprocess.run(["apt-get", *own, "-qq", "update"], check=True)
    subprocess.run(["apt-get", *own, "-qq", "download", *DEBIAN_PACKAGES], check=True, cwd=packages)
    for package in os.listdir(packages):
        subprocess.run(["dpkg-deb", "--extract", os.path.join(packages, package), TOOLS], check=True)
    shutil.rmtree(packages)
    shutil.rmtree(state)


PARTS = {"triton": triton, "mlserver": mlserver, "tools": tools}


def fingerprint(part):
    """What an installed part depends on: this script, its requirements, and the interpreter."""
    digest = hashlib.sha256(sysconfig.get_python_version().encode())
    for name in ("install.py", f"requirements/{part}.txt", f"peers/{part}_identity.c"):
        path = os.path.join(HERE, name)
        if os.path.exists(path):
            with open(path, "rb") as file:
                digest.update(file.read())
    return digest.hexdigest()


def install(parts):
    os.makedirs(PEERS, exist_ok=True)
    for part in parts:
        stamp = os.path.join(PEERS, f"{part}.installed")
        wanted = fingerprint(part)
        if os.path.exists(stamp):
            with open(stamp) as file:
                if file.read() == wanted:
                    continue
            os.remove(stamp)
        print(f"installing {part}", flush=True)
        PARTS[part]()
        with open(stamp, "w") as file:
            file.write(wanted)


if __name__ == "__main__":
    unknown = [part for part in sys.argv[1:] if part not in PARTS]
    if unknown:
        sys.exit(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    install(sys.argv[1:] or PARTS)
