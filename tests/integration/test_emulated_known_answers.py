"""Candidates that nobody wrote for an emulated GPU are judged on one, at the sizes that problems have for it.

Shipped HipKittens and HIP answers, recorded HIP replies, honest Triton files. A few of each are always judged, all of
them with HKBENCH_EMULATED=1.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support import doors
from support.compilers import hip_or_skip
from support.corpus import load_cases
from support.kittens import kittens_or_skip

from hkbench.llm.extract import extract
from hkbench.llm.replies import replies_in_file
from hkbench.records import FailureKind, Ownership, SizeSet, Status, Verdict
from hkbench.toolchain.hipkittens import VARIABLES, WITH_CARD, Dialect

ROOT = Path(__file__).parents[2]
PROBLEMS = ROOT / "problems" / "level1"
ANSWERS = ROOT / "examples" / "hipkittens"
PLAIN = {path.stem: path for path in (ROOT / "examples" / "hip").glob("*.py")}
REPLIES = replies_in_file(ROOT / "examples" / "replies" / "reflect.toml", "hip")
TRITON = {case.path.stem: case for case in load_cases(only="honest/triton_")}
REFUSED = "triton_graph_of_allocations"  # the device has no graphs
ARCHS = ("gfx942", "gfx950")
#: Always judged: a width that is fixed in the types, sizes that no tile divides; one of the other backends each.
SAMPLE = {
    ("cdna3", "4_RMSNorm_fp32"),
    ("cdna4", "19_Matmul_NT_ragged_bf16"),
    ("gfx950", "7_Residual_layernorm_fp32/attempt_1/sample_1"),
    ("gfx942", "32_Cumsum_fp32"),
    ("gfx942", "triton_custom_op"),
}
pytestmark = [pytest.mark.hipcc, pytest.mark.slow, pytest.mark.alone]


@pytest.fixture(autouse=True)
def _only_a_sample(request: pytest.FixtureRequest) -> None:
    case = request.getfixturevalue("case") if "case" in request.fixturenames else None
    if case is not None and case not in SAMPLE and "HKBENCH_EMULATED" not in os.environ:
        pytest.skip("only with HKBENCH_EMULATED=1: half a minute each")


def _judged(folder: Path, arch: str, backend: str, problem: Path, code: Path) -> Verdict:
    hip_or_skip(f"{code.name} was not emulated")
    output = folder / "verdict.json"
    words = ("--device", f"emulated:{arch}", "--backend", backend, "--problem", problem, "--code", code)
    done = doors.call("eval", *words, "--output", output)
    assert output.exists(), done.stderr
    return Verdict.model_validate_json(output.read_text())


def _is_right(verdict: Verdict) -> None:
    assert (verdict.status, verdict.failure, verdict.ownership) == (Status.EMULATED, None, Ownership.OWN)
    assert verdict.conditions.warnings == ()
    assert verdict.language is not None and verdict.language.ran
    assert verdict.language.backend == verdict.conditions.backend
    worst = max(trial.max_error_over_tolerance or 0.0 for trial in verdict.trials)
    assert worst < 0.7


def _named(case: tuple[str, str]) -> str:
    return " ".join(case)


def _answers() -> list[tuple[str, str]]:
    return [(dialect.value, path.stem) for dialect in WITH_CARD for path in sorted((ANSWERS / dialect).glob("*.py"))]


def test_the_sample_is_of_what_there_is() -> None:
    known = {*_answers(), *((arch, name) for arch in ARCHS for name in (*PLAIN, *REPLIES, *TRITON))}
    assert known >= SAMPLE and len(_answers()) == 16
    answered = {*PLAIN, *(name for _, name in _answers()), *(name.partition("/")[0] for name in REPLIES)}
    assert answered == {path.stem for path in PROBLEMS.glob("*.py")}
    assert all(extract(reply.text, None).source for reply in REPLIES.values())


@pytest.mark.parametrize("case", _answers(), ids=_named)
def test_a_hipkittens_answer_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: tuple[str, str]) -> None:
    dialect, name = Dialect(case[0]), case[1]
    root = kittens_or_skip(dialect, f"{name} was not emulated")
    for variable in VARIABLES:
        monkeypatch.setenv(variable, str(root))
    code = ANSWERS / dialect / f"{name}.py"
    verdict = _judged(tmp_path, dialect.arch, "hipkittens", PROBLEMS / f"{name}.py", code)
    _is_right(verdict)
    assert verdict.conditions.sizes is SizeSet.EMULATED


@pytest.mark.parametrize("case", [(arch, name) for arch in ARCHS for name in sorted(PLAIN)], ids=_named)
def test_a_hip_answer_is_right(tmp_path: Path, case: tuple[str, str]) -> None:
    arch, name = case
    _is_right(_judged(tmp_path, arch, "hip", PROBLEMS / f"{name}.py", PLAIN[name]))


@pytest.mark.parametrize("case", [(arch, name) for arch in ARCHS for name in REPLIES], ids=_named)
def test_a_hip_reply_is_right(tmp_path: Path, case: tuple[str, str]) -> None:
    arch, name = case
    code = tmp_path / "code.py"
    code.write_text(extract(REPLIES[name].text, None).source or "")
    _is_right(_judged(tmp_path, arch, "hip", PROBLEMS / f"{name.partition('/')[0]}.py", code))


@pytest.mark.triton
@pytest.mark.parametrize("case", [(arch, name) for arch in ARCHS for name in TRITON if name != REFUSED], ids=_named)
def test_an_honest_triton_file_is_right(tmp_path: Path, case: tuple[str, str]) -> None:
    pytest.importorskip("triton")
    arch, name = case
    problem = TRITON[name].problem
    verdict = _judged(tmp_path, arch, "triton", problem, TRITON[name].path)
    _is_right(verdict)
    expected = SizeSet.EMULATED if problem.parent == PROBLEMS else SizeSet.CPU
    assert verdict.conditions.sizes is expected, "a problem of the corpus has no sizes for an emulated GPU"


@pytest.mark.triton
@pytest.mark.parametrize("case", [(arch, REFUSED) for arch in ARCHS], ids=_named)
def test_a_graph_is_refused_by_name(tmp_path: Path, case: tuple[str, str]) -> None:
    pytest.importorskip("triton")
    arch, name = case
    verdict = _judged(tmp_path, arch, "triton", TRITON[name].problem, TRITON[name].path)
    assert verdict.failure is not None and verdict.failure.kind is FailureKind.UNSUPPORTED
    assert "CUDAGraph" in verdict.failure.message
