"""Candidates that `hipkittens_build` builds, without an AMD GPU: by the real compiler, and called up to the launch.

In place of libamdhip64 stands a library that keeps what a launch was given (support/kittens_stand_in/runtime.c). Tests
with HipKittens itself use the tree of support.kittens.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.compilers import hip_or_skip
from support.kittens import kittens_or_skip
from support.kittens_candidate import SCALE_ROWS
from support.small_problems import AFFINE, problem_file

from hkbench.compile_only.build_only import compile_only
from hkbench.engine.evaluator import LocalEvaluator
from hkbench.records import BackendName, DeviceKind, EvaluationSettings, FailureKind, Status, Verdict
from hkbench.toolchain.build_hip import build_hip
from hkbench.toolchain.extension import ExtensionCall
from hkbench.toolchain.hip import HipToolchain, find_hip
from hkbench.toolchain.hipkittens import VARIABLES, WITH_CARD, Dialect, read_checkout

pytestmark = [pytest.mark.hipcc, pytest.mark.slow]

REPOSITORY = Path(__file__).resolve().parents[2]
STAND_IN = REPOSITORY / "tests" / "support" / "kittens_stand_in"
SETTINGS = EvaluationSettings(build_timeout=400, shapes=0)
_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)

CANDIDATE = (
    SCALE_ROWS
    + """
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        extension.dispatch(x, out, 2.0)
        return out
"""
)

#: Calls a built candidate as a runner does, with the CPU as its current device, and says what the launch was given.
CALLER = """
import ctypes, importlib.util, json, sys, torch
import hipkittens_build.binding as binding
binding.CURRENT_GPU = lambda: (-1, 0x7E57)
spec = importlib.util.spec_from_file_location("candidate", sys.argv[1])
candidate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(candidate)
runtime = ctypes.CDLL("RUNTIME")

def launched(model, *inputs):
    with torch.no_grad():
        model(*inputs)
    words = (ctypes.c_uint32 * 6).in_dll(runtime, "last_launch")
    lds, stream = (ctypes.c_uint64 * 5).in_dll(runtime, "last_launch")[3:]
    argument = bytes((ctypes.c_ubyte * 512).in_dll(runtime, "last_argument"))
    return {"grid": words[:3], "block": words[3:], "lds": lds, "stream": stream, "argument": argument.hex()}

def refused(model, *inputs):
    try:
        with torch.no_grad():
            model(*inputs)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def refuse_next(error):
    ctypes.c_int.in_dll(runtime, "refuse_next").value = error

"""


@pytest.fixture(scope="module")
def toolchain() -> HipToolchain:
    return hip_or_skip("the binding of HipKittens was not built")


@pytest.fixture(scope="module")
def runtime(toolchain: HipToolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a library that takes the place of this HIP's libamdhip64."""
    folder = tmp_path_factory.mktemp("runtime")
    name = _runtime_name(toolchain)
    command = ["cc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{name}", str(STAND_IN / "runtime.c"), "-o", name]
    subprocess.run(command, cwd=folder, check=True)
    return folder


def _runtime_name(toolchain: HipToolchain) -> str:
    """The name by which a program asks for the runtime: "libamdhip64.so.7"."""
    return f"libamdhip64.so.{toolchain.version.partition('.')[0]}"


@pytest.fixture
def stand_in(toolchain: HipToolchain, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a machine with a gfx950 and a small tree laid out like HipKittens'."""
    _machine(monkeypatch, toolchain, runtime, STAND_IN, Dialect.CDNA4)


@pytest.fixture(params=WITH_CARD)
def dialect(
    request: pytest.FixtureRequest, toolchain: HipToolchain, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> Dialect:
    """The environment of a machine with HipKittens itself."""
    found: Dialect = request.param
    root = kittens_or_skip(found, "nothing was bound with HipKittens itself")
    _machine(monkeypatch, toolchain, runtime, root, found)
    return found


def _machine(
    monkeypatch: pytest.MonkeyPatch, toolchain: HipToolchain, runtime: Path, checkout: Path, dialect: Dialect
) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, str(checkout))
    monkeypatch.delenv("ROCM_HOME", raising=False)
    monkeypatch.setenv("ROCM_PATH", str(toolchain.root))
    monkeypatch.setenv("PYTORCH_ROCM_ARCH", dialect.arch)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(runtime))
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))


