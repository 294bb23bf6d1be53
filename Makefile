# Every target makes what it needs; `make demo` and `make test` are all a newcomer has to know.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test slow mutants smoke newer lint types docs docs-serve pictures format clean

demo: $(VENV)/.run  ## install, then pre-train, evaluate and report on simulated ECGs
	$(BIN)/clocs run --plugin cmsc --dataset demo --epochs 12 --learning-rate 0.003

# A process per core; more threads in each of them would only get in each other's way.
test: $(VENV)/.test  ## the test suite without the tests that take minutes
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal

slow: $(VENV)/.test  ## the tests that take minutes
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow --numprocesses auto --dist worksteal

mutants: $(VENV)/.test  ## put known faults into the source, one at a time: the tests must notice each
	$(BIN)/python benchmarks/mutants.py

smoke: $(VENV)/.run  ## every table and figure of the paper in miniature, on simulated ECGs
	$(BIN)/python benchmarks/run_all.py --smoke --runs-per-job 4

# Everything that works without torch, whose build for another Python may be gigabytes: settings, plans, plugins, readers.
NEWER_TESTS := tests/core/settings tests/core/plugins tests/core/data/test_framing.py tests/core/data/test_splits.py \
	tests/core/data/test_wfdb.py tests/core/data/test_wfdb_header.py tests/core/data/test_archives.py \
	tests/core/data/test_download.py tests/core/data/test_transfer.py \
	tests/core/data/test_signal_file.py tests/core/cli/test_flags.py tests/core/cli/test_wording.py \
	tests/plugins/arrays/test_arrays_forms.py tests/plugins/arrays/test_arrays_tables.py \
	tests/plugins/chapman tests/plugins/cardiology tests/plugins/physionet2017 tests/plugins/physionet2020
NEWER_NEEDS := attrs cattrs click defusedxml edfio filelock h5py hypothesis jinja2 lazy-loader loky numpy openpyxl pandas platformdirs pluggy \
	pyarrow pydicom pytest pytest-timeout pytest-xdist requests rich safetensors scipy tomli-w urllib3 wfdb hatchling editables

newer: $(VENV)/bin/python  ## a part of the tests with another interpreter: make newer PYTHON=python3.13 VENV=.venv313
	$(PIP) $(NEWER_NEEDS)
	$(PIP) --no-deps --no-build-isolation --editable .
	$(BIN)/python -m pytest --numprocesses auto -p no:cacheprovider $(NEWER_TESTS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

# The site's builder announces its successor on every build; the version is held in pyproject.toml.
docs docs-serve: export NO_MKDOCS_2_WARNING = 1

docs: $(VENV)/.docs  ## the documentation as a site, in build/site; a link that leads nowhere is an error
	$(BIN)/mkdocs build --strict

docs-serve: $(VENV)/.docs  ## the same at http://127.0.0.1:8000, built anew whenever a page is saved
	$(BIN)/mkdocs serve --strict --watch clocs_core

pictures: $(VENV)/.test  ## draw the pictures of docs/ anew
	$(BIN)/python docs/pictures/make_demo_ecg.py
	$(BIN)/python docs/pictures/make_perturbations.py
	$(BIN)/python docs/pictures/make_results.py
	$(BIN)/python docs/pictures/make_reports.py

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# Stamps: a changed pyproject.toml or constraints.txt installs again.
$(VENV)/.run: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing clocs and what it needs, torch included, into $(VENV): a few minutes the first time."
	$(PIP) --editable .
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing clocs and what its tests need into $(VENV): a few minutes the first time."
	$(PIP) --editable '.[test]'
	touch $@ $(VENV)/.run

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[docs]'
	touch $@ $(VENV)/.run

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[dev]'
	touch $@ $(VENV)/.test $(VENV)/.run
