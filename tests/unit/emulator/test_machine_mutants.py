"""A sample of what scripts/emulator_mutants.py does: machine code of the shipped kernels without one wait or barrier.

Late delivery is the second way to see such a fault: what it shows wrong has to be reported, and what is reported has
to be wrong there, or to have a reason.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.compilers import hip_or_skip
from support.emulated import assembled, device_code, kernel_source
from support.emulated_cases import case, source_file
from support.kittens import kittens_or_skip
from support.machine_mutants import (
    Execute,
    Launch,
    Mutant,
    execute,
    harmless,
    judge,
    miscompiled,
    put_in,
    waits_and_barriers,
)
from support.recorded_launches import ROOT, Replay, recorded

from hkbench.audit.shrink import shrunk
from hkbench.emulator.program import Program
from hkbench.problems import chosen_problems
from hkbench.problems.select import SHIPPED
from hkbench.toolchain.hipkittens import WITH_CARD, Dialect

pytestmark = pytest.mark.hipcc
SAMPLED = 10  #: mutants of a kernel
SEED = 25


def _program(problem: str, dialect: Dialect, folder: Path) -> Program:
    hip_or_skip("no mutant was executed")
    include = kittens_or_skip(dialect, "no mutant was executed") / "include"
    return Program.load(device_code(kernel_source(source_file(problem, dialect)), dialect.arch, folder, include))


def _executed(problem: str, dialect: Dialect) -> Execute:
    def made() -> Launch:
        grid, lds, arguments, arrays, results = case(problem, dialect, 1)
        return Launch(grid, 256, lds, arguments, arrays, [result for result, _ in results])

    return partial(execute, made)


def _sample(found: list[Mutant]) -> list[Mutant]:
    drawn = np.random.default_rng(SEED).permutation(len(found))[:SAMPLED]
    return [found[n] for n in drawn]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "dialect"), [("4_RMSNorm_fp32", Dialect.CDNA3), ("19_Matmul_NT_ragged_bf16", Dialect.CDNA4)]
)
def test_a_missing_wait_is_reported(problem: str, dialect: Dialect, tmp_path: Path) -> None:
    program = _program(problem, dialect, tmp_path)
    seen = judge(program, _executed(problem, dialect), _sample(waits_and_barriers(program)))
    assert [one for one in seen if one.late_wrong and not one.reported] == []
    assert [one for one in seen if harmless(one) == "unexplained"] == []
    assert any(one.reported and not one.plain_wrong for one in seen)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", WITH_CARD)
def test_a_product_that_was_compiled_wrongly_has_wrong_values(dialect: Dialect, tmp_path: Path) -> None:
    program = _program("17_Matmul_square_bf16", dialect, tmp_path)
    mutants = _sample(miscompiled(program))
    seen = judge(program, _executed("17_Matmul_square_bf16", dialect), mutants)
    assert len({mutant.rule for mutant in mutants}) >= 3
    assert [one.mutant for one in seen if not one.plain_wrong] == []


@pytest.mark.slow
def test_a_missing_wait_of_a_whole_candidate_is_reported() -> None:
    hip_or_skip("no candidate was built")
    (problem,) = chosen_problems(SHIPPED, {}, numbers=[(9, 9)]).problems
    answer = (ROOT / "examples" / "hip" / f"{problem.name}.py").read_text(encoding="utf-8")
    (launch,) = recorded(shrunk(problem)[0], answer, "gfx942")
    program = Program.load(launch.code)
    with Replay(launch) as replay:
        seen = judge(program, replay.execute, _sample(waits_and_barriers(program)))
    assert [one for one in seen if one.late_wrong and not one.reported] == []
    assert [one for one in seen if harmless(one)] == []
    assert any(one.reported and not one.plain_wrong for one in seen)


def test_a_mutant_is_taken_out_again(tmp_path: Path) -> None:
    hip_or_skip("no mutant was executed")
    text = "s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\nv_lshlrev_b32 v0, 2, v0\n"
    text += "global_load_dword v1, v0, s[4:5]\ns_waitcnt vmcnt(0)\nglobal_store_dword v0, v1, s[4:5] offset:256\n"
    program = assembled(text, tmp_path)
    before = bytes(program.records)

    def launch() -> Launch:
        data = np.arange(128, dtype=np.uint32)
        return Launch((1,), 64, 0, data.ctypes.data.to_bytes(8, "little"), [data], [data])

    mutants = waits_and_barriers(program)
    assert [mutant.text for mutant in mutants] == ["s_nop 0", "s_waitcnt lgkmcnt(1)", "s_nop 0", "s_waitcnt vmcnt(1)"]
    seen = judge(program, partial(execute, launch), mutants)
    assert all(one.reported and one.late_wrong and not one.plain_wrong for one in seen)
    assert bytes(program.records) == before
    with put_in(program, mutants[0]):
        assert bytes(program.records) != before