def _called(folder: Path, candidate: str, calls: str) -> list[Any]:
    """What `calls` print, in a process of their own that has the candidate built and imported."""
    (folder / "candidate.py").write_text(candidate)
    (folder / "caller.py").write_text(CALLER.replace("RUNTIME", _runtime_name(find_hip())) + calls)
    done = subprocess.run(
        [sys.executable, "caller.py", "candidate.py"], cwd=folder, capture_output=True, text=True, check=False,
        env=os.environ | {"TORCH_EXTENSIONS_DIR": str(folder / "extensions")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def _compiled(folder: Path, source: str, arch: str, backend: BackendName = "hipkittens") -> Verdict:
    code = folder / "candidate.py"
    code.write_text(source)
    problem = problem_file(folder / "problem", AFFINE)
    return asyncio.run(compile_only(problem, code, folder / "scratch", backend, arch, SETTINGS))


def _word(argument: str, at: int, size: int = 4) -> int:
    return int.from_bytes(bytes.fromhex(argument)[at : at + size], "little")


def test_a_launch_gets_what_forward_was_given(stand_in: None, tmp_path: Path) -> None:
    calls = """
x = torch.randn(3, 64)
found = launched(candidate.ModelNew(), x)
print(json.dumps(found | {"x": x.data_ptr()}))
refuse_next(9)
print(json.dumps(refused(candidate.ModelNew(), x)))
print(json.dumps(refused(candidate.ModelNew(), x.double())))
print(json.dumps(launched(candidate.ModelNew(), x)["grid"]))
"""
    found, failed, wrong, again = _called(tmp_path, CANDIDATE, calls)
    assert (found["grid"], found["block"], found["lds"], found["stream"]) == ([3, 1, 1], [64, 1, 1], 0, 0x7E57)
    assert _word(found["argument"], 0, 8) == found["x"]
    assert [_word(found["argument"], 8 + 4 * i) for i in range(4)] == [1, 1, 3, 64]
    said = "the launch failed: hipErrorInvalidConfiguration: invalid configuration argument"
    assert failed == f"RuntimeError: scale_rows.dispatch: {said}"
    assert wrong == "TypeError: scale_rows.dispatch: argument x: expected torch.float32, got torch.float64"
    assert again == [3, 1, 1]


def test_build_only_reports_its_kernels(stand_in: None, tmp_path: Path) -> None:
    verdict = _compiled(tmp_path, CANDIDATE, "gfx950")
    assert (verdict.status, verdict.failure, verdict.conditions.warnings) == (Status.COMPILED, None, ())
    assert verdict.language is not None and verdict.language.backend == "hipkittens"
    assert verdict.language.reason == "scale_rows uses load, store"
    (kernel,) = verdict.resources
    assert kernel.name.startswith("scale_rows(") and kernel.scratch_bytes_per_lane == 0
    assert not any("hipify" in point for point in verdict.conditions.not_checked)


def test_an_error_is_reported_at_the_candidates_line(stand_in: None, tmp_path: Path) -> None:
    verdict = _compiled(tmp_path, CANDIDATE.replace("g.scale;\n  store", "g.scales;\n  store"), "gfx950")
    assert verdict.failure is not None
    assert verdict.failure.kind is FailureKind.BUILD_ERROR
    assert verdict.failure.message.startswith("hip_source:8:20: error: no member named 'scales' in 'globals'")


def _refusal(toolchain: HipToolchain, folder: Path, source: str, members: tuple[str, ...]) -> str:
    """The first error of a build without the runner."""
    call = ExtensionCall(name="scale_rows", cuda_sources=(source,), bound={"dispatch": members})
    result = build_hip(call, "gfx950", folder, 400, toolchain, kittens=read_checkout(STAND_IN))
    assert result.error is not None
    return result.error


(HIP,) = re.findall(r'r"""(.*?)"""', CANDIDATE, re.DOTALL)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (("out", "x", "scale"), "field 'out' will be initialized after field 'x'"),
        (("x", "out"), "missing field 'scale' initializer"),
        (("x", "out", "factor"), "no member named 'factor'"),
    ],
)
def test_members_have_to_be_all_and_in_order(
    toolchain: HipToolchain, tmp_path: Path, members: tuple[str, ...], message: str
) -> None:
    assert message in _refusal(toolchain, tmp_path, HIP, members)


