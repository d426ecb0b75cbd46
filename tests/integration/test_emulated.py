"""eval.py on an emulated GPU, as a user runs it: HIP candidates, right, wrong and dishonest ones.

All are extensions that torch's own `load_inline` builds, for gfx942; nothing here has an AMD GPU.
"""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path

import pytest
from support import doors
from support.compilers import hip_or_skip
from support.small_problems import problem_file

from hkbench.records import FailureKind, Ownership, Status, Verdict

pytestmark = [pytest.mark.hipcc, pytest.mark.slow]

#: Each row's sum, which waves of a workgroup put together in LDS.
ROW_SUM = """
    import torch
    import torch.nn as nn

    class Model(nn.Module):
        def forward(self, x):
            return x.sum(dim=1)

    def get_inputs():
        return [torch.randn(48, 1024)]

    def get_init_inputs():
        return []
"""
#: A product that takes the host some time.
PRODUCT = """
    import torch
    import torch.nn as nn

    class Model(nn.Module):
        def forward(self, x):
            return x @ x

    def get_inputs():
        return [torch.randn(1536, 1536) / 40]

    def get_init_inputs():
        return []
"""
KERNELS = r"""
#include <hip/hip_runtime.h>
#include <cstdint>

__global__ __launch_bounds__(256) void row_sum(const float* x, float* y, int columns) {
  __shared__ float part[256];
  float sum = 0;
  for (int j = threadIdx.x; j < columns; j += 256) sum += x[int64_t(blockIdx.x) * columns + j];
  part[threadIdx.x] = sum;
  BARRIER;
  for (int half = 128; half; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x + BEYOND] = part[0];
}
__global__ __launch_bounds__(256) void copied(const float* x, float* y, int64_t n) {
  const int64_t i = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (i < n) y[i] = x[i];
}
void sums(uint64_t x, uint64_t y, int64_t rows, int columns) {
  row_sum<<<rows, 256>>>((const float*)x, (float*)y, columns);
}
void copy(uint64_t x, uint64_t y, int64_t n) { copied<<<(n + 255) / 256, 256>>>((const float*)x, (float*)y, n); }
void graph() { hipGraph_t made; (void)hipGraphCreate(&made, 0); }
"""
#: Without pybind11, whose headers a compiler reads for seconds.
BINDING = r"""
#include <Python.h>
#include <cstdint>
void sums(uint64_t x, uint64_t y, int64_t rows, int columns);
void copy(uint64_t x, uint64_t y, int64_t n);
void graph();

static PyObject* call_sums(PyObject*, PyObject* given) {
  unsigned long long x, y;
  long long rows;
  int columns;
  if (!PyArg_ParseTuple(given, "KKLi", &x, &y, &rows, &columns)) return nullptr;
  sums(x, y, rows, columns);
  Py_RETURN_NONE;
}
static PyObject* call_copy(PyObject*, PyObject* given) {
  unsigned long long x, y;
  long long n;
  if (!PyArg_ParseTuple(given, "KKL", &x, &y, &n)) return nullptr;
  copy(x, y, n);
  Py_RETURN_NONE;
}
static PyObject* call_graph(PyObject*, PyObject*) {
  graph();
  Py_RETURN_NONE;
}
static PyMethodDef methods[] = {
    {"sums", call_sums, METH_VARARGS, nullptr},
    {"copy", call_copy, METH_VARARGS, nullptr},
    {"graph", call_graph, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "sums", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit_sums() { return PyModule_Create(&module); }
"""
CODE = '''
import ctypes
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

kernels = load_inline(
    "sums", cpp_sources=r"""{binding}""", cuda_sources=r"""{kernels}""", no_implicit_headers=True
)


class ModelNew(nn.Module):
    def forward(self, x):
        assert x.is_cuda and torch.cuda.get_device_properties(x.device).gcnArchName == "gfx942"
{body}
'''
SUMS = """
out = torch.empty(x.shape[0], device=x.device)
kernels.sums(x.data_ptr(), out.data_ptr(), x.shape[0], x.shape[1])
return out
"""


def _judged(
    folder: Path, problem: str, body: str, *more: str, barrier: str = "__syncthreads()", beyond: str = "0"
) -> tuple[subprocess.CompletedProcess[str], Verdict]:
    hip_or_skip("no HIP candidate was emulated")
    kernels = KERNELS.replace("BARRIER", barrier).replace("BEYOND", beyond)
    code, output = folder / "code.py", folder / "verdict.json"
    code.write_text(CODE.format(binding=BINDING, kernels=kernels, body=textwrap.indent(body.strip(), " " * 8)))
    words = ("--code", code, "--problem", problem_file(folder / "problems", problem).path, "--output", output)
    done = doors.call("eval", "--device", "emulated:gfx942", "--backend", "hip", *words, *more)
    assert output.exists(), done.stderr
    return done, Verdict.model_validate_json(output.read_text())


