# What README promises. Each target sets up .venv by itself.
.PHONY: setup demo test check bench corpus clean

PY := .venv/bin/python
DEMO := 1 8

setup:
	scripts/setup.sh

# From a bare clone to a finished small batch with a report: no GPU, no key, four to six minutes on two cores.
demo: setup
	rm -rf results/demo
	$(PY) run_batch.py $(DEMO) --device cpu --run-timeout 10 --replay examples/replies --results results/demo
	$(PY) generate_report.py results/demo

test:
	scripts/setup.sh dev
	$(PY) -m pytest $(PYTEST_ARGS)

check:
	scripts/setup.sh dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports

# Every benchmark that this machine can run, half an hour on two cores; BENCH="--only NAME..." for some of them.
bench: setup
	$(PY) benchmarks/bench.py $(BENCH)

# Every attack and every honest candidate on the CPU: about five minutes on two cores.
corpus:
	scripts/setup.sh dev
	$(PY) scripts/corpus.py --device cpu

clean:
	rm -rf .venv results/demo
