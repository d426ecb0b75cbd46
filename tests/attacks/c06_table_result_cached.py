"""C06 derived table: the whole table is copied at the first call and looked up later

problem: embedding
device: both
backend: cpp
outcome: stale_parameters|wrong_values
reason: are wrong|load_state_dict
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(words, width))
        self.copy = None

    def forward(self, index):
        if self.copy is None:
            self.copy = self.table.detach().clone()
        return self.copy[index]
