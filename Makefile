# `make demo` shows what Weft does, `make test` checks all of it from a fresh machine with Rust and Python.

VENV := .venv
PYTHON ?= python3
ONNX_DATA := $(VENV)/onnx-data
# CPU tests of big zoo models against onnxruntime: `make test FULL=1` runs all of them, the default a few.
FULL ?= 0
# Kernels are compile-checked with the NVRTC of the environment, which needs no GPU.
CUDA = $$(echo $(abspath $(VENV))/lib/python3.*/site-packages/nvidia/cu13)
NVRTC = WEFT_REQUIRE_NVRTC=1 WEFT_CUDA_PATH=$(CUDA)
# A GPU in software takes the driver's place, and passes on to that NVRTC.
EMULATED = $(PYTHON) tests/gpu/emulated.py --nvrtc $(CUDA)
# The unit tests and the test programs that need a GPU. Other unit tests read machine code, which PTX is not.
TESTS := lib gpu_driver gpu_operators gpu_models gpu_superkernel
# What is compiled for them: no more than is needed, or what tests of the workspace were compiled with.
OF := --package weft-cuda
# All operators but convolutions and large products, which take minutes in software.
BRIEF_CASES = $(if $(filter 1,$(FULL)),,!windows,!streamed,!few rows,!Conv)
WEFT := $(or $(CARGO_TARGET_DIR),target)/release/weft

# Clients and servers that Weft is tested with and measured beside; tests/server/install.py puts them there.
SERVER_PYTHON := tests/server/.peers/triton/bin/python

.PHONY: demo test emulated check format lint doc peers overhead gpu-bundle clean

demo:
	cargo build --release -p weft-cli
	$(WEFT) demo

## Everything CI runs: fast checks first.
test: $(VENV)/ready
	cargo fmt --all --check
	$(NVRTC) WEFT_ONNX_DATA=$(abspath $(ONNX_DATA)) cargo test --workspace --lib --bins --tests
	$(MAKE) emulated OF=--workspace TESTS="lib gpu_driver"
	WEFT_CASE='$(BRIEF_CASES)' $(EMULATED) cargo test --workspace --test gpu_operators every_operator
	cargo build --release -p weft-cli
	$(VENV)/bin/python tests/cli.py $(WEFT)
	$(VENV)/bin/python tests/zoo_agreement.py $(WEFT) $(if $(filter 1,$(FULL)),--full)
	$(PYTHON) tests/server/install.py triton
	$(SERVER_PYTHON) tests/server/clients.py $(WEFT)
	$(SERVER_PYTHON) tests/server/abuse.py $(WEFT) $(if $(filter 1,$(FULL)),--full)

## The tests that need a GPU, on one in software: `make emulated TESTS=gpu_driver` runs one of the test programs, `TESTS=lib` unit tests.
emulated: $(VENV)/ready
	$(if $(filter lib,$(TESTS)),$(EMULATED) cargo test $(OF) --lib executable::)
	$(if $(filter-out lib,$(TESTS)),$(EMULATED) cargo test $(OF) $(patsubst %,--test %,$(filter-out lib,$(TESTS))))

check: format lint test doc

format:
	cargo fmt --all

lint:
	cargo clippy --workspace --all-targets -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

## The comparison with onnxruntime in the README.
peers: $(VENV)/ready
	cargo build --release -p weft-cli
	WEFT_PYTHON=$(VENV)/bin/python $(WEFT) bench peers

## What a server costs when the model costs nothing, beside Triton and MLServer. See docs/clients.md.
overhead:
	cargo build --release -p weft-cli
	$(PYTHON) tests/server/install.py
	$(SERVER_PYTHON) tests/server/overhead.py --weft $(WEFT)

## All that a machine with a GPU and without cargo needs; `out/gpu/run.sh` runs it there. See docs/gpu.md.
gpu-bundle: $(VENV)/ready
	$(PYTHON) tests/gpu/bundle.py --data $(ONNX_DATA) --out out/gpu

# The standard's test data is inside the package onnx 1.22.0 and in no later one.
$(VENV)/ready: tests/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --requirement tests/requirements.txt
	rm -rf $(ONNX_DATA)
	cp -r $$($(VENV)/bin/python -c "import onnx, os; print(os.path.dirname(onnx.__file__))")/backend/test/data/node $(ONNX_DATA)
	touch $@

clean:
	cargo clean
	rm -rf $(VENV) tests/server/.peers
