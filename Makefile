# `make demo` and `make test` set up what they need: a virtual environment in .venv, with the versions of constraints.txt.
PYTHON ?= python3
WORKERS ?= 2
MINUTES ?= 60
KILLS ?= 1000000
INPUTS ?= 1000000
READY := .venv/.ready

.PHONY: help demo test test-fast test-slow faults fuzz lint benchmark clean

help:
	@echo "make demo       train agents in a small T-Maze and write the report: minutes"
	@echo "make test       lint, types and all tests but the slow ones"
	@echo "make test-slow  the slow tests"
	@echo "make faults     an hour of faults against small studies (MINUTES=60, or KILLS=1000)"
	@echo "make fuzz       a million odd inputs for all readers (INPUTS=1000000)"
	@echo "make benchmark  how fast episodes and beliefs are computed here (training: see benchmarks/training.py)"
	@echo "make .venv      the virtual environment alone, with beliefscope and what its tests need"
	@echo "make clean      remove .venv"

demo: $(READY)
	.venv/bin/beliefscope run demo --out runs/demo
	.venv/bin/beliefscope report runs/demo

# Types are checked while the tests run.
test: $(READY)
	$(MAKE) --no-print-directory -j2 lint test-fast

test-fast: $(READY)
	.venv/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow"

# Those with a cluster come last, by themselves: it has processes enough for two cores.
test-slow: $(READY)
	.venv/bin/python -m pytest -n $(WORKERS) --dist worksteal -m slow --ignore tests/study/test_ray.py
	.venv/bin/python -m pytest tests/study/test_ray.py

faults: $(READY)
	.venv/bin/python tests/study/fault_suite.py --minutes $(MINUTES) --faults $(KILLS)

fuzz: $(READY)
	.venv/bin/python tests/fuzz/run.py --inputs $(INPUTS)

lint: $(READY)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/pyright

benchmark: $(READY)
	.venv/bin/python benchmarks/pomdp.py

clean:
	rm -rf .venv

.venv: $(READY)

# The marker is written last, so that an interrupted installation is taken up again.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "beliefscope needs Python 3.11 or newer: make PYTHON=python3.11")'
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $(READY)
