"""The binding of HipKittens on a real NVIDIA GPU: tensors, streams and launch errors are real, HipKittens is not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from hipkittens_build.binding import CURRENT_GPU, Extension
from hipkittens_build.builder import Members, read_functions
from hipkittens_build.source import translation_unit

STAND_IN = Path(__file__).resolve().parents[1] / "support" / "kittens_stand_in"
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU on this machine"),
    pytest.mark.skipif(
        torch.version.cuda is None, reason="the launcher is compiled by nvcc, for a CUDA build of torch"
    ),
]
SOURCE = """
#include "kittens.cuh"
using namespace kittens;
struct globals { gl<bf16, -1, -1, -1, -1> x, out; const float *bias; float scale; int threads; };
__global__ void scale_rows(const globals g) {
  const int i = blockIdx.x * g.x.cols() + threadIdx.x;
  g.out.raw_ptr[i] = __float2bfloat16(__bfloat162float(g.x.raw_ptr[i]) * g.scale + g.bias[threadIdx.x]);
}
void dispatch(const globals &g, hipStream_t stream) { scale_rows<<<g.x.rows(), g.threads, 0, stream>>>(g); }

struct waiting { std::int64_t *seen; std::int64_t cycles; };
__global__ void spin(const waiting g) {
  const long long begin = clock64();
  while (clock64() - begin < g.cycles) {}
  *g.seen = 1;
}
void waits(const waiting &g, hipStream_t stream) { spin<<<1, 1, 0, stream>>>(g); }
"""
FUNCTIONS: dict[str, Members] = {
    "dispatch": {"x": (1, 64), "out": (), "bias": (), "scale": (), "threads": ()},
    "waits": ["seen", "cycles"],
}


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Extension:
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if nvcc is None:
        pytest.skip("NO nvcc, so the binding was not tried on a GPU")
    folder = tmp_path_factory.mktemp("binding")
    bound = read_functions("cuda", FUNCTIONS)
    (folder / "unit.cu").write_text(translation_unit(SOURCE, {one.name: one.members for one in bound}))
    includes = [f"-I{STAND_IN / part}" for part in ("include", "cuda", "cuda/hip")]
    command = [
        nvcc,
        "-std=c++20",
        "-arch=native",
        "-Xcompiler",
        "-fPIC",
        "-shared",
        *includes,
        "unit.cu",
        "-o",
        "unit.so",
    ]
    subprocess.run(command, cwd=folder, check=True)
    return Extension("cuda", folder / "unit.so", bound, CURRENT_GPU)


def tensors() -> tuple[torch.nn.Parameter, torch.Tensor, torch.Tensor]:
    x = torch.randn(128, 64, device="cuda", dtype=torch.bfloat16)
    return torch.nn.Parameter(x), torch.empty_like(x), torch.randn(64, device="cuda")


def test_the_kernel_gets_the_tensors(extension: Extension) -> None:
    x, out, bias = tensors()
    extension.dispatch(x, out, bias, 0.5, 64)
    torch.testing.assert_close(out, (x.detach().float() * 0.5 + bias).bfloat16())


def test_a_refused_launch_raises_and_the_next_one_works(extension: Extension) -> None:
    x, out, bias = tensors()
    refused = r"cuda\.dispatch: the launch failed: cudaErrorInvalid(Configuration|Value)"  # by driver 580 the latter
    with pytest.raises(RuntimeError, match=refused):
        extension.dispatch(x, out, bias, 0.5, 4096)
    extension.dispatch(x, out, bias, 0.5, 64)
    torch.testing.assert_close(out, (x.detach().float() * 0.5 + bias).bfloat16())


def test_a_tensor_of_the_cpu_is_refused(extension: Extension) -> None:
    x, out, bias = tensors()
    with pytest.raises(ValueError, match=r"bias: expected a tensor on the current GPU \(0\), got one on cpu"):
        extension.dispatch(x, out, bias.cpu(), 0.5, 64)


def test_it_launches_on_the_current_stream(extension: Extension) -> None:
    seen, other = torch.zeros(1, dtype=torch.int64, device="cuda"), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(other):
        extension.waits(seen, 400_000_000)
        done = other.record_event()
    assert not done.query()  # queued behind the kernel, on the stream that it runs on
    assert torch.cuda.default_stream().query()
    done.synchronize()
    assert seen.item() == 1
