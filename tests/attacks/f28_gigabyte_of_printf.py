"""F28 printed behind the answer: four million lines wait in a buffer of a gigabyte on the device

problem: rowsum
device: cuda
backend: cuda
twin: cuda_block_row_sum
outcome: limit|timeout|suspect|out_of_memory
reason: output|printed|end within|clock|memory
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cstdio>
__global__ void sums(const float* x, float* y, long columns) {
  __shared__ float part[256];
  float sum = 0;
  for (long j = threadIdx.x; j < columns; j += 256) sum += x[blockIdx.x * columns + j];
  part[threadIdx.x] = sum;
  for (int half = 128; half; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
__global__ void shout() {
  printf("thread %d of block %d has something to say, and says it at length: %f\n", threadIdx.x, blockIdx.x, 0.5);
}
torch::Tensor row_sums(torch::Tensor x) {
  static bool large = false;
  if (!large) cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1ul << 30);
  large = true;
  auto y = torch::empty({x.size(0)}, x.options());
  sums<<<x.size(0), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  shout<<<16384, 256>>>();
  return y;
}
"""
module = load_inline("gigabyte", "torch::Tensor row_sums(torch::Tensor x);", SOURCE, functions=["row_sums"])


class ModelNew(nn.Module):
    def forward(self, x):
        return module.row_sums(x)
