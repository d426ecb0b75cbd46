"""4_RMSNorm_fp32 on a CPU, correct and faster than PyTorch: `eval.py` exits with 0."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <pybind11/pybind11.h>

void rms_norm(uintptr_t x_at, uintptr_t weight_at, uintptr_t out_at, int64_t rows, int64_t hidden, float eps) {
    const float* x = reinterpret_cast<const float*>(x_at);
    const float* weight = reinterpret_cast<const float*>(weight_at);
    float* out = reinterpret_cast<float*>(out_at);
    // A row of 4096 floats stays in the L1 cache between the two loops: memory is read once and written once.
    // Rows are handed out in eights, so that a thread that is interrupted does not hold up the others.
    #pragma omp parallel for schedule(dynamic, 8)
    for (int64_t row = 0; row < rows; ++row) {
        const float* __restrict__ in = x + row * hidden;
        float* __restrict__ to = out + row * hidden;
        float squares = 0.0f;
        #pragma omp simd reduction(+ : squares)
        for (int64_t j = 0; j < hidden; ++j) squares += in[j] * in[j];
        const float scale = 1.0f / std::sqrt(squares / float(hidden) + eps);
        #pragma omp simd
        for (int64_t j = 0; j < hidden; ++j) to[j] = in[j] * scale * weight[j];
    }
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("rms_norm", &rms_norm, pybind11::call_guard<pybind11::gil_scoped_release>());
}
"""

# Only pybind11 is included, not PyTorch's headers: the kernel gets addresses, and builds in a few seconds.
extension = load_inline(
    name="rms_norm_fast",
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
