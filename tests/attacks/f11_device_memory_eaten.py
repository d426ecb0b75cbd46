"""F11 device memory eaten: everything that is free is taken

problem: rowsum
device: cuda
backend: cuda
outcome: out_of_memory
emulated: timeout
reason: memory
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        self.hoard = []
        while True:
            self.hoard.append(torch.empty(1 << 30, dtype=torch.uint8, device=x.device))
