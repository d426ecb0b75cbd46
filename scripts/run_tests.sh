#!/usr/bin/env bash
# Usage: run_tests.sh MARKS [PYTEST_OPTION...]. Runs the tests that MARKS select, in three parts, of which none keeps
# another from running. The first runs a file at a time in each of three processes, for two cores: a test often waits.
# The long files come first. What times, freezes or confines processes (marked alone, and the sandbox's) has the machine
# for itself, and all its cores: beside others, OpenMP has one thread, since two that wait for each other spin on cores
# which a neighbour needs.
# Integration tests judge real candidates by the clock, which other tests disturb: those that fail in the first part run
# once more with the machine for themselves, and that counts. A unit test has no such excuse.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
marks=$1
shift
failed=0
failures=.pytest_cache/v/cache/lastfailed

run() {
    (set -x && exec .venv/bin/python -m pytest "$@")
}
first_part() {
    OMP_NUM_THREADS=1 run "$@" -n 3 --dist loadfile --no-loadscope-reorder --cache-clear --ignore=tests/unit/sandbox \
        -m "($marks) and not alone" tests/integration tests/unit
    local ended=$?
    [ "$ended" -eq 1 ] || return "$ended"
    if grep -qv -e '^[{}]$' -e '"tests/integration/' "$failures"; then return 1; fi
    echo "tests: these failed beside others, and run once more alone:"
    grep '"tests/' "$failures"
    run "$@" --last-failed --last-failed-no-failures none -m "$marks" tests/integration
}

first_part "$@" || failed=1
run "$@" -m "$marks" tests/unit/sandbox tests/gpu || failed=1
run "$@" -m "($marks) and alone" tests/integration || failed=1
exit "$failed"
