"""`hkbench compile FILE`: each way with its real compiler, what it says of errors, and exit codes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support import doors
from support.compilers import hip_or_skip, needs_gcc, needs_nvcc
from support.triton_kernels import require_triton

SCALE = """__global__ void scale(const float* x, float* y, int n) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n) y[at] = x[at] * FACTOR;
}
"""
TRITON = """import os
import triton
import triton.language as tl

READ = os.access({secret!r}, os.R_OK)


@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + {at}, mask=at < n), mask=at < n)
"""


@needs_gcc
def test_cpp_compiles_or_names_its_line(tmp_path: Path) -> None:
    file, output = tmp_path / "half.cpp", tmp_path / "half.o"
    file.write_text("float half(float x) { return x / 2; }\n")
    done = doors.hkbench("compile", file, "-o", output)
    assert done.returncode == 0, done.stderr
    assert output.read_bytes().startswith(b"\x7fELF")
    file.write_text("float half(float x) {\n  return y / 2;\n}\n")
    done = doors.hkbench("compile", file, "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["line"], found["target"], found["forms"]) == (2, 2, "cpu", [])


def test_what_cannot_be_compiled_at_all_has_codes_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "a.cu"
    file.write_text("__global__ void f() {}\n")
    assert doors.hkbench("compile", file, "--arch", "gfx942").returncode == 64
    assert doors.hkbench("compile", tmp_path / "none.cu").returncode == 66


@needs_nvcc
def test_cuda_compiles_to_ptx_and_a_cubin(tmp_path: Path) -> None:
    file, output = tmp_path / "scale.cu", tmp_path / "scale.ptx"
    file.write_text(SCALE.replace("FACTOR", "2.0f"))
    done = doors.hkbench("compile", file, "--arch", "sm_90", "-o", output, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [form["form"] for form in found["forms"]] == ["ptx", "cubin"]
    assert found["ptx_resources"][0]["registers"] > 0
    assert ".entry" in output.read_text()
    file.write_text(SCALE.replace("FACTOR", "factor"))
    done = doors.hkbench("compile", file)
    assert (done.returncode, "line 3" in done.stdout, "factor" in done.stdout) == (2, True, True)


@pytest.mark.hipcc
@pytest.mark.slow
def test_hip_compiles_to_a_code_object(tmp_path: Path) -> None:
    hip_or_skip("hkbench compile was not tested on HIP")
    file, output = tmp_path / "scale.hip", tmp_path / "scale.hsaco"
    file.write_text("#include <hip/hip_runtime.h>\n" + SCALE.replace("FACTOR", "2.0f"))
    done = doors.hkbench("compile", file, "--arch", "gfx950", "-o", output, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["resources"][0]["vgprs"] > 0, found["resources"][0]["vgpr_spills"]) == (True, 0)
    assert output.read_bytes().startswith(b"\x7fELF")


@pytest.mark.triton
@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_90", "gfx942"])
def test_triton_compiles_by_a_signature_and_sees_no_other_file(tmp_path: Path, arch: str) -> None:
    require_triton()
    secret, file = tmp_path / "secret", tmp_path / "copy.py"
    secret.write_text("nobody's business")
    file.write_text(TRITON.format(secret=str(secret), at="at") + f"if os.access({str(secret)!r}, os.R_OK): 1 / 0\n")
    done = doors.hkbench("compile", file, "--arch", arch)
    assert (done.returncode, "x_ptr, out_ptr, n, BLOCK" in done.stderr) == (64, True)
    done = doors.hkbench("compile", file, "--arch", arch, "--signature", "copy: *fp32, *fp32, i32, 256", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert {form["form"] for form in found["forms"]} == ({"ptx", "cubin"} if "sm" in arch else {"amdgcn", "hsaco"})
    assert all(form["kernel"] == "copy" and form["bytes"] > 0 for form in found["forms"])


@pytest.mark.triton
def test_triton_names_the_line_that_it_refuses(tmp_path: Path) -> None:
    require_triton()
    file = tmp_path / "copy.py"
    file.write_text(TRITON.format(secret=os.devnull, at="elsewhere"))
    done = doors.hkbench("compile", file, "--signature", "*fp32, *fp32, i32, 256", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["line"], "elsewhere" in found["error"]) == (2, 11, True)
