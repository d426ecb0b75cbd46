"""built at the first forward from a string.Template, for the shape at hand; lru_cache over shapes; TMPDIR.

problem: honest_row_sum
device: cpu
backend: cpp
outcome: fast|slow
"""

import ctypes
import functools
import string
import subprocess
import tempfile
from pathlib import Path

import torch
from torch import nn

TEMPLATE = string.Template(r"""
#include <cstdint>

constexpr int64_t columns = $columns;

extern "C" void row_sums(const float* x, float* out, int64_t rows) {
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    float sum = 0.0f;
    #pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < columns; ++c) sum += x[r * columns + c];
    out[r] = sum;
  }
}
""")


@functools.lru_cache(maxsize=8)
def kernel(columns):
    """The kernel for rows of this length, compiled at its first use in a temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="rows_"))
    (folder / "rows.cpp").write_text(TEMPLATE.substitute(columns=columns))
    command = ["g++", "-O2", "-march=native", "-fopenmp", "-shared", "-fPIC", "rows.cpp", "-o", "rows.so"]
    subprocess.run(command, check=True, cwd=folder, capture_output=True)
    function = ctypes.CDLL(str(folder / "rows.so")).row_sums
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    function.restype = None
    return function


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[0])
        kernel(x.shape[1])(x.data_ptr(), out.data_ptr(), x.shape[0])
        return out
