"""F14 deep folders: two thousand folders within one another, deeper than a path can say

problem: scale
device: both
backend: cpp
outcome: limit
reason: deep
"""

import os

import torch.nn as nn

home = os.getcwd()
for _ in range(2000):
    os.mkdir("folder")
    os.chdir("folder")
os.chdir(home)


class ModelNew(nn.Module):
    def forward(self, x):
        return 2.0 * x + 1.0
