"""S25 one of several outputs wrong: the first is right, the second is the input

problem: two_outputs
device: both
backend: cpp
outcome: wrong_values|aliased_output
reason: are wrong|memory
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.mean(dim=-1, keepdim=True), x.clone()
