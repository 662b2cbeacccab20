# `make setup`, `make test`, `make check` and `make demo` work on a machine that has Python 3.11+ with venv, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup test check demo eval clean

help:
	@echo "make setup   install everything into $(VENV)"
	@echo "make demo    the main job on a virtual phone, in this terminal"
	@echo "make test    every test"
	@echo "make check   lint, types, imports"
	@echo "make eval    every scenario in every look of its app, with the tree and by pictures only"

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "phonedesk needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "Python's venv module is missing; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 2; }
	@echo "1/2 making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@echo "2/2 installing about 110 packages; this takes some minutes"
	@PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --disable-pip-version-check \
	  --editable '.[ocr,demo,dev]'
	@echo "installed; next: make demo"
	@touch $@

test: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist worksteal

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

eval: $(STAMP)
	$(BIN)/phonedesk eval --look all --jobs 2

demo: $(STAMP)
	$(BIN)/phonedesk demo

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache demo-output
