# `make setup`, `make test`, `make check` and `make demo` work on a machine that has Python 3.11+ with venv, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
UV ?= uv

.DEFAULT_GOAL := help
.PHONY: help setup lock wheel test check demo eval clean

# One version for every Python and platform, with the hashes of all its files. No address gets into the files.
LOCK := $(UV) pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
  --no-annotate --no-emit-index-url --custom-compile-command 'make lock' $(UPGRADE)

help:
	@echo "make setup   install everything into $(VENV)"
	@echo "make lock    write constraints*.txt anew from pyproject.toml, by uv; UPGRADE=--upgrade takes newer versions"
	@echo "make wheel   phonedesk as a wheel, in dist/"
	@echo "make demo    the main job on a virtual phone, in this terminal"
	@echo "make test    every test"
	@echo "make check   lint, types, imports"
	@echo "make eval    every scenario in every look of its app, with the tree and by pictures only"

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt constraints-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "phonedesk needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "Python's venv module is missing; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 2; }
	@echo "1/3 making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@echo "2/3 installing about 110 packages; this takes some minutes"
	@$(BIN)/python -m pip install --disable-pip-version-check --require-hashes \
	  -r constraints.txt -r constraints-dev.txt
	@echo "3/3 installing phonedesk itself"
	@$(BIN)/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@echo "installed; next: make demo"
	@touch $@

lock:
	@command -v $(UV) >/dev/null || { echo "make lock needs uv: pip install uv" >&2; exit 2; }
	$(LOCK) --all-extras pyproject.toml -o constraints.txt
	$(LOCK) --group pyproject.toml:dev -c constraints.txt -o constraints-dev.txt
	$(LOCK) --group pyproject.toml:build -c constraints-dev.txt -o constraints-build.txt

wheel: $(STAMP)
	rm -rf build
	$(BIN)/python -m pip wheel --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .

test: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist worksteal

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/deptry . --exclude '\.venv|build' --ignore DEP002,DEP004  # the tests, too, which may use tools

eval: $(STAMP)
	$(BIN)/phonedesk eval --look all --jobs 2

demo: $(STAMP)
	$(BIN)/phonedesk demo

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache build dist demo-output
