"""S32 out of bounds: the kernel writes far behind its output

problem: rowsum
device: cuda
backend: cuda
outcome: crash|device_error|runtime_error
reason: illegal|fault|error|memory access
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void far(float* y) { y[(1L << 40) + threadIdx.x] = 1.0f; }
torch::Tensor row_sums(torch::Tensor x) {
  auto y = torch::zeros({x.size(0)}, x.options());
  far<<<1, 32>>>(y.data_ptr<float>());
  return y;
}
"""
module = load_inline("far", "torch::Tensor row_sums(torch::Tensor x);", SOURCE, functions=["row_sums"])


class ModelNew(nn.Module):
    def forward(self, x):
        return module.row_sums(x)
