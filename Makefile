# Bare `make` lists the verbs.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := .venv/bin
BASE := .venv/.base-installed
DEV := .venv/.dev-installed
WORKERS ?= 2

.PHONY: help demo setup test test-servers lint format lock bench experiment-llm wheel clean

help:  ## list the verbs
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

demo: $(BASE)  ## set up and diagnose one sample case from the shipped records
	@$(BIN)/wardround demo

setup: $(DEV)  ## set up .venv for development

test: $(DEV)  ## set up and run the tests; no server, no torch
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --hypothesis-profile=ci \
		-m "not server and not bge" $(PYTEST_ARGS)

test-servers: $(DEV)  ## run the tests that need a real vLLM or BGE-M3 (environments cached outside the clone)
	@bash tests/servers/run.sh

lint: $(DEV)  ## ruff, mypy --strict, and who may import whom
	@rm -rf build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	MYPYPATH=.typing $(BIN)/mypy -p wardround
	$(BIN)/lint-imports

format: $(DEV)  ## let ruff mend and format what it can
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format --quiet .

lock: $(DEV)  ## resolve pyproject.toml into the hashed locks again (LOCK_ARGS=--upgrade for newer versions)
	@bash requirements/lock.sh $(LOCK_ARGS)
	@bash tests/servers/lock.sh $(LOCK_ARGS)

bench: $(DEV)  ## speed side by side with the alternatives (BENCH="retrieval build icd10")
	@for name in $(or $(BENCH),retrieval build icd10); do $(BIN)/python -m wardround.benchmarks.$$name --json; done

experiment-llm: $(DEV)  ## compare the conditions that use a language model; resumable, in the background
	@bash tests/servers/experiment.sh

wheel: $(DEV)  ## build dist/wardround-*.whl
	@rm -rf build dist
	@$(BIN)/uv build --quiet --wheel --no-build-isolation --python $(BIN)/python
	@ls dist/*.whl

clean:  ## remove what the other verbs made here
	rm -rf .venv build dist wardround.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# One file per lock says what is installed, so that a second run starts at once.
.venv/.%-installed: requirements/%.lock requirements/build.lock requirements/setup.sh pyproject.toml
	@echo "setting up .venv from $< ..." >&2
	@bash requirements/setup.sh $*
	@touch $@
