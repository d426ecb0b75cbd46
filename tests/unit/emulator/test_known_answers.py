"""The shipped HipKittens kernels, executed from their machine code and compared with NumPy in float64.

They run as they were launched on a GPU: with the checker, and with late delivery in a drawn order.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compilers import hip_or_skip
from support.emulated import device_code, kernel_source, run
from support.emulated_cases import PROBLEMS, case, is_right, source_file
from support.kittens import kittens_or_skip

from hkbench.emulator.executor import Options
from hkbench.emulator.program import Program
from hkbench.toolchain.hipkittens import WITH_CARD, Dialect


@pytest.mark.hipcc
@pytest.mark.slow
@pytest.mark.parametrize("dialect", WITH_CARD)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_it_is_right_and_clean(problem: str, dialect: Dialect, tmp_path: Path) -> None:
    hip_or_skip(f"{problem} was not executed")
    include = kittens_or_skip(dialect, f"{problem} was not executed") / "include"
    source = kernel_source(source_file(problem, dialect))
    program = Program.load(device_code(source, dialect.arch, tmp_path, include))
    for options in (Options(), Options(late=True, seed=3), Options(check=False)):
        grid, lds, arguments, arrays, results = case(problem, dialect)
        outcome = run(program, grid, 256, arguments, arrays, lds=lds, options=options)
        assert outcome.refusal is None
        assert [str(fault) for fault in outcome.faults] == []
        assert sum(size for _, size in outcome.written) == sum(result.nbytes for result, _ in results)
        for result, expected in results:
            assert is_right(result, expected)
