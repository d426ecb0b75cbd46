"""S17 fast math: one-pass variance with --use_fast_math

problem: variance_far_from_zero
device: cuda
backend: cuda
outcome: wrong_values|not_finite
reason: are wrong|NaN|Inf
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void variance(const float* x, float* y, long columns) {
  __shared__ float first[256], second[256];
  float sum = 0, squares = 0;
  for (long j = threadIdx.x; j < columns; j += 256) {
    float value = x[blockIdx.x * columns + j];
    sum += value;
    squares += value * value;
  }
  first[threadIdx.x] = sum;
  second[threadIdx.x] = squares;
  for (int half = 128; half; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      first[threadIdx.x] += first[threadIdx.x + half];
      second[threadIdx.x] += second[threadIdx.x + half];
    }
  }
  if (threadIdx.x == 0) {
    float mean = first[0] / columns;
    y[blockIdx.x] = second[0] / columns - mean * mean;
  }
}
torch::Tensor row_variance(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  variance<<<x.size(0), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
"""
module = load_inline(
    "variance",
    "torch::Tensor row_variance(torch::Tensor x);",
    SOURCE,
    functions=["row_variance"],
    extra_cuda_cflags=["--use_fast_math"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return module.row_variance(x)
