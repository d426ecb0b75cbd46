"""P06 library call: scaled_dot_product_attention does the work

problem: attention
device: cuda
backend: cuda
outcome: not_own
reason: PyTorch|library|own
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v)
