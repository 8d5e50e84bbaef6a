# Every target sets up its own virtual environment; nothing but Python and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One BLAS thread per process: two cores, and two test workers.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1

.PHONY: test test-slow lint bench clean

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

test: $(VENV)/.ready
	$(BIN)/python -m pytest -n 2 -m 'not slow'

test-slow: $(VENV)/.ready
	$(BIN)/python -m pytest -n 2 -m slow

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.ready
	for script in benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
