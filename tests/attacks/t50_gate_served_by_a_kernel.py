"""T50 kernel at the gate: a kernel that runs already looks for the release, and writes itself that all is done

What a call costs by itself (the stream's waits and writes, the launch) is taken off, and this one does not have it.

problem: medium_scale
device: cuda
backend: cuda
twin: cuda_medium_scale
outcome: not_own|suspect|impossible|wrong_values|not_finite
reason: accounts|stream|clock|less than|are wrong|NaN
"""

import gc
import sys

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <c10/cuda/CUDAStream.h>
typedef unsigned long long u64;
__global__ void scaled(const float4* x, float4* y, long count, char* page, unsigned number, unsigned* ended) {
  if (page && threadIdx.x == 0)
    while ((int)(*(volatile unsigned*)page - number) < 0) {
    }
  __syncthreads();
  for (long i = blockIdx.x * 256L + threadIdx.x; i < count; i += gridDim.x * 256L) {
    float4 v = x[i];
    y[i] = make_float4(2 * v.x + 1, 2 * v.y + 1, 2 * v.z + 1, 2 * v.w + 1);
  }
  if (!page) return;
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(ended, 1) == gridDim.x - 1) {
    *ended = 0;
    volatile u64* place = (volatile u64*)(page + 512);
    place[0] = (u64)y;
    place[1] = 2048;
    place[2] = 1;
    __threadfence_system();
    *(volatile unsigned*)(page + 256) = number;
  }
}
torch::Tensor scale(torch::Tensor x, torch::Tensor ended, int64_t stream, int64_t page, int64_t number) {
  auto y = torch::empty_like(x);
  auto where = stream ? (cudaStream_t)stream : c10::cuda::getCurrentCUDAStream().stream();
  scaled<<<1056, 256, 0, where>>>((const float4*)x.data_ptr<float>(), (float4*)y.data_ptr<float>(), x.numel() / 4,
                                  (char*)page, (unsigned)number, (unsigned*)ended.data_ptr<int>());
  return y;
}
"""
HEAD = "torch::Tensor scale(torch::Tensor x, torch::Tensor ended, int64_t stream, int64_t page, int64_t number);"
module = load_inline("served", HEAD, SOURCE, functions=["scale"])


def runner():
    for found in gc.get_objects():
        if type(found).__name__ == "Runner" and hasattr(found, "_gate"):
            return found
    raise LookupError("no runner among the objects of this process")


def number_of_call():
    frame = sys._getframe()
    while frame.f_code.co_name != "_gated":
        frame = frame.f_back
        if frame is None:
            return 0
    return frame.f_locals["number"]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()
        self.calls, self.page, self.ended = 0, 0, None

    def forward(self, x):
        self.calls += 1
        if self.ended is None:
            self.ended = torch.zeros(1, dtype=torch.int32, device=x.device)
            self.page = runner()._gate.page.data_ptr()
        number = number_of_call() if self.calls > 8 else 0
        return module.scale(x, self.ended, *((self.side.cuda_stream, self.page, number) if number else (0, 0, 0)))
