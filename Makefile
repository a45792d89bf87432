# Everything a person or CI runs. Needs make and Python 3.11 or newer; makes its own environment.
PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
STAMP   := $(VENV)/.installed
ADKS    := 2.13.0 1.39.1
PYTHONS := 3.11 3.12 3.13

.DEFAULT_GOAL := help
.PHONY: help demo test lint types unit coverage check conformance conformance-js conformance-libraries conformance-recordings test-matrix test-pythons test-blobs artifacts-matrix bench-artifacts bench-memory bench-explore test-web test-packaging containers docs pictures site bench lock clean model combinations prompts crash-matrix crash-processes interleavings soak endurance power-cut pythons-there

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): pyproject.toml emulator/pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; set PYTHON=") if sys.version_info < (3, 11) else None'
	@echo "Making the environment in $(VENV) (about a minute, once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e ./emulator -e .
	@touch $(STAMP)

venv: $(STAMP) ## make the development environment

demo: .demo/.installed ## watch a conversation survive a kill and a collision, on the embedded emulator
	@.demo/bin/cosmosservice demo --short

# Only what the demo needs, in the versions of the lock. uv is faster than pip, where there is one.
UV := $(shell command -v uv)
.demo/.installed: pyproject.toml emulator/pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; set PYTHON=") if sys.version_info < (3, 11) else None'
	@echo "Installing what the demo needs into .demo (once) ..."
	@$(PYTHON) -m venv $(if $(UV),--without-pip) .demo
	@sed -nE 's/^([a-z][^ ]*==[^ ]+( ; [^\\]*)?).*/\1/p' requirements.lock > .demo/constraints.txt
	@$(if $(UV),$(UV) pip install -q -p .demo,.demo/bin/python -m pip install -qq --disable-pip-version-check --no-compile) \
	  -c .demo/constraints.txt -e ./emulator -e '.[explore]'
	@touch $@

test: lint types unit ## lint, check types and run the tests

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# Tests start some hundred processes: without bytecode, each would compile the packages.
unit: export PYTHONDONTWRITEBYTECODE =
unit: $(STAMP)
	$(BIN)/python -m pytest -n 4 --dist worksteal
	$(BIN)/python -m tests.support.endpoints --on vnext -n 3 --dist worksteal $(SOME)

# A part of test-endpoint. Those that wait until documents expire come first.
SOME := tests/anywhere tests/contract/test_append.py tests/contract/test_list.py \
        tests/contract/test_beyond_adk.py tests/memory/contract tests/artifacts/test_contract.py

coverage: $(STAMP) ## run the tests and report what they do not run, also as pages in build/coverage
	$(BIN)/python -m pytest -n 3 --dist worksteal --cov --cov-report=term --cov-report=html

.PHONY: test-endpoint test-container
# ENDPOINT, KEY and LIKE name an account, ON some of our own emulators, TESTS what to run.
ENDPOINT := $(or $(ENDPOINT),$(COSMOS_TEST_ENDPOINT))
KEY      := $(or $(KEY),$(COSMOS_TEST_KEY))
LIKE     := $(or $(LIKE),$(COSMOS_TEST_LIKE))
test-endpoint: export COSMOS_TEST_ENDPOINT = $(ENDPOINT)
test-endpoint: export COSMOS_TEST_KEY = $(KEY)
test-endpoint: export COSMOS_TEST_LIKE = $(LIKE)
test-endpoint: $(STAMP) ## test on an account: ENDPOINT=… KEY=…, else on four emulators of our own over HTTP
	@$(BIN)/python -m tests.support.endpoints $(if $(ON),--on $(ON)) -n 2 --dist worksteal $(TESTS)

test-container: $(STAMP) ## test on Microsoft's emulator container, which it starts and stops (needs Docker)
	@$(BIN)/python -m tests.support.container -n 2 --dist worksteal $(TESTS)

model: $(STAMP) ## visit every state of the protocol's model (five minutes)
	$(BIN)/python -m tests.model --short