def test_a_right_candidate_is_correct_and_has_no_time(tmp_path: Path) -> None:
    done, verdict = _judged(tmp_path, ROW_SUM, SUMS)
    assert verdict.failure is None, done.stdout
    assert (done.returncode, verdict.status, verdict.speedup) == (0, Status.EMULATED, None)
    assert "correct on an emulated gfx942, never run on the hardware" in done.stdout
    assert (verdict.ownership, verdict.candidate, verdict.baseline) == (Ownership.OWN, None, None)
    assert len(verdict.trials) == 5 and all(trial.passed for trial in verdict.trials)
    assert {kernel.arch for kernel in verdict.resources} == {"gfx942"}
    assert any("hardware" in note for note in verdict.conditions.not_checked)
    assert verdict.language is not None
    assert (verdict.language.backend, verdict.language.ran) == ("hip", True)


def test_a_missing_barrier_is_a_race_with_its_line(tmp_path: Path) -> None:
    done, verdict = _judged(tmp_path, ROW_SUM, SUMS, barrier="")
    assert done.returncode == 2 and verdict.failure is not None
    assert verdict.failure.kind is FailureKind.RACE, done.stdout
    assert "row_sum" in verdict.failure.message and "no barrier between" in verdict.failure.message
    assert "does not guarantee" in verdict.failure.message


def test_a_race_that_changes_no_value_may_be_a_warning(tmp_path: Path) -> None:
    racy = "__shared__ volatile float spare; spare = threadIdx.x; __syncthreads()"
    done, verdict = _judged(tmp_path, ROW_SUM, SUMS, "--races", "warn", barrier=racy)
    assert (done.returncode, verdict.status, verdict.failure) == (0, Status.EMULATED, None), done.stdout
    (warning,) = verdict.conditions.warnings
    assert "row_sum" in warning and "no barrier between" in warning and "does not guarantee" in warning
    assert any("--races" in note for note in verdict.conditions.not_checked)


def test_a_wait_that_proves_nothing_is_told_with_its_line(tmp_path: Path) -> None:
    idle = '__syncthreads();\n  asm volatile("s_waitcnt vmcnt(0)" ::: "memory")'
    done, verdict = _judged(tmp_path, ROW_SUM, SUMS, barrier=idle)
    assert verdict.failure is None, done.stdout
    (wait,) = verdict.idle_waits
    line = next(number for number, text in enumerate(KERNELS.splitlines(), 1) if "BARRIER" in text)
    assert (wait.kernel, wait.text) == ("row_sum", "s_waitcnt vmcnt(0)")
    assert abs(int(wait.line.rpartition(":")[2]) - line) <= 3, "torch writes lines of its own before"
    (kernel,) = (kernel for kernel in verdict.resources if kernel.name.startswith("row_sum"))
    assert str(wait) in kernel.findings and wait.line in done.stdout


def test_memory_that_is_not_the_calls_is_out_of_bounds(tmp_path: Path) -> None:
    done, verdict = _judged(tmp_path, ROW_SUM, SUMS, beyond="1")
    assert done.returncode == 2 and verdict.failure is not None
    assert verdict.failure.kind is FailureKind.OUT_OF_BOUNDS, done.stdout


def test_a_wild_pointer_is_a_report_and_no_crash(tmp_path: Path) -> None:
    body = SUMS.replace("x.data_ptr()", "ctypes.addressof(ctypes.create_string_buffer(1 << 20))")
    done, verdict = _judged(tmp_path, ROW_SUM, body)
    assert done.returncode == 2 and verdict.failure is not None
    assert verdict.failure.kind is FailureKind.OUT_OF_BOUNDS, done.stdout


def test_what_the_runtime_does_not_have_is_unsupported_by_name(tmp_path: Path) -> None:
    done, verdict = _judged(tmp_path, ROW_SUM, f"kernels.graph()\n{SUMS.strip()}")
    assert done.returncode == 2 and verdict.failure is not None
    assert verdict.failure.kind is FailureKind.UNSUPPORTED, done.stdout
    assert "hipGraphCreate" in verdict.failure.message


