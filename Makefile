# Each target does its own set-up: a virtual environment in .venv with the versions of constraints.txt.
#   make check      hold kvoffload against the reference machine, every engine, one screen
#   make test       the tests, but for those that are part of make docs, bugs, prove and recount (markers pages, bank,
#                   proofs and recount)
#   make docs       the documentation as a site, in build/site; fails on a broken link, or if a page shows what does not happen
#   make watch      tests of kvoffload alone once more, each engine recorded, its log explained line by line
#   make gpu        the tests that need a CUDA device (docs/how-to/run-on-a-gpu.md)
#   make prove      prove the contract for all sizes, all of it afresh; and the tests of the proofs
#   make prove-all  the same with five seeds, with one invariant more, and by cvc5; hold the proofs' specification against
#                   the reference machine both ways; and see each seeded bug of it fail what it should (an hour; nightly)
#   make bugs       plant every bug of tests/bugs, and see each caught by the property that it breaks: the kill matrix;
#                   and shrink the long walks into ten of them
#   make bugs-all   the same, and then the engines that sample, the suite and the proofs on each (hours; nightly)
#   make bugs-compare   the same under a plain stateful test and a random walk (hours; ARGS: which)
#   make mutants    mutation testing of the control plane and the predicates, with mutmut (nightly)
#   make recount    states and transitions counted again in Murphi (needs Debian's rumur and gcc; ARGS: which scopes)
#   make check-all  the same as check with what is too large for every change (nightly)
#   make lint types contracts    ruff; mypy and pyright; import-linter
#   make vllm       hold vLLM's own offload connectors, unmodified, to their obligations; an environment of its own
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
MUTANTS_STAMP := $(STAMP)-mutants
VLLM_VENV := .venv-vllm
VLLM_BIN := $(VLLM_VENV)/bin
VLLM_STAMP := $(VLLM_VENV)/ready-$(shell cat pyproject.toml constraints-vllm.txt | sha256sum | cut -c 1-16)
# For each of the two connectors. A quiet machine needs a fraction of it; on a busy one the check ends undetermined (exit
# status 3), which says nothing against a change, and is told and let pass.
VLLM_BUDGET ?= 120s
OR_CUT = { status=$$?; (( status == 3 )) || exit $$status; \
    echo "make vllm: cut short after $(VLLM_BUDGET), nothing found until then; VLLM_BUDGET=10m gives it more"; }
TORCH := $(shell grep '^torch==' constraints.txt)
# Three for two cores: tests wait a quarter of their time, for a hang to be told and for processes that they start.
TEST_WORKERS ?= 3
TESTS := $(BIN)/python -m pytest -n $(TEST_WORKERS) --dist worksteal
# Read by pip for what it installs and for what it builds with.
export PIP_CONSTRAINT := constraints.txt
export PIP_BUILD_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Compiled modules are kept, whatever the environment says: else each process that a test starts compiles them all anew.
unexport PYTHONDONTWRITEBYTECODE
NOT_INSTALLED = { echo "make $(or $(MAKECMDGOALS),check): $(@D) was not set up, since pip could not install what is \
    pinned (above); is a package index within reach? PIP_ARGS=\"--index-url URL\" names another" >&2; exit 2; }

.PHONY: check prove prove-all test watch docs bugs bugs-all bugs-compare mutants recount gpu vllm check-all setup lint types contracts clean

check: $(STAMP)
	@$(BIN)/kvproof check $(ARGS)

check-all: $(STAMP)
	@$(BIN)/kvproof check --all $(ARGS)

prove: $(STAMP)
	@$(BIN)/kvproof prove $(ARGS)
	@$(if $(ARGS),,$(TESTS) -m proofs tests/proofs tests/specs/proof)

prove-all: $(STAMP)
	@for seed in 0 1 2 3 4; do $(BIN)/kvproof prove --seed $$seed; done
	@for module in one_more held drawn second bugs; do $(BIN)/python -m tests.proofs.$$module; done

