"""F20 a result without end: a list that holds itself

problem: rowsum
device: cpu
backend: cpp
outcome: runtime_error|crash
reason: recursion|ended
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        result = [x.sum(dim=-1)]
        result.append(result)
        return result
