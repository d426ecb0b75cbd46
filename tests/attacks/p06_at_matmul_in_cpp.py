"""P06 PyTorch from C++: the extension calls at::matmul

problem: matmul
device: cpu
backend: cpp
outcome: not_own
reason: PyTorch|library|own
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = "torch::Tensor product(torch::Tensor a, torch::Tensor b) { return at::matmul(a, b); }"
module = load_inline("product", SOURCE, functions=["product"], extra_cflags=["-O0"])


class ModelNew(nn.Module):
    def forward(self, a, b):
        return module.product(a, b)
