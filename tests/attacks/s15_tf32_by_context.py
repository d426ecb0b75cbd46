"""S15 TF32 from C++: an extension sets at::globalContext's flag around the product and puts it back

problem: matmul
device: cuda
backend: cuda
outcome: wrong_values
reason: are wrong
options: --track any
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  auto& context = at::globalContext();
  const bool before = context.allowTF32CuBLAS();
  context.setAllowTF32CuBLAS(true);
  auto y = at::matmul(a, b);
  context.setAllowTF32CuBLAS(before);
  return y;
}
"""
extension = load_inline("tf32_by_context", cpp_sources=SOURCE, functions=["product"])


class ModelNew(nn.Module):
    def forward(self, a, b):
        return extension.product(a, b)
