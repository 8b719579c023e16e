# Everything runs in .venv, which the first command makes; a second run reuses it.
.POSIX:
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
READY = $(VENV)/.ready
DOCS_READY = $(VENV)/.docs-ready
SITE = docs/_build/html

# One process per core, and so one thread of BLAS each: more would wait for each other. Files stay
# whole, so each sets up its fixtures once; tests/conftest.py puts those first that take long.
# Bytecode is kept even if PYTHONDONTWRITEBYTECODE is set: tests start hundreds of processes, and
# each would compile all libraries anew.
ONE_THREAD = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
PYTEST = $(ONE_THREAD) $(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder --durations 10

# `make test-all` measures coverage in a part of the usual tests (tests/conftest.py), over 90 %.
COVER =

# mypy, import-linter and the site have one process each, and so the tests run at their side.
TESTS_fast = -m "not slow and not seconds" tests
TESTS_usual = -m "not slow"
TESTS_slow = -m slow

.PHONY: help demo serve check test test-all rest fast usual slow docs fuzz lint types imports bench format clean
.DEFAULT_GOAL := help

help:  ## List the commands
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*## /\t/' | expand -t 10

demo: $(READY)  ## Fit the bundled data and tell what came out
	$(BIN)/likeminds demo

serve: $(READY)  ## A service on sketch shoes, with its page: http://127.0.0.1:8000
	$(BIN)/likeminds serve --demo

check: $(READY) lint  ## Before every commit: lint, types, import directions, the fast tests
	$(MAKE) --jobs 3 types imports fast

test: $(READY) lint  ## The same with doctests and tests that take seconds
	$(MAKE) --jobs 3 types imports usual

test-all:  ## What CI runs: make test, then make rest, with coverage
	$(MAKE) test COVER="--cov --cov-report=term:skip-covered"
	$(MAKE) rest

rest: $(DOCS_READY)  ## What make test leaves out: the slow tests and the site
	$(MAKE) --jobs 2 slow docs

fast usual slow: $(READY)
	$(PYTEST) --quiet $(TESTS_$@) $(COVER)

docs: $(DOCS_READY)  ## The documentation site, with its gallery and notebooks: docs/_build/html
	$(ONE_THREAD) $(BIN)/python -m tools.notebooks examples/notebooks docs/notebooks
	$(ONE_THREAD) $(BIN)/python -m sphinx -b html -j auto -W --keep-going --quiet docs $(SITE)
	@echo "$(SITE)/index.html"

SECONDS = 60
SEED = 0
fuzz: $(READY)  ## Hostile inputs, counted: make fuzz SECONDS=600 SEED=7
	$(ONE_THREAD) $(BIN)/python -m tools.fuzz --seconds $(SECONDS) --seed $(SEED)

lint: $(READY)  ## Style and format, without changing anything
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)  ## mypy, strict, on the package
	$(BIN)/mypy

imports: $(READY)  ## Which module may import which
	$(BIN)/lint-imports

bench: $(READY)  ## Measure everything and write docs/benchmarks.md (about an hour)
	$(PIP) --group bench
	$(BIN)/python -m benchmarks

format: $(READY)  ## Rewrite the files in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## Remove the environment and every cache
	rm -rf docs/_build docs/api docs/gallery docs/notebooks
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage

# The stamp is newer than what it was made from, so that a changed list of
# dependencies makes the environment anew and an unchanged one costs nothing.
# Python compiles what is imported; to compile everything first would take as long as the rest.
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	$(PIP) --editable . --group dev
	touch $(READY)

$(DOCS_READY): $(READY)
	$(PIP) --group docs
	touch $(DOCS_READY)
