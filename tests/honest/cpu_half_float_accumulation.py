"""float16 in and out, float32 sums.

problem: honest_matvec_fp16
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

extern "C" void matvec(const _Float16* matrix, const _Float16* vector, _Float16* out, int64_t rows, int64_t columns) {
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    const _Float16* __restrict__ row = matrix + r * columns;
    float sum = 0.0f;
    #pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < columns; ++c) sum += float(row[c]) * float(vector[c]);
    out[r] = _Float16(sum);
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


library = build("cpu_half_float_accumulation", {"matvec": "pppnn"})


class ModelNew(nn.Module):
    def forward(self, matrix, vector):
        matrix, vector = matrix.contiguous(), vector.contiguous()
        out = matrix.new_empty(matrix.shape[0])
        library.matvec(matrix.data_ptr(), vector.data_ptr(), out.data_ptr(), *matrix.shape)
        return out