conformance: ## run the tests of SDKs and libraries against the emulator (an hour); SUITES="search js", AZURE_SDK_FOR_JS=… LANGCHAIN_AZURE=… AGENT_FRAMEWORK=… DBIMP=…
conformance-js: SUITES = js js-4
conformance-libraries: SUITES = langchain langgraph agent-framework
conformance-recordings: SUITES = recordings recordings-vnext
conformance conformance-js conformance-libraries conformance-recordings: $(STAMP)
	$(BIN)/python emulator/conformance $(SUITES)

crash-matrix: $(STAMP) ## fail every request of every operation in every way, with and without lag
	$(BIN)/python -m tests.reliability.crash_matrix
	$(BIN)/python -m tests.memory.crash_matrix
	$(BIN)/python -m tests.together.crash_matrix

soak: $(STAMP) ## run a load with faults, storms of 429 and lag, for three minutes (SOAK="--seconds 600 --lag 0")
	$(BIN)/python -m tests.reliability.load $(SOAK)

endurance: $(STAMP) ## run 100,000 sessions through one process, then ten minutes of soak with lag (an hour)
	$(BIN)/python -m tests.reliability.endurance
	$(BIN)/python -m tests.reliability.load --seconds 600 --lag 0.5 --record-as 'long soak'

power-cut: $(STAMP) ## kill -9 during 10,000 writes to the emulator's file, again and again
	$(BIN)/python -m tests.reliability.powercut

interleavings: $(STAMP) ## run concurrent processes with twenty times the seeds of make test, cancelled at every step, with every lag
	RECORD_AS=interleavings RELIABILITY_SEEDS=20 $(BIN)/python -m pytest -n 2 tests/reliability/test_interleavings.py tests/reliability/test_cancellation.py tests/reliability/test_lag.py tests/reliability/test_lag_and_erasure.py tests/reliability/test_erasure_under_way.py tests/memory/test_remembering_under_lag.py tests/memory/test_processes.py tests/together/test_histories.py

combinations: $(STAMP) ## try all combinations of which make test tries a part
	COMBINATIONS=all $(BIN)/python -m pytest -n 2 tests/memory/test_damage.py tests/contract/test_objects_from_elsewhere.py tests/contract/test_paging_under_use.py

prompts: $(STAMP) ## compare prompts with and without since_compaction over ten thousand histories
	$(BIN)/python -m tests.contract.test_compacted_prompts

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
.matrix/%/.installed: pyproject.toml emulator/pyproject.toml requirements.lock
	@echo "Making the environment for google-adk $* ..."
	@$(PYTHON) -m venv .matrix/$*
	@sed -nE '/^(google-|opentelemetry-|fastapi|protobuf)/!s/^([a-z][^ ]*==[^ ]+( ; [^\\]*)?).*/\1/p' requirements.lock > .matrix/$*/constraints.txt
	@.matrix/$*/bin/python -m pip install -q --disable-pip-version-check --upgrade 'pip>=25.1' # for --group
	@.matrix/$*/bin/python -m pip install -q --disable-pip-version-check -c .matrix/$*/constraints.txt google-adk==$* -e ./emulator -e '.[blobs,entra,explore]' --group dev
	@touch $@

test-pythons: $(PYTHONS:%=.pythons/%/.installed) ## run all tests on every supported Python
	@for python in $(PYTHONS); do \
	  echo "Python $$python"; \
	  .pythons/$$python/bin/python -m pytest -n 2 || exit 1; \
	done

pythons-there:
	@for python in $(PYTHONS:%=python%); do $$python --version > /dev/null 2>&1 || missing="$$missing $$python"; done; \
	[ -z "$$missing" ] || { echo "Not found or not working:$$missing. They must be on PATH by these names." >&2; exit 1; }

.pythons/%/.installed: pyproject.toml emulator/pyproject.toml requirements.lock | pythons-there
	@echo "Making the environment for Python $* ..."
	@python$* -m venv .pythons/$*
	@.pythons/$*/bin/python -m pip install -q --disable-pip-version-check -r requirements.lock
	@.pythons/$*/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e ./emulator -e .
	@touch $@

test-blobs: $(STAMP) .azurite/.installed ## test artifacts with payloads in Azurite, the emulator of Blob Storage (needs Node)
	$(BIN)/python -m pytest tests/blobs
	$(BIN)/python -m tests.blobs.crash_matrix
	$(BIN)/python -m tests.blobs.together

