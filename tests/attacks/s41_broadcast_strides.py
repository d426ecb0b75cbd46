"""S41 one number for all: an expanded tensor of the right shape holds a single value

problem: variance
device: both
backend: cpp
outcome: wrong_strides|wrong_values
reason: strides|are wrong
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x[0].var(unbiased=False).expand(x.shape[0])
