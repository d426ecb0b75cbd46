"""P06 library call: the extension calls cuBLAS itself

problem: matmul
device: cuda
backend: cuda
outcome: not_own
reason: PyTorch|library|own|cublas
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <ATen/cuda/CUDAContext.h>
#include <cublas_v2.h>
torch::Tensor product(torch::Tensor a, torch::Tensor b) {
  int m = a.size(0), k = a.size(1), n = b.size(1);
  auto c = torch::empty({m, n}, a.options());
  const float one = 1, zero = 0;
  cublasSgemm(at::cuda::getCurrentCUDABlasHandle(), CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b.data_ptr<float>(), n,
              a.data_ptr<float>(), k, &zero, c.data_ptr<float>(), n);
  return c;
}
"""
module = load_inline(
    "product",
    "torch::Tensor product(torch::Tensor a, torch::Tensor b);",
    SOURCE,
    functions=["product"],
    extra_ldflags=["-lcublas"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return module.product(a, b)
