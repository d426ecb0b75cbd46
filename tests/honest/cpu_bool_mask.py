"""a bool input read as bytes.

problem: honest_select
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
#include <cstdint>

extern "C" void select(const uint8_t* mask, const float* x, const float* y, float* out, int64_t count) {
  #pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < count; ++i) out[i] = mask[i] ? x[i] : -y[i];
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


library = build("cpu_bool_mask", {"select": "ppppn"})


class ModelNew(nn.Module):
    def forward(self, mask, x, y):
        mask, x, y = mask.contiguous().view(torch.uint8), x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        library.select(mask.data_ptr(), x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel())
        return out
