"""N11 printf flood: each thread of a large grid prints

problem: scale
device: cuda
backend: cuda
outcome: limit|timeout|suspect
reason: output|printed|end within|clock
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cstdio>
__global__ void shout(const float* x, float* y, long n) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) printf("thread %ld of %ld says %f and goes on at some length about it\n", i, n, x[i]);
}
torch::Tensor shouted(torch::Tensor x) {
  auto y = torch::zeros_like(x);
  shout<<<4096, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
"""
module = load_inline("shout", "torch::Tensor shouted(torch::Tensor x);", SOURCE, functions=["shouted"])


class ModelNew(nn.Module):
    def forward(self, x):
        return module.shouted(x)
