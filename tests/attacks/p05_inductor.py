"""P05 torch.compile: inductor writes the kernels

problem: layernorm
device: cuda
backend: triton
outcome: not_own|suspect|runtime_error
reason: PyTorch's|libraries'|clock|compile|device code
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(hidden)
        self.fast = torch.compile(lambda x, w, b: nn.functional.layer_norm(x, x.shape[-1:], w, b))

    def forward(self, x):
        return self.fast(x, self.norm.weight, self.norm.bias)