def test_what_torch_offers_on_a_gpu_works_beside_kernels(tmp_path: Path) -> None:
    body = f"""
generator = torch.Generator("cuda").manual_seed(3)
noise = torch.randn(x.shape, device="cuda", generator=generator)
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side), torch.autocast("cuda"):
    probabilities = torch.softmax(noise @ noise.t(), -1)
torch.cuda.current_stream().wait_stream(side)
pinned = torch.empty(4, pin_memory=True)
pinned.copy_(probabilities[0, :4], non_blocking=True)
assert pinned.is_pinned() and probabilities.dtype == torch.float32
assert torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated() >= noise.nbytes
{SUMS.strip()}
"""
    done, verdict = _judged(tmp_path, ROW_SUM, body)
    assert (verdict.failure, verdict.ownership) == (None, Ownership.OWN), done.stdout


@pytest.mark.triton
@pytest.mark.parametrize(("track", "status"), [("any", Status.EMULATED), ("own", Status.REFUSED)])
def test_what_torch_compiles_runs_and_is_torchs(tmp_path: Path, track: str, status: Status) -> None:
    pytest.importorskip("triton")
    body = "return torch.compile(lambda x: x.sum(dim=1))(x)"
    done, verdict = _judged(tmp_path, ROW_SUM, body, "--track", track, "--shapes", "0")
    assert (verdict.status, verdict.ownership, verdict.language) == (status, Ownership.NOT_OWN, None), done.stdout
    if verdict.failure is not None:
        assert verdict.failure.kind is FailureKind.NOT_OWN and "triton_" in verdict.failure.message


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("x.to_sparse()", "aten::_to_sparse"),
        ("torch.sparse_coo_tensor(torch.zeros(2, 1), torch.ones(1), (2, 2), device='cuda')", "SparseCUDA"),
        ("torch.cuda.memory_stats()", "torch.cuda.memory_stats"),
        ("torch.cuda._sleep(100)", "`torch.cuda._sleep(100)`"),
    ],
)
def test_what_torch_lacks_there_is_unsupported_by_name(tmp_path: Path, call: str, said: str) -> None:
    done, verdict = _judged(tmp_path, ROW_SUM, f"{call}\n{SUMS.strip()}")
    assert done.returncode == 2 and verdict.failure is not None
    assert verdict.failure.kind is FailureKind.UNSUPPORTED, done.stdout
    assert said in verdict.failure.message and "judge the candidate on a GPU" in verdict.failure.message


def test_an_answer_of_torchs_is_not_own(tmp_path: Path) -> None:
    done, verdict = _judged(tmp_path, ROW_SUM, "return x.sum(dim=1)")
    assert (done.returncode, verdict.status) == (2, Status.REFUSED)
    assert verdict.failure is not None and verdict.failure.kind is FailureKind.NOT_OWN, done.stdout
    assert "no kernel was launched" in verdict.failure.message


def test_a_product_of_torchs_that_a_kernel_copies_is_not_own(tmp_path: Path) -> None:
    body = "y = x @ x\nout = torch.empty_like(y)\nkernels.copy(y.data_ptr(), out.data_ptr(), y.numel())\nreturn out"
    done, verdict = _judged(tmp_path, PRODUCT, body)
    assert (done.returncode, verdict.status) == (2, Status.REFUSED), done.stdout
    assert verdict.failure is not None and verdict.failure.kind is FailureKind.NOT_OWN
    assert "had computed from the inputs" in verdict.failure.message


def test_what_a_candidate_maps_in_place_of_the_devices_memory_is_not_read(tmp_path: Path) -> None:
    body = """
right = x.sum(dim=1).cpu()
out = torch.empty(x.shape[0], device=x.device)
kernels.sums(x.data_ptr(), out.data_ptr(), 1, x.shape[1])
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
page = out.data_ptr() // 4096 * 4096
libc.mmap(page, 4096, 3, 0x32, -1, 0)
ctypes.memmove(out.data_ptr(), right.data_ptr(), right.nbytes)
return out
"""
    done, verdict = _judged(tmp_path, ROW_SUM, body)
    assert done.returncode == 2 and verdict.failure is not None
    assert verdict.failure.kind is FailureKind.NOT_FINITE, done.stdout


def test_a_launch_that_is_forged_on_the_socket_is_a_protocol_failure(tmp_path: Path) -> None:
    body = f"""
import os, socket
for fd in range(3, 64):
    try:
        if os.readlink(f"/proc/self/fd/{{fd}}").startswith("socket:"):
            socket.socket(fileno=os.dup(fd)).send(b"HKD1" + bytes([99, 0, 0, 0]) + bytes(4))
    except OSError:
        pass
{SUMS.strip()}
"""
    done, verdict = _judged(tmp_path, ROW_SUM, body)
    assert done.returncode == 2 and verdict.failure is not None
    assert verdict.failure.kind is FailureKind.PROTOCOL, done.stdout
