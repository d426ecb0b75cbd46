"""T04 token pasting: the stream's functions are pasted together from pieces

problem: rowsum
device: cuda
backend: cuda
outcome: not_finite|suspect|wrong_values|not_repeatable
reason: stream|are wrong|the evaluator's clock
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

KERNEL = r"""
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
"""

SOURCE = (
    KERNEL
    + r"""
#define GLUE(a, b) a##b
torch::Tensor row_sums(torch::Tensor x) {
  static GLUE(cudaStre, am_t) lane = nullptr;
  if (!lane) GLUE(cudaStreamCre, ateWithFlags)(&lane, 1);
  auto y = torch::empty({x.size(0)}, x.options());
  sums<<<x.size(0), 256, 0, lane>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
"""
)
module = load_inline("sums", "torch::Tensor row_sums(torch::Tensor x);", SOURCE, functions=["row_sums"])


class ModelNew(nn.Module):
    def forward(self, x):
        return module.row_sums(x)
