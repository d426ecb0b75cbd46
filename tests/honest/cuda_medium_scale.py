"""four elements a load, some blocks for each multiprocessor.

problem: medium_scale
device: cuda
backend: cuda
outcome: fast|slow
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <c10/cuda/CUDAStream.h>
__global__ void scaled(const float4* x, float4* y, long count) {
  for (long i = blockIdx.x * 256L + threadIdx.x; i < count; i += gridDim.x * 256L) {
    float4 v = x[i];
    y[i] = make_float4(2 * v.x + 1, 2 * v.y + 1, 2 * v.z + 1, 2 * v.w + 1);
  }
}
torch::Tensor scale(torch::Tensor x) {
  auto y = torch::empty_like(x);
  scaled<<<1056, 256, 0, c10::cuda::getCurrentCUDAStream()>>>((const float4*)x.data_ptr<float>(),
                                                              (float4*)y.data_ptr<float>(), x.numel() / 4);
  return y;
}
"""
module = load_inline("scaled", "torch::Tensor scale(torch::Tensor x);", SOURCE, functions=["scale"])


class ModelNew(nn.Module):
    def forward(self, x):
        return module.scale(x)
