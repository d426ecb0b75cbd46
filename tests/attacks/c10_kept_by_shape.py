"""C10 result by shape: the first result of each shape is kept on the module

problem: two_outputs
device: both
backend: cpp
outcome: wrong_values|aliased_output
reason: are wrong|memory
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, x):
        if x.shape not in self.kept:
            mean = x.mean(dim=-1, keepdim=True)
            self.kept[x.shape] = (mean, x - mean)
        return tuple(item.clone() for item in self.kept[x.shape])
