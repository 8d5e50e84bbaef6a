# Every target sets up its own virtual environment; nothing but Python and make is needed.
PYTHON ?= python3
VENV := .venv
OLDEST := .venv-oldest
BIN := $(VENV)/bin
# One BLAS thread per process: two cores, and two test workers.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
# A worker that is done takes tests from the other: the last long ones do not stand in one queue.
WORKERS := -n 2 --dist worksteal
PYTEST := $(BIN)/python -m pytest $(WORKERS)

.PHONY: reproduce docs test test-quick test-slow test-elsewhere test-gpu test-oldest lint bench clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

$(VENV)/.reproduce: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[all]'
	touch $@

# The paper's six panels and ten slopes; interrupted, the same command goes on where it was.
reproduce: $(VENV)/.reproduce
	$(BIN)/seqlaw reproduce --out results/paper

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

# The site, with its notebooks executed, to be opened from the folder: build/site/index.html. A warning is an error.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx --fail-on-warning --quiet --doctree-dir build/doctrees docs build/site

test: $(VENV)/.ready
	$(PYTEST) -m 'not slow'

# The setting, schedules and sketch: seconds, once the environment is there.
test-quick: $(VENV)/.ready
	$(BIN)/python -m pytest tests/model

# The site is one of the slow tests.
test-slow: $(VENV)/.ready $(VENV)/.docs
	$(PYTEST) -m slow

# The rooms with processes, threads and files, without what macOS and Windows lack (tests/elsewhere); no Mac was tried.
test-elsewhere: $(VENV)/.ready
	PYTHONPATH=$(CURDIR)/tests/elsewhere $(PYTEST) -m 'not slow' $(addprefix tests/,cli contract lab model paper web)

# The code of a card on torch's own CPU; with an NVIDIA card, on the card. One version, lest it be gigabytes by surprise.
$(VENV)/.gpu: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet torch==2.13.0 'array-api-compat>=1.9'
	touch $@

test-gpu: $(VENV)/.gpu
	$(BIN)/python -m pytest tests/methods/test_gpu.py tests/answers/test_ladder_export.py tests/methods/test_trained.py

$(OLDEST)/.ready: pyproject.toml tests/oldest.py
	$(PYTHON) -m venv $(OLDEST)
	$(PYTHON) tests/oldest.py > $(OLDEST)/pins.txt
	$(OLDEST)/bin/python -m pip install --quiet --constraint $(OLDEST)/pins.txt --editable '.[dev]'
	touch $@

# The fast suite with the oldest versions that pyproject.toml allows; not part of .ci/run, for its time.
test-oldest: $(OLDEST)/.ready
	$(OLDEST)/bin/python -m pytest $(WORKERS) -m 'not slow'

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.ready
	for script in benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

# The virtual environments, the site and the tools' caches; results/ stays.
clean:
	rm -rf $(VENV) $(OLDEST) build .pytest_cache .mypy_cache .ruff_cache .hypothesis
