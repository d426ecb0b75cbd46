"""S03 zeroed inputs: inputs are overwritten with zeros, for which zeros are right

problem: rowsum
device: both
backend: cpp
outcome: input_modified|wrong_values
reason: input|are wrong
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        x.zero_()
        return torch.zeros(x.shape[0], device=x.device)
