"""Whose code samples of instruction pointers show at work on a CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from hkbench.profile.names import BuildFolder, Built
from hkbench.profile.ownership import HIDDEN, MIN_SAMPLES, cpu_work, judgement, object_owner, ownership
from hkbench.profile.sampled_code import COPIES, GENERATORS
from hkbench.records import Owner, Ownership, Track

PRIVATE = "/tmp/run/private"
EXTENSION = f"{PRIVATE}/build/ext.so"
TORCH = "/venv/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so"
PYTHON, LIBM, GOMP = (
    "/usr/bin/python3.11",
    "/usr/lib/x86_64-linux-gnu/libm.so.6",
    "/venv/torch/lib/libgomp-a34b3233.so.1",
)
BLAS = "/venv/lib/python3.11/site-packages/numpy.libs/libscipy_openblas64_-ff.so"


@pytest.mark.parametrize(
    ("objects", "aten", "passes"),
    [
        ({EXTENSION: 300, PYTHON: 30}, 0.0, True),
        ({EXTENSION: 40, LIBM: 300, GOMP: 500, PYTHON: 200}, 0.0, True),
        ({EXTENSION: 100, COPIES: 75, TORCH: 5}, 0.05, True),  # PyTorch made zeros and copies
        ({EXTENSION: 30, TORCH: 300}, 0.0, False),  # what a forged trace calls copies
        ({"": 100, PYTHON: 30}, 0.0, False),  # generated code, whose author is not known
        ({EXTENSION: 300, "[heap]": 2, PYTHON: 30}, 0.0, True),
        ({PYTHON: 100}, 0.0, True),  # a view
        ({PYTHON: 100, COPIES: 20}, 0.0, True),  # a view, and a small copy
        ({"": 100, TORCH: 30}, 0.9, False),  # oneDNN generates code too
        ({"": 300, GENERATORS: 2}, 0.0, False),  # the same where a forged trace has no operators that compute
        ({TORCH: 300, EXTENSION: 20}, 0.9, False),
        ({TORCH: 300, EXTENSION: 20}, 0.0, False),  # at::native called past the dispatcher
        ({BLAS: 300, PYTHON: 20}, 0.0, False),
        ({EXTENSION: 20, PYTHON: 100}, 0.8, False),  # few samples of the extension, the dispatcher saw the rest
        ({COPIES: 200, PYTHON: 100}, 0.0, False),  # a copy by PyTorch, and nothing else
        ({COPIES: 60, GOMP: 200, PYTHON: 10}, 0.0, False),  # the same, whose threads wait for one another
        ({}, 0.02, True),
        ({}, 0.5, False),
    ],
)
def test_the_judgement_of_samples_on_a_cpu(objects: dict[str, int], aten: float, passes: bool) -> None:
    work = cpu_work(objects, aten, PRIVATE)
    assert sum((work.own, work.pytorch, work.library, work.other)) == pytest.approx(1.0)
    reason = judgement(work, Track.OWN)
    assert (reason is None) is passes, (work, reason)


def test_a_library_copied_into_the_folder_stays_a_library(tmp_path: Path) -> None:
    path = tmp_path / "mine.so"
    path.write_bytes(b"\x7fELF\0OpenBLAS 0.3.28 DYNAMIC_ARCH\0")
    built = BuildFolder(str(tmp_path)).read()
    work = cpu_work({str(path): MIN_SAMPLES}, 0.0, str(tmp_path), built)
    assert work.library == 1.0


TICKS: list[tuple[dict[frozenset[str], float], tuple[float, float], bool]] = [
    ({frozenset({EXTENSION}): 300.0}, (1e-3, 1e-3), True),
    ({frozenset({EXTENSION}): 300.0, frozenset({TORCH}): 3.0}, (1e-3, 1e-3), True),  # within the share
    # A library's product and an own loop 1.3 times as long, beside a baseline that is 27 times as slow.
    ({frozenset({EXTENSION}): 170.0, frozenset({TORCH}): 130.0}, (1e-3, 2.7e-2), False),
    # A library's product, and nine times as long in the interpreter: there is no own work.
    ({frozenset({PYTHON}): 270.0, frozenset({TORCH}): 30.0}, (1e-3, 2.7e-2), False),
    # A library's product beside a hundred spinning threads: every look finds the library.
    ({frozenset({EXTENSION, BLAS}): 300.0}, (1e-3, 1e-3), False),
    ({frozenset({EXTENSION}): 100.0, frozenset({HIDDEN}): 200.0}, (1e-3, 1e-3), False),
    # PyTorch casts the inputs for a third of the time.
    ({frozenset({EXTENSION}): 200.0, frozenset({COPIES, GOMP}): 100.0}, (1e-3, 1e-3), True),
    ({frozenset({COPIES}): 295.0, frozenset({EXTENSION}): 5.0}, (1e-3, 1e-3), False),
    # A call of microseconds, half of which PyTorch takes to allocate the output.
    ({frozenset({EXTENSION}): 60.0, frozenset({TORCH}): 60.0}, (1e-5, 1e-5), True),
]


@pytest.mark.parametrize(("ticks", "seconds", "passes"), TICKS)
def test_what_others_may_take_is_a_share_of_the_faster_side(
    ticks: dict[frozenset[str], float], seconds: tuple[float, float], passes: bool
) -> None:
    objects: dict[str, float] = {}
    for seen, count in ticks.items():
        for path in seen:
            objects[path] = objects.get(path, 0.0) + count * (100 if path == EXTENSION and len(seen) > 1 else 1)
    work = cpu_work(objects, 0.0, PRIVATE, ticks=ticks, seconds=seconds)
    assert (judgement(work, Track.OWN) is None) is passes, work
    assert judgement(work, Track.ANY) is None
    assert ownership(work) is (Ownership.OWN if passes else Ownership.NOT_OWN)


def test_ownership_is_not_established_by_few_samples() -> None:
    assert ownership(cpu_work({}, 0.0, PRIVATE, seconds=(1e-5, 1e-5))) is Ownership.NOT_ESTABLISHED
    assert ownership(cpu_work({}, 0.9, PRIVATE, seconds=(1e-3, 1e-3))) is Ownership.NOT_OWN
    assert ownership(None) is Ownership.NOT_ESTABLISHED


def test_waiting_threads_do_not_contradict_the_dispatcher() -> None:
    ticks = {frozenset({GOMP}): 900.0, frozenset({TORCH, GOMP}): 10.0, frozenset({PYTHON}): 30.0}
    seen = {GOMP: 910.0, TORCH: 10.0, PYTHON: 30.0}
    work = cpu_work(seen, 0.9, PRIVATE, ticks=ticks, seconds=(1e-3, 1e-3))
    assert ownership(work) is Ownership.NOT_OWN
    ticks[frozenset({PYTHON})] = 300.0
    assert cpu_work(seen, 0.9, PRIVATE, ticks=ticks, seconds=(1e-3, 1e-3)).pytorch < 0.1, "it lost its processor"


def test_waiting_threads_alone_establish_nothing() -> None:
    """On a busy machine a library's own call showed one look at its arithmetic among a hundred at spinning threads."""
    seen = {"/venv/torch/lib/libgomp-a34b3233.so.1": 103.0, TORCH: 1.0}
    ticks = {frozenset({path}): count for path, count in seen.items()}
    work = cpu_work(seen, 0.0, PRIVATE, ticks=ticks, seconds=(6e-2, 7e-2))
    assert ownership(work) is Ownership.NOT_ESTABLISHED
    few = cpu_work(seen | {TORCH: 6.0, EXTENSION: 4.0}, 0.0, PRIVATE, ticks=ticks, seconds=(6e-2, 7e-2))
    assert ownership(few) is Ownership.NOT_ESTABLISHED, "an honest kernel beside other work, which fills its output"
    more = cpu_work(seen | {TORCH: 20.0}, 0.0, PRIVATE, ticks=ticks, seconds=(6e-2, 7e-2))
    assert ownership(more) is Ownership.NOT_OWN
    own = cpu_work(seen | {EXTENSION: 20.0}, 0.0, PRIVATE, ticks=ticks, seconds=(6e-2, 7e-2))
    assert ownership(own) is Ownership.OWN


@pytest.mark.parametrize("folder", ["/dev/shm", "/tmp", "/var/tmp"])
def test_what_lies_where_only_the_candidate_sees_it_is_its_own(folder: str) -> None:
    assert object_owner(f"{folder}/tmpcqhidkq3/libsums.so", PRIVATE, Built()) is Owner.CANDIDATE


def test_what_lies_there_for_everybody_is_a_library(tmp_path: Path) -> None:
    installed = tmp_path / "libsums.so"
    installed.touch()
    assert object_owner(str(installed), PRIVATE, Built()) is Owner.LIBRARY
