"""`eval.py --build-only` for HIP, as a process: compiled, refused, and kept from files that are not the candidate's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import doors
from support.compilers import empty_module, hip_or_skip
from support.isolation import surveyed
from support.small_problems import AFFINE, problem_file

pytestmark = [pytest.mark.hipcc, pytest.mark.slow]

CANDIDATE = '''
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

HIP = r"""
INCLUDE
#include <hip/hip_runtime.h>
__global__ __launch_bounds__(256) void twice(float *x) { x[blockIdx.x * 256 + threadIdx.x] *= 2.0f; }
void launch(float *x) {
  twice<<<1, 256>>>(x);
}
"""
BINDING = """
EMPTY_MODULE"""
extension = load_inline(name="twice", cpp_sources=BINDING, cuda_sources=HIP, no_implicit_headers=True)


class ModelNew(nn.Module):
    pass
'''.replace("EMPTY_MODULE", empty_module("twice"))


@pytest.fixture(scope="module", autouse=True)
def _compiler() -> None:
    hip_or_skip("--build-only was not tested")


def build(folder: Path, include: str = "", arch: str = "gfx950") -> tuple[int, dict[str, object], str]:
    problem = problem_file(folder / "problems", AFFINE)
    code, output = folder / "code.py", folder / "verdict.json"
    code.write_text(CANDIDATE.replace("INCLUDE", include))
    words = ("--code", code, "--problem", problem.path, "--build-only", "--backend", "hip", "--arch", arch)
    done = doors.call("eval", *words, "--output", output)
    return done.returncode, json.loads(output.read_text()), done.stdout


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_a_kernel_is_compiled_and_described(tmp_path: Path, arch: str) -> None:
    code, verdict, said = build(tmp_path, arch=arch)
    assert (code, verdict["status"]) == (0, "compiled")
    assert f"{arch} twice(float*)" in said
    assert "instructions in the code (not executions)" in said
    conditions = verdict["conditions"]
    assert isinstance(conditions, dict)
    assert conditions["isolation"]["level"] == surveyed()["level"]


@pytest.mark.skipif("files" not in surveyed()["holds"], reason="files cannot be kept from candidates on this machine")
def test_the_compiler_reads_no_files_but_the_candidates_and_the_systems(tmp_path: Path) -> None:
    (tmp_path / "another.h").write_text("#error the words of another candidate\n")
    code, verdict, said = build(tmp_path, f'#include "{tmp_path}/another.h"')
    assert (code, verdict["status"]) == (2, "incorrect")
    assert "another.h' file not found" in said or "another.h: Permission denied" in said
    assert "the words of another candidate" not in json.dumps(verdict)
