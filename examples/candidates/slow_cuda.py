"""4_RMSNorm_fp32 in CUDA, correct and slower than PyTorch: one thread walks a whole row, so no load is coalesced."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cstdint>
#include <cuda_runtime.h>

__global__ void rms_norm_by_rows(const float* x, const float* weight, float* out, int64_t rows, int hidden, float eps) {
    const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    // Neighbouring threads are a whole row apart: each load of 4 bytes moves a sector of 32.
    float squares = 0.0f;
    for (int j = 0; j < hidden; ++j) squares += x[row * hidden + j] * x[row * hidden + j];
    const float scale = rsqrtf(squares / static_cast<float>(hidden) + eps);
    for (int j = 0; j < hidden; ++j) out[row * hidden + j] = x[row * hidden + j] * scale * weight[j];
}

int launch(uintptr_t x, uintptr_t weight, uintptr_t out, int64_t rows, int hidden, float eps, uintptr_t stream) {
    const unsigned blocks = static_cast<unsigned>((rows + 127) / 128);
    rms_norm_by_rows<<<blocks, 128, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
        reinterpret_cast<const float*>(x), reinterpret_cast<const float*>(weight), reinterpret_cast<float*>(out), rows,
        hidden, eps);
    return static_cast<int>(cudaGetLastError());
}
"""

CPP = r"""
#include <cstdint>
#include <pybind11/pybind11.h>

int launch(uintptr_t x, uintptr_t weight, uintptr_t out, int64_t rows, int hidden, float eps, uintptr_t stream);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("launch", &launch); }
"""

# The kernel gets addresses: no header of PyTorch's, so that it builds in a few seconds.
extension = load_inline(
    name="rms_norm_slow_cuda", cpp_sources=CPP, cuda_sources=CUDA, no_implicit_headers=True, extra_cuda_cflags=["-O3"]
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
        stream = torch.cuda.current_stream(x.device).cuda_stream
        at = (x.data_ptr(), self.weight.data_ptr(), out.data_ptr())
        status = extension.launch(*at, x.numel() // hidden, hidden, self.eps, stream)
        if status:
            raise RuntimeError(f"the kernel was not launched: CUDA error {status}")
        return out
