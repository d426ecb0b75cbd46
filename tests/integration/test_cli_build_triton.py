"""`eval.py --build-only --backend triton`, as a process: compiled without a GPU, or refused with the line."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from support import doors
from support.corpus import load_cases
from support.small_problems import AFFINE, problem_file
from support.triton_kernels import HEAD, require_triton

from hkbench.toolchain.hip import ARCHITECTURES

pytestmark = [pytest.mark.triton, pytest.mark.hipcc, pytest.mark.slow]

HONEST = load_cases(only="honest/triton_")
EVERY_TIME = ("triton_autotune", "triton_custom_op")

AFFINE_KERNEL = (
    HEAD
    + """
@triton.jit
def affine(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count)
    tl.store(out_ptr + at, EXPRESSION, mask=at < count)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.cuda()
        out = torch.empty(x.shape, device="cuda", dtype=x.dtype)
        affine[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        BEHIND
        return out
"""
)


@pytest.fixture(autouse=True)
def _triton() -> None:
    require_triton()


def build(
    folder: Path, code: Path, problem: Path, arch: str, env: dict[str, str] | None = None
) -> tuple[int, dict[str, Any], str]:
    output = folder / "verdict.json"
    words = ("--code", code, "--problem", problem, "--build-only", "--backend", "triton", "--arch", arch)
    done = doors.call("eval", *words, "--output", output, env=env)
    assert output.exists(), done.stderr
    return done.returncode, json.loads(output.read_text()), done.stdout


def small(
    folder: Path,
    expression: str = "2 * x + 1",
    behind: str = "pass",
    arch: str = "gfx942",
    env: dict[str, str] | None = None,
) -> tuple[int, dict[str, Any], str]:
    code = folder / "code.py"
    code.write_text(AFFINE_KERNEL.replace("EXPRESSION", expression).replace("BEHIND", behind))
    return build(folder, code, problem_file(folder / "problems", AFFINE).path, arch, env)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_matrix_instructions_are_counted_and_what_limits_the_occupancy_is_named(tmp_path: Path, arch: str) -> None:
    (case,) = (case for case in HONEST if case.path.stem == "triton_matmul_bf16")
    code, verdict, shown = build(tmp_path, case.path, case.problem, arch)
    (kernel,) = verdict["resources"]
    assert (code, verdict["status"], verdict["speedup"]) == (0, "compiled", None)
    assert "compiled, not run" in shown and "correct" not in shown.replace("correctness", "")
    assert kernel["name"].startswith("matmul_kernel[BM=128, BN=128, BK=32, num_warps=8, num_stages=3]")
    assert any(name.startswith("mfma_f32_") for name in kernel["instructions"])
    assert kernel["lds_bytes"] > 0 and "LDS" in kernel["limited_by"] and kernel["findings"]
    assert {kernel["vgpr_spills"], kernel["scratch_bytes_per_lane"]} == {0}
    conditions = verdict["conditions"]
    assert (conditions["arch"], conditions["device"], conditions["sizes"]) == (arch, "rocm", "full")
    assert conditions["versions"]["triton"] and "never run" in conditions["not_checked"][0]


@pytest.mark.parametrize(
    ("case", "arch"),
    [(case, ARCHITECTURES[number % 2]) for number, case in enumerate(HONEST)],
    ids=lambda value: value if isinstance(value, str) else value.path.stem,
)
def test_honest_candidates_compile(tmp_path: Path, case: Any, arch: str) -> None:
    if case.path.stem not in EVERY_TIME and not os.environ.get("HKBENCH_CORPUS"):
        pytest.skip("only with HKBENCH_CORPUS=1: ten seconds each")
    code, verdict, shown = build(tmp_path, case.path, case.problem, arch)
    assert (code, verdict["status"], verdict["conditions"]["warnings"]) == (0, "compiled", []), shown
    assert len(verdict["resources"]) == {"triton_autotune": 6, "triton_mse_blocks": 2}.get(case.path.stem, 1)
    assert all(kernel["vgprs"] and kernel["instructions"] for kernel in verdict["resources"])


def test_a_compile_error_shows_the_candidate_s_line(tmp_path: Path) -> None:
    code, verdict, shown = small(tmp_path, expression="tl.hyperbolic(x)")
    line = next(n for n, text in enumerate((tmp_path / "code.py").read_text().splitlines(), 1) if "hyperbolic" in text)
    assert (code, verdict["failure"]["kind"], verdict["failure"]["stage"]) == (2, "build_error", "build")
    assert verdict["failure"]["message"].startswith(f"line {line}: error: ")
    assert "tl.store(out_ptr + at, tl.hyperbolic(x), mask=at < count)" in shown and "compiled" not in verdict["status"]


def test_a_forward_that_needs_contents_is_said_to_have_ended_early(tmp_path: Path) -> None:
    code, verdict, _ = small(tmp_path, behind="print(out.sum().item())", arch="gfx950")
    (warning,) = verdict["conditions"]["warnings"]
    assert (code, len(verdict["resources"])) == (0, 1) and warning.startswith("forward ended early")


def test_a_candidate_that_launches_nothing_is_not_compiled(tmp_path: Path) -> None:
    code = tmp_path / "code.py"
    code.write_text(
        "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return 2 * x + 1\n"
    )
    returned, verdict, _ = build(tmp_path, code, problem_file(tmp_path / "problems", AFFINE).path, "gfx942")
    assert (returned, verdict["failure"]["kind"]) == (2, "build_error")
    assert verdict["failure"]["message"] == "forward launches no Triton kernel, so there is nothing to compile"


def test_without_llvm_s_tools_it_is_compiled_and_the_report_is_said_to_be_missing(tmp_path: Path) -> None:
    if shutil.which("hipcc") or Path("/opt/rocm/bin/hipcc").exists():
        pytest.skip("ROCM IS HERE, so its tools cannot be missing")
    places = {"HKBENCH_HIP_PREFIX": str(tmp_path), "ROCM_HOME": "", "ROCM_PATH": ""}
    code, verdict, _ = small(tmp_path, env=places)
    assert (code, verdict["status"], verdict["resources"]) == (0, "compiled", [])
    assert "scripts/install_hip_toolchain.sh" in verdict["conditions"]["not_checked"][-1]


TUNED = """
@triton.autotune([triton.Config({"N": n}) for n in (64, 256)], key=[])
@triton.jit
def product(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    a = tl.load(x_ptr + at[:, None] * N + at[None, :]).to(tl.float16)
    tl.store(out_ptr + at[:, None] * N + at[None, :], tl.dot(a, a))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        product[(1,)](x, out)
        return out
"""


def test_a_configuration_that_the_gpu_cannot_hold_is_named(tmp_path: Path) -> None:
    code = tmp_path / "code.py"
    code.write_text(HEAD + TUNED)
    returned, verdict, _ = build(tmp_path, code, problem_file(tmp_path / "problems", AFFINE).path, "gfx942")
    (kernel,), (warning,) = verdict["resources"], verdict["conditions"]["warnings"]
    assert (returned, kernel["name"].partition(",")[0]) == (0, "product[N=64")
    assert warning.startswith("product[N=256, num_warps=4") and "cannot be launched" in warning
