"""S43 missing buffers: running mean and variance are 0 and 1 after construction and are ignored

problem: norm_running
device: both
backend: cpp
outcome: wrong_values|stale_parameters
reason: are wrong|load_state_dict
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.norm = nn.BatchNorm1d(columns).eval()

    def forward(self, x):
        return x * self.norm.weight + self.norm.bias
