"""The HipKittens examples of the prompts, executed from their machine code and compared with NumPy in float64."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from support.compilers import hip_or_skip
from support.emulated import Array, Floats, device_code, from_bf16, run
from support.emulated_examples import EXAMPLES, FAMILIES, example_case, example_name, example_source
from support.kittens import kittens_or_skip

from hkbench.analysis.tolerances import RTOL_BY_NAME
from hkbench.emulator.executor import Options
from hkbench.emulator.program import Program
from hkbench.toolchain.hipkittens import Dialect

EVERY_TIME = {"attention_cdna3", "rows_cdna4"}


def _error(result: Array, expected: Floats) -> float:
    """Return the worst error in units of the tolerance that the evaluator has for the element type."""
    tolerance = RTOL_BY_NAME["bfloat16" if result.dtype == np.uint16 else "float32"]
    values = from_bf16(result) if result.dtype == np.uint16 else result.astype(np.float64)
    return float(np.max(abs(values - expected) / (tolerance * (abs(expected) + np.sqrt((expected**2).mean())))))


def test_there_is_a_case_for_each_example() -> None:
    assert {example_name(prompt)[:-6] for prompt in EXAMPLES} == FAMILIES


@pytest.mark.hipcc
@pytest.mark.parametrize("prompt", EXAMPLES, ids=example_name)
def test_an_example_is_right_and_clean(prompt: Path, tmp_path: Path) -> None:
    name = example_name(prompt)
    if name not in EVERY_TIME and not os.environ.get("HKBENCH_CORPUS"):
        pytest.skip("only with HKBENCH_CORPUS=1: some seconds each")
    hip_or_skip(f"{name} was not executed")
    dialect = Dialect(name[-5:])
    include = kittens_or_skip(dialect, f"{name} was not executed") / "include"
    program = Program.load(device_code(example_source(prompt), dialect.arch, tmp_path, include))
    for options in (Options(), Options(late=True, seed=3)):
        grid, threads, lds, arguments, arrays, result, expected = example_case(prompt)
        outcome = run(program, grid, threads, arguments, arrays, lds=lds, options=options)
        assert outcome.refusal is None
        assert [str(fault) for fault in outcome.faults] == []
        assert sum(size for _, size in outcome.written) == result.nbytes
        assert _error(result, expected) < 0.5
