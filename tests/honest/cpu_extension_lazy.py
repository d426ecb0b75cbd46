"""load_inline at the first forward, with the lean pybind11 header; several calls of one kernel.

problem: honest_affine
device: cpu
backend: cpp
outcome: fast|slow
"""

import functools

import torch
from torch import nn
from torch.utils import cpp_extension

SOURCE = r"""
#include <pybind11/pybind11.h>
#include <algorithm>
#include <cstdint>

void affine(uintptr_t x_at, uintptr_t y_at, uintptr_t out_at, int64_t count) {
  const float* __restrict__ x = reinterpret_cast<const float*>(x_at);
  const float* __restrict__ y = reinterpret_cast<const float*>(y_at);
  float* __restrict__ out = reinterpret_cast<float*>(out_at);
  #pragma omp parallel for simd
  for (int64_t i = 0; i < count; ++i) out[i] = std::min(1.0f, std::max(-1.0f, 0.5f * x[i] + 0.25f * y[i]));
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("affine", &affine, pybind11::call_guard<pybind11::gil_scoped_release>());
}
"""


@functools.cache
def extension():
    return cpp_extension.load_inline(
        name="affine_lean",
        cpp_sources=SOURCE,
        no_implicit_headers=True,
        extra_cflags=["-O3", "-march=native", "-fopenmp"],
        extra_ldflags=["-fopenmp"],
    )


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        extension().affine(x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel())
        return out