.azurite/.installed:
	@echo "Installing Azurite ..."
	@npm install --silent --no-audit --no-fund --prefix .azurite azurite@3.35.0
	@touch $@

artifacts-matrix: $(STAMP) ## fail every request of artifact operations in every way, try more orders, and 100 MB
	$(BIN)/python -m tests.artifacts.crash_matrix
	ARTIFACT_INTERRUPTIONS=2 ARTIFACT_MEGABYTES=100 $(BIN)/python -m pytest -n 2 --timeout 1200 tests/artifacts/test_interleavings.py tests/artifacts/test_streams.py

bench-artifacts: $(STAMP) .azurite/.installed ## compare artifacts with ADK's own services and the bare SDKs
	$(BIN)/python -m benchmarks.artifacts

test-web: $(STAMP) .axe/.installed ## drive adk web and explore in headless Chromium (needs chromedriver and Node)
	$(BIN)/python -m pytest tests/web

.axe/.installed:
	@echo "Installing axe, which checks accessibility ..."
	@npm install --silent --no-audit --no-fund --prefix .axe axe-core@4.14.0
	@touch $@

test-packaging: $(STAMP) ## install the wheel in a clean environment and use it (downloads)
	$(BIN)/python -m pytest tests/packaging/clean

containers: $(STAMP) ## write deploy/containers.json from the code
	$(BIN)/python -m cosmosservice.cli.provision > deploy/containers.json

docs: $(STAMP) ## write the generated parts of docs/ from the code
	$(BIN)/python -m docs.generate

pictures: $(STAMP) ## draw the timeline, the recording of the demo and the badges, from what really runs
	$(BIN)/python -m docs.generate.pictures
	$(BIN)/python -m docs.generate.recording
	$(BIN)/python -m docs.generate.badges

site: $(STAMP) .site/.installed ## build the documentation site in build/site/site; broken links fail
	$(BIN)/python -m docs.sample build/sample
	$(BIN)/python -m docs.reference build/reference.md
	.site/bin/python -m docs.site build/site build/sample build/reference.md

.site/.installed: requirements-site.lock
	@$(PYTHON) -m venv .site
	@.site/bin/python -m pip install -q --disable-pip-version-check -r requirements-site.lock
	@touch $@

bench: $(STAMP) ## compare with the other session services, write docs/benchmarks.md
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements-bench.lock
	$(BIN)/python -m benchmarks

.PHONY: bench-check simulation
bench-check: $(STAMP) ## fail if an append or a get takes 15 % more instructions than kept in benchmarks/check.json
	$(BIN)/python -m benchmarks.check

simulation: $(STAMP) ## simulate a million daily users at 1, 3 and 10 times the peak, write docs/benchmarks/simulation.svg
	$(BIN)/python -m benchmarks.simulation

bench-explore: $(STAMP) ## measure explore with 10,000 sessions, in headless Chromium
	$(BIN)/python -m benchmarks.explore

bench-memory: $(STAMP) ## measure how well memories are found, write docs/memory.md; LOCOMO=file, LONGMEMEVAL=file, CONVERSATIONS=file
	$(BIN)/python -m benchmarks.memory $(if $(LOCOMO),--locomo $(LOCOMO)) $(if $(LONGMEMEVAL),--longmemeval $(LONGMEMEVAL)) $(addprefix --conversations ,$(CONVERSATIONS))
	$(BIN)/python -m docs.generate

# Hashes, but no uv.lock, which would name the index that it was made from.
COMPILE = uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate

lock: ## compile the locks from pyproject.toml, with hashes (needs uv)
	$(COMPILE) --extra blobs --extra entra --extra explore --group dev --no-emit-package cosmos-emulator -o requirements.lock pyproject.toml
	$(COMPILE) --group bench -c requirements.lock -o requirements-bench.lock
	echo 'zensical<0.1' | $(COMPILE) -o requirements-site.lock -

clean: ## remove the environment and the files that tools made
	rm -rf $(VENV) .matrix .pythons .azurite .axe .site .demo build dist .coverage* .mypy_cache .ruff_cache .hypothesis
