"""S23 one output of two: the comparison is hoped to stop at the shorter list

problem: two_outputs
device: both
backend: cpp
outcome: wrong_type
reason: returns
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (x.mean(dim=-1, keepdim=True),)
