"""S31 race: the reduction in shared memory has no barrier between its steps

problem: rowsum
device: cuda
backend: cuda
outcome: not_repeatable|wrong_values
reason: are wrong|differ
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void sums(const float* x, float* y, long columns) {
  volatile __shared__ float part[1024];
  float sum = 0;
  for (long j = threadIdx.x; j < columns; j += 1024) sum += x[blockIdx.x * columns + j];
  part[threadIdx.x] = sum;
  for (int half = 512; half; half /= 2)
    if (threadIdx.x < half) part[threadIdx.x] = part[threadIdx.x] + part[threadIdx.x + half];
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
torch::Tensor row_sums(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  sums<<<x.size(0), 1024>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
"""
module = load_inline("sums", "torch::Tensor row_sums(torch::Tensor x);", SOURCE, functions=["row_sums"])


class ModelNew(nn.Module):
    def forward(self, x):
        return module.row_sums(x)
