"""P18 another's Triton kernel: an installed package's is compiled into the candidate's own cache

problem: honest_matmul_bf16
device: cuda
backend: triton
outcome: not_own
emulated: unsupported
reason: PyTorch|librar|own
"""

import torch.nn as nn
from torch.sparse._triton_ops import bsr_dense_mm


class ModelNew(nn.Module):
    def forward(self, a, b):
        return bsr_dense_mm(a.to_sparse_bsr((64, 64)), b)
