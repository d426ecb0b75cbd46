"""C06 derived weights: the cache is refreshed only when the weight has another address

problem: layernorm
device: both
backend: cpp
outcome: stale_parameters|wrong_values
reason: are wrong|load_state_dict
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(hidden)
        self.key, self.kept = None, None

    def forward(self, x):
        if self.key != self.norm.weight.data_ptr():
            self.key = self.norm.weight.data_ptr()
            self.kept = self.norm.weight.clone(), self.norm.bias.clone()
        return nn.functional.layer_norm(x, x.shape[-1:], *self.kept)
