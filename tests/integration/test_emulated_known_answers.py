"""Candidates that nobody wrote for an emulated GPU are judged on one: shipped HipKittens answers, honest Triton files.

The other HipKittens answers are written for wider rows than the CPU sizes of their problems have.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support import doors
from support.compilers import hip_or_skip
from support.kittens import kittens_or_skip

from hkbench.records import Ownership, Status, Verdict
from hkbench.toolchain.hipkittens import VARIABLES, Dialect

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.hipcc, pytest.mark.slow, pytest.mark.alone]
AT_CPU_SIZES = (
    "1_Scaled_residual_bf16", "17_Matmul_square_bf16", "19_Matmul_NT_ragged_bf16", "38_Matmul_bias_GELU_bf16",
)  # fmt: skip
TRITON = {
    "triton_argmax_ties": "honest_argmax",
    "triton_autotune": "honest_affine",
    "triton_custom_op": "honest_rms_norm",
}


def _judged(folder: Path, arch: str, backend: str, problem: Path, code: Path) -> Verdict:
    hip_or_skip(f"{code.name} was not emulated")
    output = folder / "verdict.json"
    words = ("--device", f"emulated:{arch}", "--backend", backend, "--problem", problem, "--code", code)
    done = doors.call("eval", *words, "--output", output)
    assert output.exists(), done.stderr
    return Verdict.model_validate_json(output.read_text())


def _is_right(verdict: Verdict) -> None:
    assert (verdict.status, verdict.failure, verdict.ownership) == (Status.EMULATED, None, Ownership.OWN)
    worst = max(trial.max_error_over_tolerance or 0.0 for trial in verdict.trials)
    assert worst < 0.7


@pytest.mark.parametrize("name", AT_CPU_SIZES)
@pytest.mark.parametrize("dialect", [Dialect.CDNA3, Dialect.CDNA4])
def test_a_hipkittens_answer_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialect: Dialect, name: str
) -> None:
    root = kittens_or_skip(dialect, f"{name} was not emulated")
    for variable in VARIABLES:
        monkeypatch.setenv(variable, str(root))
    problem = ROOT / "problems" / "level1" / f"{name}.py"
    code = ROOT / "examples" / "hipkittens" / dialect / f"{name}.py"
    _is_right(_judged(tmp_path, dialect.arch, "hipkittens", problem, code))


@pytest.mark.triton
@pytest.mark.parametrize("name", TRITON)
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_an_honest_triton_file_is_right(tmp_path: Path, arch: str, name: str) -> None:
    pytest.importorskip("triton")
    problem = ROOT / "tests" / "corpus_problems" / f"{TRITON[name]}.py"
    _is_right(_judged(tmp_path, arch, "triton", problem, ROOT / "tests" / "honest" / f"{name}.py"))
