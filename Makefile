# What README promises. Each target sets up .venv by itself.
.PHONY: setup demo demo-hipkittens search-demo test test-all check bench corpus corpus-emulated clean

PY := .venv/bin/python
DEMO := 1 4
KITTENS := 1|17

setup:
	scripts/setup.sh

# From a bare clone to a finished small batch with a report: no GPU, no key, four to five minutes on two cores,
# and HipKittens kernels where hipcc is at hand (scripts/install_hip_toolchain.sh).
demo: setup
	rm -rf results/demo
	$(PY) run_batch.py $(DEMO) --device cpu --run-timeout 10 --busy-wait 5 --replay examples/replies/reflect.toml --results results/demo
	$(PY) generate_report.py results/demo
	$(if $(KITTENS),@$(MAKE) --no-print-directory demo-hipkittens)

# Its second half: HipKittens kernels on an emulated gfx942, one to two minutes on two cores. Exit code 69 of a batch:
# the HIP compiler or the headers are not there, and the message above says how to get them.
demo-hipkittens: setup
	rm -rf results/demo_hipkittens
	@set -x; $(PY) run_batch.py 1 40 --match '^($(KITTENS))_' --device emulated:gfx942 --backend hipkittens \
	    --replay examples/replies/hipkittens.toml --results results/demo_hipkittens \
	    && $(PY) generate_report.py results/demo_hipkittens || { code=$$?; [ $$code -eq 69 ] || exit $$code; }
	@[ -d results/demo_hipkittens ] || echo "make demo: HipKittens kernels were not shown; with what is missing," \
	    "make demo-hipkittens shows them"

# A C++ kernel made faster by a search without a model: no GPU, no key, three to five minutes on two cores.
search-demo: setup
	rm -rf results/search_demo
	.venv/bin/hkbench optimize --input kernels/column_sum_cpp.json --no-llm --device cpu --budget-builds 20 --shapes 0 --busy-wait 0 \
	    --outdir results/search_demo
	cat results/search_demo/run/1_column_sum_cpp/trace.md

# What guards behaviour and is quick; PYTEST_ARGS="tests/unit/lab" for some of the tests, slow ones too.
test:
	scripts/setup.sh dev
ifdef PYTEST_ARGS
	$(PY) -m pytest $(PYTEST_ARGS)
else
	scripts/run_tests.sh 'not slow' -q
endif

# Every test, with every attack and every honest candidate, and each Triton one compiled. What is missing is skipped.
test-all: export HKBENCH_CORPUS := 1
test-all:
	scripts/setup.sh dev
	scripts/run_tests.sh 'slow or not slow' -q --durations=15

check:
	scripts/setup.sh dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports

# Every benchmark that this machine can run, half an hour on two cores; BENCH="--only NAME..." for some of them.
bench: setup
	$(PY) benchmarks/bench.py $(BENCH)

# Every attack and every honest candidate on the CPU: ten to fifteen minutes on two cores.
corpus:
	scripts/setup.sh dev
	$(PY) scripts/corpus.py --device cpu

# All candidates that are judged on an emulated GPU, and its corpus on both: two hours on two cores.
corpus-emulated: export HKBENCH_EMULATED := 1
corpus-emulated:
	scripts/setup.sh dev
	$(PY) -m pytest -q --durations=15 tests/integration/test_emulated_known_answers.py tests/integration/test_emulated_corpus.py

clean:
	rm -rf .venv results/demo results/demo_hipkittens
