"""two results that are views of one fresh buffer.

problem: honest_sum_and_difference
device: cpu
backend: cpp
outcome: fast|slow
"""

import ctypes
import subprocess
from pathlib import Path

from torch import nn

SOURCE = r"""
#include <cstdint>

extern "C" void both(const float* x, const float* y, float* sum, float* difference, int64_t count) {
  #pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    sum[i] = x[i] + y[i];
    difference[i] = x[i] - y[i];
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


library = build("cpu_list_result", {"both": "ppppn"})


class ModelNew(nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        out = x.new_empty((2, *x.shape))
        library.both(x.data_ptr(), y.data_ptr(), out[0].data_ptr(), out[1].data_ptr(), x.numel())
        return list(out)
