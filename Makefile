# Everything a developer does. `make demo` needs only Python 3.11 or newer and make.
PYTHON ?= python3
export PYTHON

BIN := .venv/bin
DEV := -e '.[all]' --group test --group check -c constraints.txt

.PHONY: help demo test nightly check conformance docs bench format clean

help: ## list what can be made
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

demo: .venv/installed-demo ## run the example on a local model, without any key
	@$(BIN)/python examples/demo.py

test: .venv/installed-dev ## run the tests
	@$(BIN)/pytest -n auto --dist loadfile

nightly: .venv/installed-dev ## look much longer for examples that break a property
	@HYPOTHESIS_PROFILE=nightly $(BIN)/pytest -n auto -m hypothesis

check: .venv/installed-dev ## format, lint, types, architecture, documentation
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/pyright
	$(BIN)/pytest --quiet tests/test_architecture.py tests/test_project_files.py
	$(BIN)/zensical build --clean --strict

conformance: .venv/installed-dev ## run the official MCP conformance suite (needs npm once)
	@$(BIN)/python tests/conformance/run.py

docs: .venv/installed-dev ## build the documentation into site/
	$(BIN)/zensical build --clean --strict

bench: .venv/installed-dev ## measure
	@$(BIN)/python benchmarks/run.py

format: .venv/installed-dev ## format the code and mend what the linter can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean: ## remove everything made here
	rm -rf .venv dist site .cache .peers .pytest_cache .ruff_cache .hypothesis

# The stamps depend on what decides about packages, so nothing is installed, or asked of the network, twice.
.venv/installed-demo: pyproject.toml scripts/install.sh
	@scripts/install.sh -e '.[local,cli]'
	@touch $@

.venv/installed-dev: pyproject.toml constraints.txt scripts/install.sh
	@scripts/install.sh $(DEV)
	@touch $@
