# Everything a person or CI runs. Needs make and Python 3.11 or newer; makes its own environment.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help test lint types unit check test-web containers bench lock clean model

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; set PYTHON=") if sys.version_info < (3, 11) else None'
	@echo "Making the environment in $(VENV) (about a minute, once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

venv: $(STAMP) ## make the development environment

test: lint types unit ## everything that must hold: lint, types, tests

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

unit: $(STAMP)
	$(BIN)/python -m pytest -n 2

model: $(STAMP) ## visit every state of the protocol's model (minutes)
	$(BIN)/python -m tests.model --short

check: test ## test, and the security checks
	$(BIN)/bandit -q -r cosmosservice emulator/cosmos_emulator -c pyproject.toml
	$(BIN)/pip-audit --skip-editable

test-web: $(STAMP) ## drive adk web in headless Chromium (needs chromium and chromedriver)
	$(BIN)/python -m pytest tests/web

containers: $(STAMP) ## write deploy/containers.json from the code
	$(BIN)/python -m cosmosservice.cli.provision > deploy/containers.json

bench: $(STAMP) ## measure beside the other session services, write docs/benchmarks.md
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements-bench.lock
	$(BIN)/python -m benchmarks

lock: ## compile requirements.lock from pyproject.toml (needs uv)
	uv pip compile --universal --python-version 3.11 --extra dev --no-emit-index-url --no-emit-find-links --no-header --no-annotate -o requirements.lock pyproject.toml

clean: ## remove the environment and what tools left behind
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .hypothesis
