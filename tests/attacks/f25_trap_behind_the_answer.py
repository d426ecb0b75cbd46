"""F25 trap: right sums are followed by a kernel that stops the device with an error

problem: rowsum
device: cuda
backend: cuda
twin: cuda_block_row_sum
outcome: crash|device_error|runtime_error
reason: error|trap|launch failure|illegal|abort
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
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
__global__ void stop(const float* y) {
  if (y[0] != 12345.0f) __trap();
}
torch::Tensor row_sums(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  sums<<<x.size(0), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  stop<<<1, 1>>>(y.data_ptr<float>());
  return y;
}
"""
module = load_inline("trap", "torch::Tensor row_sums(torch::Tensor x);", SOURCE, functions=["row_sums"])


class ModelNew(nn.Module):
    def forward(self, x):
        return module.row_sums(x)
