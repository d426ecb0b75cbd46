"""an own loop whose tanh is that of at::vec::Vectorized: Sleef's function, which lies in PyTorch's library.

problem: problems/level1/2_SwiGLU_fp32.py
device: cpu
backend: cpp
outcome: fast|slow
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <ATen/cpu/vec/vec.h>
#include <cstdint>
#include <pybind11/pybind11.h>

using Vector = at::vec::Vectorized<float>;

void swiglu(uintptr_t gate, uintptr_t up, uintptr_t out, int64_t n) {
  const float* g = reinterpret_cast<const float*>(gate);
  const float* u = reinterpret_cast<const float*>(up);
  float* o = reinterpret_cast<float*>(out);
  const Vector half(0.5f), one(1.0f);
#pragma omp parallel for
  for (int64_t i = 0; i < n / Vector::size(); ++i) {
    const Vector x = Vector::loadu(g + i * Vector::size());
    (x * half * (one + (x * half).tanh()) * Vector::loadu(u + i * Vector::size())).store(o + i * Vector::size());
  }
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("swiglu", &swiglu, pybind11::call_guard<pybind11::gil_scoped_release>());
}
"""
extension = load_inline(
    name="vectorized_tanh",
    cpp_sources=SOURCE,
    no_implicit_headers=True,
    extra_cflags=["-O3", "-mavx2", "-mfma", "-fopenmp", "-DCPU_CAPABILITY=AVX2", "-DCPU_CAPABILITY_AVX2"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(nn.Module):
    def forward(self, gate, up):
        out = torch.empty_like(gate)
        extension.swiglu(gate.data_ptr(), up.data_ptr(), out.data_ptr(), out.numel())
        return out