test: $(STAMP)
	@$(TESTS) -m "not pages and not bank and not proofs and not recount" $(ARGS)

# Those whose engines do little each: two modules that drive at random, for minutes, are left out.
WATCHED := $(addprefix tests/impl/test_, $(addsuffix .py, engine requests reset stores marks second_tier deadlines \
    asynchronous_scheduling failing_copies refusals connector_outputs cache_events))
watch: $(STAMP)
	@$(BIN)/python -m pytest -q -p kvproof.pytest_plugin --kvproof-watch $(WATCHED) $(ARGS)

# Not --quiet: strict counts the warnings that are shown. The theme's own notice, of its successor, is not about our pages.
docs: $(STAMP)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict $(ARGS)
	@$(TESTS) -m pages tests/docs

bugs: $(STAMP)
	@$(BIN)/python -m tests.bugs $(ARGS)
	@$(if $(ARGS),,$(TESTS) -m bank tests/bugs)

bugs-all: $(STAMP)
	@$(BIN)/python -m tests.bugs --keep
	@$(TESTS) -m bank tests/bugs
	@$(BIN)/python -m tests.bugs.night $(ARGS)

bugs-compare: $(STAMP)
	@$(BIN)/python -m tests.bugs.compare $(ARGS)

mutants: $(MUTANTS_STAMP)
	@$(BIN)/python -m tests.mutants $(ARGS)

recount: $(STAMP)
	@$(TESTS) -m recount tests/recount
	@$(BIN)/python -m tests.recount $(ARGS)

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

vllm: $(VLLM_STAMP)
	@$(VLLM_BIN)/kvproof check --target vllm-offloading --known docs/known-vllm-0.32.0.txt \
	    --budget $(VLLM_BUDGET) $(ARGS) || $(OR_CUT)
	@$(VLLM_BIN)/kvproof check --target vllm-simple --budget $(VLLM_BUDGET) $(ARGS) || $(OR_CUT)
	@$(VLLM_BIN)/python -m pytest -q -p no:cacheprovider -W default tests/vllm

setup: $(STAMP)

$(STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kvproof needs Python 3.11 or newer")'
	@echo "Setting up $(VENV) (once)"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@# torch alone first: an index of CPU-only wheels (PIP_ARGS) need not have the rest
	@$(BIN)/python -m pip install --quiet $(PIP_ARGS) "$(TORCH)" || $(NOT_INSTALLED)
	@# docs too: a few small wheels, and one environment and one stamp are easier to keep than two
	@$(BIN)/python -m pip install --quiet -e '.[dev,docs]' || $(NOT_INSTALLED)
	@touch $@

$(MUTANTS_STAMP): $(STAMP)
	@$(BIN)/python -m pip install --quiet -e '.[dev,mutants]' || $(NOT_INSTALLED)
	@touch $@

# vLLM's dependencies are those of a server, and not all of them: no torchvision, torchaudio, torchcodec. So all that is
# needed is listed, and nothing is resolved. Other wheels of torch than the CPU's would do as well. Not compiled: of its
# modules few are imported, and those are compiled then.
$(VLLM_STAMP): export PIP_CONSTRAINT :=
$(VLLM_STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kvproof needs Python 3.11 or newer")'
	@echo "Setting up $(VLLM_VENV) (once)"
	@rm -rf $(VLLM_VENV)
	@$(PYTHON) -m venv $(VLLM_VENV)
	@$(VLLM_BIN)/python -m pip install --quiet --no-deps --no-compile $(PIP_ARGS) "$(TORCH)" || $(NOT_INSTALLED)
	@$(VLLM_BIN)/python -m pip install --quiet --no-deps --no-compile -r constraints-vllm.txt || $(NOT_INSTALLED)
	@$(VLLM_BIN)/python -m pip install --quiet --no-deps -e . || $(NOT_INSTALLED)
	@touch $@

clean:
	@rm -rf $(VENV) $(VLLM_VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find model specs impl harness tests -name __pycache__ -prune -exec rm -rf {} +
