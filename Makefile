# Everything a person or CI runs. Needs make and Python 3.11 or newer; makes its own environment.
PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
STAMP   := $(VENV)/.installed
ADKS    := 2.13.0 1.39.1
PYTHONS := 3.11 3.12 3.13

.DEFAULT_GOAL := help
.PHONY: help demo test lint types unit check conformance test-matrix test-pythons test-blobs artifacts-matrix bench-artifacts bench-memory bench-explore test-web test-packaging containers docs pictures site bench lock clean model prompts crash-matrix crash-processes interleavings soak endurance power-cut pythons-there

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

demo: $(STAMP) ## run conversations that survive their process, on the embedded emulator
	@$(BIN)/python examples/agent_runner.py --fresh
	@$(BIN)/python examples/agent_runner.py
	@$(BIN)/python examples/remembering_agent.py --fresh
	@$(BIN)/python examples/remembering_agent.py
	@cat examples/next_steps.txt

test: lint types unit ## lint, check types and run the tests

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

unit: $(STAMP)
	$(BIN)/python -m pytest -n 3 --dist worksteal

model: $(STAMP) ## visit every state of the protocol's model (five minutes)
	$(BIN)/python -m tests.model --short

conformance: $(STAMP) ## run Microsoft's own tests of azure-cosmos against the emulator (half an hour)
	$(BIN)/python emulator/conformance

crash-matrix: $(STAMP) ## fail every request of every operation in every way, with and without lag
	$(BIN)/python -m tests.reliability.crash_matrix
	$(BIN)/python -m tests.memory.crash_matrix
	$(BIN)/python -m tests.together.crash_matrix

soak: $(STAMP) ## run a load with faults, storms of 429 and lag, for three minutes (SOAK="--seconds 600 --lag 0")
	$(BIN)/python -m tests.reliability.load $(SOAK)

endurance: $(STAMP) ## run 100,000 sessions through one process, then ten minutes of soak with lag (an hour)
	$(BIN)/python -m tests.reliability.endurance
	$(BIN)/python -m tests.reliability.load --seconds 600 --lag 0.5

power-cut: $(STAMP) ## kill -9 during 10,000 writes to the emulator's file, again and again
	$(BIN)/python -m tests.reliability.powercut

interleavings: $(STAMP) ## run concurrent processes with twenty times the seeds of make test, cancelled at every step, with every lag
	RECORD_AS=interleavings RELIABILITY_SEEDS=20 $(BIN)/python -m pytest -n 2 tests/reliability/test_interleavings.py tests/reliability/test_cancellation.py tests/reliability/test_lag.py tests/reliability/test_lag_and_erasure.py tests/reliability/test_erasure_under_way.py tests/memory/test_remembering_under_lag.py tests/memory/test_processes.py

prompts: $(STAMP) ## compare prompts with and without since_compaction over ten thousand histories
	COMPACTED_HISTORIES=10000 $(BIN)/python -m pytest -n 2 tests/contract/test_compacted_prompts.py

crash-processes: $(STAMP) ## kill real processes at random points, a hundred times, half of them with lag
	$(BIN)/python -m tests.reliability.crash_processes

check: test ## run test and the security checks
	$(BIN)/bandit -q -r cosmosservice emulator/cosmos_emulator -c pyproject.toml
	@$(BIN)/pip-audit --strict --no-deps --disable-pip --progress-spinner off -r requirements.lock || { \
	  echo "pip-audit: a known vulnerability, or the vulnerability service of PyPI did not answer: see above." >&2; exit 1; }

test-matrix: $(ADKS:%=.matrix/%/.installed) ## test the contract on every supported line of google-adk
	@for adk in $(ADKS); do \
	  echo "google-adk $$adk"; \
	  .matrix/$$adk/bin/python -m pytest -n 2 tests/contract tests/adk tests/converters tests/memory tests/artifacts/test_contract.py tests/artifacts/test_adk.py || exit 1; \
	done

