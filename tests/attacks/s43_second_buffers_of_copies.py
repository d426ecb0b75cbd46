"""S43 second names: the statistics under second names are copies that the constructor made

problem: norm_running
device: cpu
backend: cpp
outcome: wrong_values|stale_parameters
reason: are wrong|load_state_dict
twin: cpu_second_names
"""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cmath>

extern "C" void norm(const float* x, const float* mean, const float* variance, const float* gain, const float* offset,
                     float* y, long rows, long columns, double eps) {
  #pragma omp parallel for schedule(static)
  for (long i = 0; i < rows; ++i)
    for (long j = 0; j < columns; ++j)
      y[i * columns + j] = (x[i * columns + j] - mean[j]) / std::sqrt(variance[j] + (float)eps) * gain[j] + offset[j];
}
"""
Path("norm.cpp").write_text(SOURCE)
subprocess.run(
    ["g++", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "norm.cpp", "-o", "libsecond_names.so"], check=True
)
library = ctypes.CDLL(str(Path("libsecond_names.so").resolve()))
library.norm.argtypes = [ctypes.c_void_p] * 6 + [ctypes.c_long] * 2 + [ctypes.c_double]


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.norm = nn.BatchNorm1d(columns).eval()
        self.gain = self.norm.weight
        self.offset = self.norm.bias
        self.register_buffer("mean", self.norm.running_mean.clone())
        self.register_buffer("variance", self.norm.running_var.clone())

    def forward(self, x):
        y = torch.empty_like(x)
        held = (self.mean, self.variance, self.gain, self.offset, y)
        library.norm(x.data_ptr(), *(tensor.data_ptr() for tensor in held), *x.shape, self.norm.eps)
        return y
