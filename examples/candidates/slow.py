"""4_RMSNorm_fp32 on a CPU, correct and slower than PyTorch: `eval.py` exits with 1."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <vector>
#include <pybind11/pybind11.h>

void rms_norm(uintptr_t x_at, uintptr_t weight_at, uintptr_t out_at, int64_t rows, int64_t hidden, float eps) {
    const float* x = reinterpret_cast<const float*>(x_at);
    const float* weight = reinterpret_cast<const float*>(weight_at);
    float* out = reinterpret_cast<float*>(out_at);
    // The tensor is walked down its columns: each step jumps over a whole row and uses 4 bytes of a cache line.
    std::vector<float> scale(rows, 0.0f);
    for (int64_t j = 0; j < hidden; ++j)
        for (int64_t row = 0; row < rows; ++row) scale[row] += x[row * hidden + j] * x[row * hidden + j];
    for (int64_t row = 0; row < rows; ++row) scale[row] = 1.0f / std::sqrt(scale[row] / float(hidden) + eps);
    for (int64_t start = 0; start < hidden; start += 64) {
        // One parallel region for each 64 columns: the threads are started and joined again and again.
        #pragma omp parallel for schedule(static, 1)
        for (int64_t j = start; j < start + 64; ++j)
            for (int64_t row = 0; row < rows && j < hidden; ++row)
                out[row * hidden + j] = x[row * hidden + j] * scale[row] * weight[j];
    }
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("rms_norm", &rms_norm, pybind11::call_guard<pybind11::gil_scoped_release>());
}
"""

# Only pybind11 is included, not PyTorch's headers: the kernel gets addresses, and builds in a few seconds.
extension = load_inline(
    name="rms_norm_slow",
    cpp_sources=SOURCE,
    no_implicit_headers=True,
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self, hidden: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))  # the evaluator loads the reference's values
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        hidden = x.shape[-1]
        rows = x.numel() // hidden
        extension.rms_norm(x.data_ptr(), self.weight.data_ptr(), out.data_ptr(), rows, hidden, self.eps)
        return out
