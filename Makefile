# Each target does its own set-up: a virtual environment in .venv with the versions of constraints.txt.
#   make check      hold kvoffload against the reference machine, every engine, one screen
#   make test       the tests
#   make gpu        the tests that need a CUDA device (docs/how-to/run-on-a-gpu.md)
#   make check-all  the same as check with what is too large for every change (nightly)
#   make lint types contracts    ruff; mypy and pyright; import-linter
#   make clean      remove .venv and caches
# PIP_ARGS is for pip, such as PIP_ARGS="--index-url https://..." for a mirror or for CPU-only wheels of torch.
# GPU_PYTHON is for make gpu alone, which sets nothing up: a Python with torch for CUDA, pytest and hypothesis.
# ARGS is for kvproof or pytest: make check ARGS="--discipline fencing", make test ARGS="-k trace".

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

PYTHON ?= $(shell command -v python3.11 || command -v python3)
PIP_ARGS ?=
ARGS ?=
GPU_PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The stamp's name holds a hash of what decides the content of the environment, and nothing else: a second run that
# finds it starts at once, and a change of a dependency makes a new environment.
DEPENDENCIES := pyproject.toml constraints.txt
STAMP := $(VENV)/ready-$(shell cat $(DEPENDENCIES) | sha256sum | cut -c 1-16)
TORCH := $(shell grep '^torch==' constraints.txt)
TEST_WORKERS ?= 2
# Read by pip for what it installs and for what it builds with.
export PIP_CONSTRAINT := constraints.txt
export PIP_BUILD_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: check test gpu check-all setup lint types contracts clean

check: $(STAMP)
	@$(BIN)/kvproof check $(ARGS)

check-all: $(STAMP)
	@$(BIN)/kvproof check --all $(ARGS)

test: $(STAMP)
	@$(BIN)/python -m pytest -n $(TEST_WORKERS) $(ARGS)

gpu:
	@PYTHONPATH=impl $(GPU_PYTHON) tests/gpu/ready.py
	@PYTHONPATH=impl $(GPU_PYTHON) -m pytest -p no:cacheprovider -W default tests/gpu $(ARGS)

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(STAMP)
	@$(BIN)/mypy
	@$(BIN)/pyright --pythonpath $(BIN)/python

contracts: $(STAMP)
	@$(BIN)/lint-imports

setup: $(STAMP)

$(STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kvproof needs Python 3.11 or newer")'
	@echo "Setting up $(VENV) (once)"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@# torch alone first: an index of CPU-only wheels (PIP_ARGS) need not have the rest
	@$(BIN)/python -m pip install --quiet $(PIP_ARGS) "$(TORCH)"
	@$(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@

clean:
	@rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find model specs impl harness tests -name __pycache__ -prune -exec rm -rf {} +
