"""the kernel wrapped as a torch.library.custom_op with a fake implementation.

problem: honest_rms_norm
device: cpu
backend: cpp
outcome: fast|slow
"""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cmath>
#include <cstdint>

extern "C" void rms_norm(const float* x, const float* gain, float* out, int64_t rows, int64_t columns, float eps) {
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    const float* __restrict__ row = x + r * columns;
    float* __restrict__ to = out + r * columns;
    float squares = 0.0f;
    #pragma omp simd reduction(+ : squares)
    for (int64_t c = 0; c < columns; ++c) squares += row[c] * row[c];
    const float scale = 1.0f / std::sqrt(squares / float(columns) + eps);
    #pragma omp simd
    for (int64_t c = 0; c < columns; ++c) to[c] = row[c] * scale * gain[c];
  }
}
"""

KINDS = {"p": ctypes.c_void_p, "n": ctypes.c_int64, "f": ctypes.c_float}


def build(name, signatures):
    """Compiles SOURCE into the current folder and declares what its functions take."""
    Path(f"{name}.cpp").write_text(SOURCE)
    command = ["g++", "-O2", "-march=native", "-fopenmp", "-shared", "-fPIC", f"{name}.cpp", "-o", f"lib{name}.so"]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(Path(f"lib{name}.so").resolve()))
    for function, kinds in signatures.items():
        getattr(loaded, function).argtypes = [KINDS[kind] for kind in kinds]
        getattr(loaded, function).restype = None
    return loaded


library = build("cpu_custom_op", {"rms_norm": "pppnnf"})


@torch.library.custom_op("honest::rms_norm", mutates_args=())
def rms_norm(x: torch.Tensor, gain: torch.Tensor, eps: float) -> torch.Tensor:
    out = torch.empty_like(x)
    library.rms_norm(x.data_ptr(), gain.data_ptr(), out.data_ptr(), *x.shape, eps)
    return out


@rms_norm.register_fake
def _(x, gain, eps):
    return torch.empty_like(x)


class ModelNew(nn.Module):
    def __init__(self, hidden, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x):
        return rms_norm(x.contiguous(), self.weight, self.eps)