# Everything as locked, but what google-adk itself pins differently from version to version.
.matrix/%/.installed: pyproject.toml requirements.lock
	@echo "Making the environment for google-adk $* ..."
	@$(PYTHON) -m venv .matrix/$*
	@grep -vE '^(google-|opentelemetry-|fastapi|protobuf)' requirements.lock > .matrix/$*/constraints.txt
	@.matrix/$*/bin/python -m pip install -q --disable-pip-version-check -c .matrix/$*/constraints.txt google-adk==$* -e '.[dev]'
	@touch $@

test-pythons: $(PYTHONS:%=.pythons/%/.installed) ## run all tests on every supported Python
	@for python in $(PYTHONS); do \
	  echo "Python $$python"; \
	  .pythons/$$python/bin/python -m pytest -n 2 || exit 1; \
	done

pythons-there:
	@for python in $(PYTHONS:%=python%); do $$python --version > /dev/null 2>&1 || missing="$$missing $$python"; done; \
	[ -z "$$missing" ] || { echo "Not found or not working:$$missing. They must be on PATH by these names." >&2; exit 1; }

.pythons/%/.installed: pyproject.toml requirements.lock | pythons-there
	@echo "Making the environment for Python $* ..."
	@python$* -m venv .pythons/$*
	@.pythons/$*/bin/python -m pip install -q --disable-pip-version-check -r requirements.lock
	@.pythons/$*/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

test-blobs: $(STAMP) .azurite/.installed ## test artifacts with payloads in Azurite, the emulator of Blob Storage (needs Node)
	$(BIN)/python -m pytest tests/blobs

.azurite/.installed:
	@echo "Installing Azurite ..."
	@npm install --silent --no-audit --no-fund --prefix .azurite azurite@3.35.0
	@touch $@

artifacts-matrix: $(STAMP) ## fail every request of artifact operations in every way, try more orders, and 100 MB
	$(BIN)/python -m tests.artifacts.crash_matrix
	ARTIFACT_INTERRUPTIONS=2 ARTIFACT_MEGABYTES=100 $(BIN)/python -m pytest -n 2 --timeout 1200 tests/artifacts/test_interleavings.py tests/artifacts/test_streams.py

bench-artifacts: $(STAMP) .azurite/.installed ## compare artifacts with ADK's own services and the bare SDKs
	$(BIN)/python -m benchmarks.artifacts

test-web: $(STAMP) ## drive adk web and explore in headless Chromium, FastAPI in two workers (needs chromedriver)
	$(BIN)/python -m pytest tests/web

test-packaging: $(STAMP) ## install the wheel in a clean environment and use it (downloads)
	$(BIN)/python -m pytest tests/packaging/clean

containers: $(STAMP) ## write deploy/containers.json from the code
	$(BIN)/python -m cosmosservice.cli.provision > deploy/containers.json

docs: $(STAMP) ## write the generated parts of docs/ from the code
	$(BIN)/python -m docs.generate

pictures: $(STAMP) ## draw docs/images/timeline.svg from what the command line prints
	$(BIN)/python -m docs.generate.pictures

site: .site/.installed ## build the documentation site in build/site/site; broken links fail
	.site/bin/python -m docs.site build/site

.site/.installed: requirements-site.lock
	@$(PYTHON) -m venv .site
	@.site/bin/python -m pip install -q --disable-pip-version-check -r requirements-site.lock
	@touch $@

bench: $(STAMP) ## compare with the other session services, write docs/benchmarks.md
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements-bench.lock
	$(BIN)/python -m benchmarks

bench-explore: $(STAMP) ## measure explore with 10,000 sessions, in headless Chromium
	$(BIN)/python -m benchmarks.explore

bench-memory: $(STAMP) ## measure how well memories are found, write docs/memory.md
	$(BIN)/python -m benchmarks.memory

lock: ## compile requirements.lock from pyproject.toml, and that of the site (needs uv)
	uv pip compile --universal --python-version 3.11 --extra dev --no-emit-index-url --no-emit-find-links --no-header --no-annotate -o requirements.lock pyproject.toml
	echo 'zensical<0.1' | uv pip compile --universal --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-header --no-annotate -o requirements-site.lock -

clean: ## remove the environment and the files that tools made
	rm -rf $(VENV) .matrix .pythons .azurite .site build dist .mypy_cache .ruff_cache .hypothesis
