"""The corpus on an emulated GPU: a sample of it, and all of it where the whole corpus is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import corpus
from support.compilers import hip_or_skip

from hkbench.records import FailureKind, Status

pytestmark = [pytest.mark.hipcc, pytest.mark.triton, pytest.mark.alone]
CASES = corpus.load_cases()
#: Of each way to fool this device one, and what is honest beside it; Triton compiles in a second, hipcc in twenty.
SAMPLE = (
    "m01_copy_of_torchs_answer", "m02_answer_in_cipher", "m03_answer_as_an_argument", "m03_answer_over_the_input",
    "m04_answer_over_the_output", "m06_wild_read_of_the_host", "m08_range_over_another", "m09_notes_without_end",
    "m10_memory_of_the_host", "p01_torch_for_everything", "emulated_input_laid_out_anew",
    "emulated_operator_between_kernels", "emulated_sum_by_atomics",
)  # fmt: skip


def _say(row: corpus.Row) -> str:
    return f"{row.case}: {row.word}: expected {row.expected}, got {row.status} {row.kind}: {row.message[:400]}"


@pytest.mark.slow
async def test_a_sample_of_the_corpus_is_as_expected() -> None:
    hip_or_skip("no attack on an emulated GPU was judged")
    pytest.importorskip("triton")
    cases = [case for case in CASES if case.name in SAMPLE]
    assert len(cases) == len(SAMPLE)
    rows = await corpus.run(cases, "emulated:gfx942", jobs=len(os.sched_getaffinity(0)), again=True)
    assert not [_say(row) for row in rows if not row.passed]


@pytest.mark.slow
@pytest.mark.skipif("HKBENCH_EMULATED" not in os.environ, reason="the whole corpus is run by `make corpus-emulated`")
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_all_of_the_corpus_is_as_expected(arch: str, tmp_path: Path) -> None:
    hip_or_skip("no attack on an emulated GPU was judged")
    pytest.importorskip("triton")
    table = tmp_path / "table.md"
    command = [sys.executable, str(corpus.ROOT / "scripts" / "corpus.py"), "--device", f"emulated:{arch}"]
    command += ["--again", "--jobs", str(len(os.sched_getaffinity(0))), "--markdown", str(table)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    assert all(f"| {case.name} |" in table.read_text() for case in CASES if case.runs_on(f"emulated:{arch}"))


def test_the_rule_says_which_cases_run_there_and_what_is_expected() -> None:
    by_name = {case.name: case for case in CASES}
    here = {name for name, case in by_name.items() if case.runs_on("emulated:gfx942")}
    assert {"m01_copy_of_torchs_answer", "p01_torch_for_everything", "s15_tf32_flag", "triton_row_sum"} <= here
    assert not here & {"cuda_welford", "n11_endless_kernel", "cpu_welford"}  # need nvcc, or a CPU's compiler
    assert not any(case.runs_on("cpu") or case.runs_on("cuda") for case in CASES if case.device == "emulated")
    harmless = {name for name in here if Status.EMULATED.value in (by_name[name].emulated or ())}
    for name in here:
        there = by_name[name].on("emulated:gfx942")
        assert there.backend != "cuda"
        assert there.honest == by_name[name].honest
        if there.honest:
            assert there.outcome == {Status.EMULATED.value}
        elif there.group != corpus.CLASSES["T"] and name not in harmless:
            assert Status.EMULATED.value not in there.outcome | there.instead
        if there.device != "emulated" and not there.honest:
            assert FailureKind.NOT_OWN.value in there.outcome | there.instead
