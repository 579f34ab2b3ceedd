# The commands: `make demo` (learn 5x5 Go from scratch, see the report), `make test` (lint, types, all but the long and the slow tests), and `make test-all` for the night (docs/testing.md).
PYTHON ?= python3
VENV ?= .venv
PYTHONS ?= python3.11 python3.12 python3.13
CONSTRAINTS ?= constraints.txt
BIN = $(VENV)/bin
DEMO_DIR ?= runs/demo
# Processes of the tests: three for two cores, because tests that wait for other programs leave cores idle. Each takes up to 6 GB.
WORKERS ?= 3
# The tests of `make test`. CI runs the long ones too: `make test MARKS='not slow'`.
MARKS ?= not slow and not long
# Large pages for large arrays: page faults cost a third of a training step on a CPU (glibc 2.35 and later; others ignore it).
export GLIBC_TUNABLES ?= glibc.malloc.hugetlb=1
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.jax_cache

.PHONY: demo test test-all nightly lowest clients lint format notebooks site wheel install clean

demo: $(VENV)/.installed
	$(BIN)/azero demo --workdir $(DEMO_DIR)

# mypy runs beside the tests, whose processes leave cores idle. Bytecode is kept even if the shell
# says otherwise, because the tests start azero a hundred times.
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy & types=$$!; $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m '$(MARKS)'; tests=$$?; wait $$types && exit $$tests

# `make nightly` on each of PYTHONS, each with its own virtual environment, and with the lowest versions.
test-all:
	@failed=; for python in $(PYTHONS); do \
	  echo "== $$python"; $(MAKE) --no-print-directory nightly PYTHON=$$python VENV=$(VENV)-$$python || failed="$$failed $$python"; \
	done; $(MAKE) --no-print-directory lowest || failed="$$failed lowest"; [ -z "$$failed" ] || { echo "make test-all failed on:$$failed"; exit 1; }

# Every test, the slow ones too, with XLA's default flags, as users run it, and another seed every day.
nightly: export AZERO_NIGHTLY = 1
nightly: export AZERO_TEST_SEED ?= $(shell date +%Y%m%d)
nightly: export AZERO_TEST_KILLS ?= 20
nightly: export HYPOTHESIS_PROFILE ?= nightly
nightly: export XLA_FLAGS ?=
nightly: export AZERO_KATRAIN_PYTHON ?= $(CURDIR)/.katrain/bin/python
nightly: export AZERO_SABAKI_MODULES ?= $(CURDIR)/.sabaki/node_modules
nightly: $(VENV)/.installed-test
	-$(MAKE) --no-print-directory clients
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder -m ''

# `make nightly` with the lowest version that pyproject.toml allows of each dependency: a Colab may have an older JAX.
lowest: .lowest.txt
	$(MAKE) --no-print-directory nightly VENV=$(VENV)-lowest CONSTRAINTS=$<

.lowest.txt: pyproject.toml
	$(PYTHON) -c 'import re, tomllib; print(*(re.sub(">=([^,]*).*", r"==\1", line) for line in tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]), sep="\n")' > $@

# The programs of others that tests/clients uses, each in its own directory.
clients: .katrain/.installed .sabaki/.installed

.katrain/.installed: tests/clients/requirements-katrain.txt
	$(PYTHON) -m venv .katrain
	.katrain/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

.sabaki/.installed:
	npm install --silent --prefix .sabaki @sabaki/gtp@3.0.0
	@touch $@

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.installed-test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

notebooks: $(VENV)/.installed-test
	$(BIN)/python colab/generate.py

# The site, in site/: a dead link or a page that the navigation lacks is an error.
site: $(VENV)/.python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# What is published: the package with its networks and overlays, in dist/.
wheel: $(VENV)/.python
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/*.whl

install: $(VENV)/.installed

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(not ((3, 11) <= sys.version_info[:2] <= (3, 13)))' || { echo "azero needs Python 3.11 to 3.13; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.python pyproject.toml $(CONSTRAINTS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) --editable .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.python pyproject.toml $(CONSTRAINTS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) --editable '.[test]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) $(addprefix $(VENV)-,$(PYTHONS) lowest) .lowest.txt .katrain .sabaki .jax_cache runs site
