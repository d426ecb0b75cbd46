"""B07 deep request: what a build would like to have prepared is nested four thousand deep

problem: softmax
device: both
backend: cpp
outcome: not_own
reason: PyTorch|library|own
options: --prepare-builds
"""

import os

import torch
import torch.nn as nn

os.makedirs("pch_requests", exist_ok=True)
for number in range(4):
    with open(f"pch_requests/{number:032x}.json", "w") as file:
        file.write("[" * 4000)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
