# make run | test | check | image-test | bench: all that a checkout needs. Python 3.11 or newer and make are enough.
#   TORCH=none   leave torch out: the lessons are served, runs are off

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := run
.PHONY: setup run test check bench image-test clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH ?= lab
EXTRAS := $(if $(filter none,$(TORCH)),,[lab])

setup: $(VENV)/.ready-$(TORCH) static/vendor/.ready

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready-$(TORCH): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.$(EXTRAS)'
	@touch $@

$(VENV)/.ready-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[lab,dev,megatron]'
	@touch $@ $(VENV)/.ready-lab

static/vendor/.ready: app/assets.py | $(VENV)/.ready-$(TORCH)
	$(BIN)/python -m app.assets
	@touch $@

run: setup
	@$(if $(filter none,$(TORCH)),WORLDSIZE_RUNS=off )$(BIN)/worldsize serve

check: $(VENV)/.ready-dev static/vendor/.ready
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vulture
	$(BIN)/djlint --quiet --lint templates
	$(BIN)/hadolint Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec compose.yaml
	$(BIN)/worldsize check

# The SQLite suite; with CI=true everything that touches a database runs on PostgreSQL too.
test: $(VENV)/.ready-dev static/vendor/.ready
	@tests/tools.sh
	$(BIN)/python -m pytest -m "not benchmark$(if $(filter true,$(CI)),, and not postgres)" $(ARGS)

# Builds the image and starts it as it will be started, with buildah and podman: no Docker engine needed.
image-test: | $(VENV)/.ready-$(TORCH)
	@$(BIN)/python -m tests.image

bench: $(VENV)/.ready-dev static/vendor/.ready
	@tests/tools.sh
	$(BIN)/python -m pytest -m benchmark -s -p no:cacheprovider tests/benchmarks $(ARGS)

clean:
	rm -rf $(VENV) static/vendor build ./*.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
