"""S03 input as scratch memory: the result is right, but the input is overwritten

problem: relu
device: both
backend: cpp
outcome: input_modified
reason: input
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        x.relu_()
        return x.clone()
