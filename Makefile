PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.pictolex-installed

.PHONY: setup test test-all lint format types bench demo clean
.DEFAULT_GOAL := setup

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make setup PYTHON=python3.11" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

# One thread per test process: small torch operations oversubscribe.
test test-all: export OMP_NUM_THREADS = 1

test: setup
	$(BIN)/python -m pytest -q -n 2 -m "not slow"

test-all: setup
	$(BIN)/python -m pytest -q -n 2

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: setup
	$(BIN)/mypy

bench: setup
	$(BIN)/pictolex bench

demo: setup
	$(BIN)/pictolex learn tetrominoes -o run --overwrite
	$(BIN)/pictolex show run
	$(BIN)/pictolex info run

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
