"""S10 output in the input's memory: the second output is computed in place of the input

problem: two_outputs
device: both
backend: cpp
outcome: input_modified|aliased_output
reason: input|memory
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        x -= mean
        return mean, x
