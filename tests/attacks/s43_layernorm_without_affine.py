"""S43 missing gain and shift: the normalisation is done, its parameters are ignored

problem: layernorm
device: both
backend: cpp
outcome: wrong_values|stale_parameters
reason: are wrong|load_state_dict
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(hidden)

    def forward(self, x):
        return nn.functional.layer_norm(x, (x.shape[-1],))
