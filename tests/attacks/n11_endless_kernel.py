"""N11 endless kernel: the device hangs in a kernel that never ends

problem: rowsum
device: cuda
backend: cuda
outcome: timeout
reason: end within
options: --run-timeout 5
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void spin(volatile float* y) {
  while (y[0] != 12345.0f) {
  }
}
torch::Tensor row_sums(torch::Tensor x) {
  auto y = torch::zeros({x.size(0)}, x.options());
  spin<<<1, 1>>>(y.data_ptr<float>());
  return y;
}
"""
module = load_inline("spin", "torch::Tensor row_sums(torch::Tensor x);", SOURCE, functions=["row_sums"])


class ModelNew(nn.Module):
    def forward(self, x):
        return module.row_sums(x)