@pytest.mark.parametrize(
    ("member", "parameters", "message"),
    [
        ("float x", "const globals &", "a bound function has to be `void name(const globals &, hipStream_t)`"),
        ("float2 *x", "const globals &, hipStream_t", "PyTorch has no dtype for this element type"),
        ("dim3 x", "const globals &, hipStream_t", "has to be a kittens::gl, a pointer to elements or a number"),
        ("hipStream_t x", "const globals &, hipStream_t", "the stream is the function's second argument"),
    ],
)
def test_what_cannot_be_bound_is_explained(
    toolchain: HipToolchain, tmp_path: Path, member: str, parameters: str, message: str
) -> None:
    source = f'#include "kittens.cuh"\nstruct globals {{ {member}; }};\nvoid dispatch({parameters}) {{}}\n'
    assert message in _refusal(toolchain, tmp_path, source, ("x",))


def test_backend_hip_says_that_it_has_no_checkout(stand_in: None, tmp_path: Path) -> None:
    verdict = _compiled(tmp_path, CANDIDATE, "gfx950", "hip")
    assert verdict.failure is not None
    assert "hipkittens_build is for backend hipkittens" in verdict.failure.message


def test_a_runner_builds_it_in_its_cage(stand_in: None, tmp_path: Path) -> None:
    """Imported as on a machine with the GPU: compiler, checkout and module are in sight, and the build is loaded."""

    async def loaded(source: str) -> Verdict | None:
        (tmp_path / "code.py").write_text(source)
        problem = problem_file(tmp_path / "problem", AFFINE)
        async with LocalEvaluator(DeviceKind.CPU, SETTINGS) as evaluator:
            found = await evaluator.evaluate(
                problem, tmp_path / "code.py", tmp_path / "scratch", "hipkittens", build_only="real"
            )
        return found.verdict

    assert asyncio.run(loaded(CANDIDATE)) is None
    failed = asyncio.run(loaded(CANDIDATE.replace("row.data[0]", "row.date[0]")))
    assert failed is not None and failed.failure is not None
    assert failed.failure.kind is FailureKind.BUILD_ERROR
    assert failed.failure.message.startswith("hip_source:8:7: error: no member named 'date'")


def test_the_prompts_product_is_bound_with_hipkittens_itself(dialect: Dialect, tmp_path: Path) -> None:
    prompt = REPOSITORY / "prompts" / f"_hipkittens_example_gemm_{dialect}.txt"
    (candidate,) = _BLOCK.findall(prompt.read_text())
    calls = """
model = candidate.ModelNew(192, 384)  # K, N
x = torch.randn(256, 192, dtype=torch.bfloat16)
print(json.dumps(launched(model, x) | {"a": x.data_ptr(), "b": model.weight.data_ptr()}))
print(json.dumps(refused(model, x[:200])))
"""
    found, wrong = _called(tmp_path, candidate, calls)
    assert (found["grid"], found["block"], found["stream"]) == ([3, 2, 1], [256, 1, 1], 0x7E57)
    assert found["lds"] in (32768, 65536)
    argument = found["argument"]
    layout = argument.index(f"{found['b'].to_bytes(8, 'little').hex()}") // 2  # bytes of one gl
    assert _word(argument, 0, 8) == found["a"]
    assert [_word(argument, 8 + 8 * i, 8) for i in range(4)] == [1, 1, 256, 192]
    assert [_word(argument, layout + 8 + 8 * i, 8) for i in range(4)] == [1, 1, 384, 192]
    assert [_word(argument, 2 * layout + 8 + 8 * i, 8) for i in range(4)] == [1, 1, 256, 384]
    assert wrong == (
        "ValueError: gemm_abt.dispatch: argument a: dimension -2 has to be a multiple of 128, got shape (200, 192)"
    )
