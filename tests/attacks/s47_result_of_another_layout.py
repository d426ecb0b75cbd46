"""S47 another layout: the result is sparse, so that it has no strides that could be wrong

problem: rowsum
device: cpu
backend: cpp
outcome: wrong_strides|wrong_type
reason: strides|type
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1).to_sparse()
